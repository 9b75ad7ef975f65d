"""The Smagorinsky model: an eddy viscosity proportional to the local rate of strain."""

from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar

from numpy.typing import NDArray
from pydantic import Field

from mpilbm.core.registry import register
from mpilbm.model.expressions import Expression, Let, Stress
from mpilbm.physics.closures import Closure, Strain, shear_rate
from mpilbm.physics.lattices import Lattice


@register("closures", "smagorinsky")
class Smagorinsky(Closure):
    """nu_t = constant^2 |S|, |S| = sqrt(2 S_ab S_ab), S without its trace, in lattice units.

    The local relaxation time tau is the solution of tau = tau_0 + nu_t / cs2 with S = -stress /
    (2 rho cs2 tau):

        tau = (tau_0 + sqrt(tau_0^2 + 2 sqrt(2) constant^2 |stress| / (rho cs4))) / 2

    For turbulence that the cells do not resolve. The model also damps resolved scales, and the
    damping is too strong near walls. The factor 2 sqrt(2) / cs4 is 18 sqrt(2) (cs2 is 1/3 on all
    lattices of this program); Januszewski & Kostur 2014 print 36, which is the same model with
    constant / 1.19. [Hou, Sterling, Chen & Doolen 1996; Januszewski & Kostur 2014, (9)]
    """

    normal_numbers: ClassVar[bool] = True

    constant: float = Field(0.1, gt=0, description="C_S; 0.1 to 0.2 is usual")

    def arguments(self, lattice: Lattice) -> dict[str, float]:
        """The factor of |stress| / rho: 2 sqrt(2) constant^2 / cs4."""
        return {"eddy": 2 * sqrt(2) * self.constant**2 / float(lattice.cs2) ** 2}

    def omega(
        self,
        lattice: Lattice,
        stress: Stress,
        rho: Expression,
        omega: Expression,
        let: Let,
        eddy: Expression,
    ) -> Expression:
        """Return 1 / tau; tau = tau_0 ratio, the solution of tau = tau_0 + nu_t / cs2."""
        squares = sum((1 if a == b else 2) * value**2 for (a, b), value in stress.items())
        size = let("stress_size", squares ** Fraction(1, 2))
        ratio = (1 + (1 + eddy * omega**2 * size / rho) ** Fraction(1, 2)) / 2
        return let("omega_local", omega / ratio)

    def viscosity(self, lattice: Lattice, strain: Strain, nu: Any) -> NDArray[Any]:
        """Nu + constant^2 |S|."""
        return nu + self.constant**2 * shear_rate(lattice, strain)
