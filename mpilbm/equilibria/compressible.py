"""The usual second-order equilibrium."""

from mpilbm.equilibria import Equilibrium, dot
from mpilbm.registry import register


@register("equilibria", "compressible")
class Compressible(Equilibrium):
    """feq_i = w_i rho (1 + c_i.u / cs2 + (c_i.u)^2 / (2 cs4) - u.u / (2 cs2)).

    [Qian, d'Humières & Lallemand 1992]. Take this one if you don't know.
    """

    def feq(self, lattice, density, rho, u):
        """Q expressions of the second-order equilibrium."""
        cs2, uu = lattice.cs2, dot(u, u)
        return [
            w * (density + rho * (cu / cs2 + cu**2 / (2 * cs2**2) - uu / (2 * cs2)))
            for w, cu in ((w, dot(c, u)) for w, c in zip(lattice.w, lattice.c, strict=True))
        ]
