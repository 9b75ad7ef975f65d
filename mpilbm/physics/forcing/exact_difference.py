"""The force as a jump of the equilibrium."""

from mpilbm.physics.forcing import Forcing
from mpilbm.registry import register


@register("forcing", "exact_difference")
class ExactDifference(Forcing):
    """F_i = feq_i(rho, v + F/rho) - feq_i(rho, v), v = (sum_i c_i f_i) / rho.

    Added to what leaves a collision at v, whatever the collision: in a uniform fluid f stays in
    equilibrium, exactly. Beside `guo` its stress differs by F F / (4 rho) times the relaxation
    rate: choose `guo` unless the collision takes no other force.
    [Kupershtokh, Medvedev & Karpov 2009, Comput. Math. Appl. 58, 965]
    """

    inside = False
    second_order = True  # if the equilibrium is

    def source(self, lattice, collision, density, rho, u, F):
        """Q expressions in which no digit of a small force is lost."""
        return collision.equilibrium.jump(lattice, rho, u, collision.velocity(F, rho))
