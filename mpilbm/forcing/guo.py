"""The second-order force term without lattice artefacts."""

from mpilbm.equilibria import dot
from mpilbm.forcing import Forcing
from mpilbm.registry import register


@register("forcing", "guo")
class Guo(Forcing):
    """F_i = w_i ((c_i - u) / cs2 + (c_i.u) c_i / cs4) . F; the collision adds its (1 - R/2).

    [Guo, Zheng & Shi 2002, Phys. Rev. E 65, 046308, eq. 20]
    """

    def source(self, lattice, u, F):
        """Q expressions of the force term."""
        cs2 = lattice.cs2
        return [
            w * ((dot(c, F) - dot(u, F)) / cs2 + dot(c, u) * dot(c, F) / cs2**2)
            for w, c in zip(lattice.w, lattice.c, strict=True)
        ]
