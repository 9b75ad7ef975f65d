"""Herschel-Bulkley fluids: a yield stress and a power law."""

from typing import Annotated, Any

from pydantic import Field

from mpilbm.core import quantity
from mpilbm.core.registry import register
from mpilbm.model.expressions import Expression
from mpilbm.physics.closures.generalised_newtonian import (
    YieldStress,
    consistency_of,
    power_viscosity,
    yield_viscosity,
)


@register("closures", "herschel_bulkley")
class HerschelBulkley(YieldStress):
    """nu = yield_stress (1 - exp(-exponent gamma)) / gamma + consistency gamma^(index - 1).

    With the regularisation of Papanastasiou, between viscosity_min and viscosity_max; see
    `bingham`, which is the same with index = 1. The viscosity of the fluid is only a reference, for
    the Reynolds number. [Herschel & Bulkley 1926, Kolloid-Z. 39, 291; Papanastasiou 1987, J. Rheol.
    31, 385]
    """

    consistency: Annotated[float, quantity.consistency(0.5)] = Field(
        gt=0, description="stress / density at the shear rate 1", examples=[0.01]
    )
    index: float = Field(gt=0, lt=3, description="exponent of the shear rate", examples=[0.6])

    @classmethod
    def quantities(cls, table: dict[str, Any]) -> dict[str, quantity.Quantity]:
        """The unit of the consistency depends on the index."""
        return consistency_of(table)

    def numbers(self) -> dict[str, float]:
        """Yield stress, exponent, consistency and index."""
        return self.yield_numbers() | {"consistency": self.consistency, "index": self.index}

    def flow_curve(
        self, x: Expression, consistency: Expression, index: Expression, **numbers: Expression
    ) -> tuple[Expression, Expression]:
        """Nu and d(nu gamma)/d gamma: those of the yield stress plus those of the power law."""
        nu, slope = yield_viscosity(x, **numbers)
        power = power_viscosity(x, consistency, index)
        return nu + power, slope + index * power
