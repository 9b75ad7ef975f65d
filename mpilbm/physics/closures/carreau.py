"""The model of Carreau and Yasuda: a power law between two constant viscosities."""

from math import log2
from typing import Annotated

from pydantic import Field

from mpilbm.core.formulas.trees import log2 as log2_near_one
from mpilbm.core.formulas.trees import power_of_two
from mpilbm.core.quantity import STEPS, VISCOSITY
from mpilbm.core.registry import register
from mpilbm.model.expressions import Expression
from mpilbm.physics.closures.generalised_newtonian import GeneralisedNewtonian


@register("closures", "carreau")
class Carreau(GeneralisedNewtonian):
    """nu = nu_inf + (nu_0 - nu_inf) (1 + (time gamma)^a)^((index - 1) / a).

    nu_0 = viscosity_0 holds at rest and nu_inf = viscosity_inf at large shear rates; a = 2 is the
    model of Carreau. nu is kept between viscosity_min and viscosity_max. The viscosity of the fluid
    is only a reference, for the Reynolds number.
    [Carreau 1972, Trans. Soc. Rheol. 16, 99; Yasuda, Armstrong & Cohen 1981, Rheol. Acta 20, 163]
    """

    viscosity_0: Annotated[float, VISCOSITY] = Field(
        gt=0, description="viscosity at rest", examples=[0.1]
    )
    viscosity_inf: Annotated[float, VISCOSITY] = Field(
        gt=0, description="viscosity at large shear rates", examples=[0.005]
    )
    time: Annotated[float, STEPS] = Field(
        gt=0, description="time constant, 1 / shear rate of the transition", examples=[2000]
    )
    index: float = Field(gt=0, lt=3, description="exponent of the power law", examples=[0.4])
    a: float = Field(2.0, gt=0, le=20, description="exponent of Yasuda")

    viscosities = ("viscosity_0", "viscosity_inf")

    def curve_limits(self) -> tuple[float, float]:
        """The two constant viscosities."""
        low, high = sorted((self.viscosity_0, self.viscosity_inf))
        return low, high

    def numbers(self) -> dict[str, float]:
        """Parameters of the equation, with the logarithm of the time."""
        return {
            "nu_inf": self.viscosity_inf,
            "nu_change": self.viscosity_0 - self.viscosity_inf,
            "time_log": log2(self.time),
            "index": self.index,
            "yasuda": self.a,
            "outer": (self.index - 1) / self.a,
        }

    def flow_curve(
        self,
        x: Expression,
        nu_inf: Expression,
        nu_change: Expression,
        time_log: Expression,
        index: Expression,
        yasuda: Expression,
        outer: Expression,
    ) -> tuple[Expression, Expression]:
        """Nu = nu_inf + nu_change (1 + z)^outer, z = (time gamma)^a, and d(nu gamma)/d gamma."""
        z = power_of_two(yasuda * (x + time_log))
        part = nu_change * power_of_two(outer * log2_near_one(1 + z))
        return nu_inf + part, nu_inf + part * (1 + index * z) / (1 + z)
