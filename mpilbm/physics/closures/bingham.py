"""Bingham fluids: a yield stress and a constant plastic viscosity."""

from typing import Annotated

from pydantic import Field

from mpilbm.core.quantity import VISCOSITY
from mpilbm.core.registry import register
from mpilbm.model.expressions import Expression
from mpilbm.physics.closures.generalised_newtonian import YieldStress, yield_viscosity


@register("closures", "bingham")
class Bingham(YieldStress):
    """nu = yield_stress (1 - exp(-exponent gamma)) / gamma + plastic_viscosity.

    The regularisation of Papanastasiou: at rest nu is yield_stress exponent + plastic_viscosity, or
    viscosity_max if this is smaller. The flow of the ideal fluid is approached for exponent gamma
    >> 1 in the sheared regions; the plug then creeps at the rate yield_stress / viscosity_max. The
    viscosity of the fluid is only a reference, for the Reynolds number.
    [Papanastasiou 1987, J. Rheol. 31, 385]
    """

    plastic_viscosity: Annotated[float, VISCOSITY] = Field(
        gt=0, description="viscosity in addition to the yield stress", examples=[0.02]
    )

    viscosities = ("plastic_viscosity",)

    def curve_limits(self) -> tuple[float, float]:
        """At large shear rates and at rest."""
        low = self.plastic_viscosity
        return low, low + self.yield_stress * self.exponent

    def numbers(self) -> dict[str, float]:
        """Yield stress, exponent and plastic viscosity."""
        return self.yield_numbers() | {"plastic": self.plastic_viscosity}

    def flow_curve(
        self, x: Expression, plastic: Expression, **numbers: Expression
    ) -> tuple[Expression, Expression]:
        """Nu and d(nu gamma)/d gamma: those of the yield stress plus the plastic viscosity."""
        nu, slope = yield_viscosity(x, **numbers)
        return nu + plastic, slope + plastic
