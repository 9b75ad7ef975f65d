"""The force as an increment of the equilibrium velocity."""

from mpilbm.physics.forcing import Forcing
from mpilbm.physics.lattices import Lattice
from mpilbm.registry import register


@register("forcing", "exact_difference")
class ExactDifference(Forcing):
    """F_i = feq_i(rho, v + F/rho) - feq_i(rho, v), v = (sum_i c_i f_i) / rho.

    Added to the result of any collision at v. In a uniform fluid f stays exactly in equilibrium.
    Compared with `guo` its stress differs by F F / (4 rho) times the relaxation rate: use `guo`
    unless the collision allows no other force. [Kupershtokh, Medvedev & Karpov 2009, Comput. Math.
    Appl. 58, 965]
    """

    inside = False
    second_order = True  # if that of the equilibrium is True

    def source(self, lattice: Lattice, collision, density, rho, u, F) -> list:
        """Q expressions, computed so that no digit of a small force is lost."""
        return collision.equilibrium.jump(lattice, rho, u, collision.velocity(F, rho))
