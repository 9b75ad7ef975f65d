"""The second-order force term without lattice artefacts."""

from mpilbm.core.registry import register
from mpilbm.model.expressions import Expression, Vector
from mpilbm.physics.algebra import dot, one_way, pairs
from mpilbm.physics.collisions import Collision
from mpilbm.physics.equilibria import with_moments
from mpilbm.physics.forcing import Forcing
from mpilbm.physics.lattices import Lattice


@register("forcing", "guo")
class Guo(Forcing):
    """F_i = w_i ((c_i - u) / cs2 + (c_i.u) c_i / cs4) . F; the collision multiplies it by 1 - R/2.

    R is the relaxation of the collision. The moments of F_i of orders 0 to 2 are 0, F and u F +
    F u; on D3Q13 the F_i are those with these moments and no others.
    [Guo, Zheng & Shi 2002, Phys. Rev. E 65, 046308, eq. 20]
    """

    second_order = True

    def source(
        self,
        lattice: Lattice,
        collision: Collision,
        density: Expression,
        rho: Expression,
        u: Vector,
        F: Vector,
    ) -> list[Expression]:
        """Return Q expressions F_i; c_i and -c_i share the parts that are even and odd in c_i."""
        if lattice.isotropy < 4:
            gained = {(a, b): u[a] * F[b] + u[b] * F[a] for a, b in pairs(lattice.D)}
            return with_moments(lattice, 0, F, gained)
        cs2, uF = lattice.cs2, dot(u, F)
        source = []
        for w, c in zip(lattice.w, lattice.c, strict=True):
            sign, forward = one_way(c)
            cF = dot(forward, F)
            source.append(sign * w * cF / cs2 + w * (dot(forward, u) * cF / cs2**2 - uF / cs2))
        return source
