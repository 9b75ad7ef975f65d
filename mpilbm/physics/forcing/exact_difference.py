"""The force as an increment of the equilibrium velocity."""

from mpilbm.core.registry import register
from mpilbm.model.expressions import Expression, Vector
from mpilbm.physics.collisions import Collision
from mpilbm.physics.forcing import Forcing
from mpilbm.physics.lattices import Lattice


@register("forcing", "exact_difference")
class ExactDifference(Forcing):
    """F_i = feq_i(rho, v + F/rho) - feq_i(rho, v), v = (sum_i c_i f_i) / rho.

    F_i is added to the populations after the collision, which uses the velocity v. In a uniform
    fluid f remains exactly in equilibrium. The stress differs from that of `guo` by F F / (4 rho)
    times the relaxation rate. Use `guo` unless the collision supports only this force.
    [Kupershtokh, Medvedev & Karpov 2009, Comput. Math. Appl. 58, 965]
    """

    inside = False
    second_order = True  # provided that `second_order` of the equilibrium is True

    def source(
        self,
        lattice: Lattice,
        collision: Collision,
        density: Expression,
        rho: Expression,
        u: Vector,
        F: Vector,
    ) -> list[Expression]:
        """Return Q expressions F_i; a small force loses no digits."""
        return collision.equilibrium.jump(lattice, rho, u, collision.velocity(F, rho))
