"""The second-order force term without lattice artefacts."""

from mpilbm.physics.algebra import dot, one_way, pairs
from mpilbm.physics.equilibria import with_moments
from mpilbm.physics.forcing import Forcing
from mpilbm.physics.lattices import Lattice
from mpilbm.registry import register


@register("forcing", "guo")
class Guo(Forcing):
    """F_i = w_i ((c_i - u) / cs2 + (c_i.u) c_i / cs4) . F; the collision multiplies it by 1 - R/2.

    On D3Q13 it has the same moments (0, F, u F + F u) and no others.
    [Guo, Zheng & Shi 2002, Phys. Rev. E 65, 046308, eq. 20]
    """

    second_order = True

    def source(self, lattice: Lattice, collision, density, rho, u, F) -> list:
        """Q expressions; parts even and odd in c_i are separate, since c_i and -c_i share them."""
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
