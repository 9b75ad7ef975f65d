"""The power law: a stress proportional to a power of the shear rate."""

from typing import Annotated, Any

from pydantic import Field

from mpilbm.core import quantity
from mpilbm.core.registry import register
from mpilbm.model.expressions import Expression
from mpilbm.physics.closures.generalised_newtonian import (
    GeneralisedNewtonian,
    consistency_of,
    power_viscosity,
)


@register("closures", "power_law")
class PowerLaw(GeneralisedNewtonian):
    """nu = consistency gamma^(index - 1), between viscosity_min and viscosity_max.

    Shear-thinning for index < 1, Newtonian for 1, shear-thickening above. gamma is sqrt(2 S_ab
    S_ab). Without limits the viscosity of a fluid at rest is infinite or zero. The viscosity of the
    fluid is only a reference, for the Reynolds number. [Ostwald 1925, Kolloid-Z. 36, 99]
    """

    consistency: Annotated[float, quantity.consistency(0.5)] = Field(
        gt=0, description="stress / density at the shear rate 1", examples=[0.01]
    )
    index: float = Field(gt=0, lt=3, description="exponent of the shear rate", examples=[0.5])

    @classmethod
    def quantities(cls, table: dict[str, Any]) -> dict[str, quantity.Quantity]:
        """The unit of the consistency depends on the index."""
        return consistency_of(table)

    def numbers(self) -> dict[str, float]:
        """Consistency and index."""
        return {"consistency": self.consistency, "index": self.index}

    def flow_curve(
        self, x: Expression, consistency: Expression, index: Expression
    ) -> tuple[Expression, Expression]:
        """Nu and d(nu gamma)/d gamma = index nu."""
        nu = power_viscosity(x, consistency, index)
        return nu, index * nu
