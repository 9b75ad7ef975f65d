"""Yield stresses, regularised as by Papanastasiou: what Bingham and Herschel-Bulkley share."""

from math import log
from typing import Annotated

from pydantic import Field

from mpilbm.core.formulas.functions import power_of_two, power_of_two_less_one
from mpilbm.core.quantity import STEPS, STRESS
from mpilbm.model.expressions import Expression
from mpilbm.physics.closures.generalised_newtonian import GeneralisedNewtonian


class YieldStress(GeneralisedNewtonian):
    """A fluid with the stress yield_stress (1 - exp(-exponent gamma)) and another part."""

    yield_stress: Annotated[float, STRESS] = Field(
        gt=0, description="stress below which the ideal fluid is rigid", examples=[1e-5]
    )
    exponent: Annotated[float, STEPS] = Field(
        gt=0, description="m of Papanastasiou's regularisation, a time", examples=[1e5]
    )

    def yield_numbers(self) -> dict[str, float]:
        """Yield stress and exponent, the latter for powers of two."""
        return {"yield_stress": self.yield_stress, "decay": self.exponent / log(2)}


def yield_viscosity(
    x: Expression, yield_stress: Expression, decay: Expression
) -> tuple[Expression, Expression]:
    """yield_stress (1 - exp(-m gamma)) / gamma and d(nu gamma)/d gamma at gamma = 2**x."""
    lost = power_of_two_less_one(-decay * power_of_two(x))
    nu = -yield_stress * lost * power_of_two(-x)
    return nu, yield_stress * decay * log(2) * (1 + lost)
