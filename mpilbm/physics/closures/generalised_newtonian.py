"""Generalised Newtonian fluids: the viscosity is a function of the shear rate in the cell.

To add a fluid, derive from `GeneralisedNewtonian`, or from `YieldStress`, and define `numbers` and
`flow_curve`.
"""

from collections.abc import Mapping
from fractions import Fraction
from math import inf, log, log2
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mpilbm.core.formulas.trees import (
    binary_log,
    largest,
    power_of_two,
    power_of_two_less_one,
    smallest,
)
from mpilbm.core.quantity import STEPS, STRESS, VISCOSITY, Quantity, consistency
from mpilbm.model.case import Case
from mpilbm.model.expressions import Expression, Let, Stress
from mpilbm.physics.closures import Closure, Strain, shear_rate
from mpilbm.physics.lattices import Lattice

NEWTON_STEPS = 6
LEAST_STRESS = 1e-20  # of stress / rho, so that its logarithm is finite in a fluid at rest


class GeneralisedNewtonian(Closure):
    """nu(gamma) between viscosity_min and viscosity_max, gamma = sqrt(2 S_ab S_ab).

    S is the rate of strain without its trace. The stress of the cell depends on nu and on S:

        P = |stress| / (sqrt(2) rho) = (nu(gamma) + cs2 / 2) gamma

    The kernel solves this equation in each cell for s = log2(gamma / P), by Newton's method for
    s + log2(nu + cs2 / 2) = 0. s is kept between the values of the two limits of the viscosity. Six
    steps from the middle of this interval give nu to a relative error of 1e-14 in float64 with the
    default limits, and 1e-5 with limits of 1e-5 and 30. Nothing is kept from step to step.
    """

    viscosities: ClassVar[tuple[str, ...]] = ()  # fields that must be within the limits

    viscosity_min: Annotated[float, VISCOSITY] = Field(
        1e-3, gt=0, description="lower limit of the viscosity"
    )
    viscosity_max: Annotated[float, VISCOSITY] = Field(
        3.0, gt=0, description="upper limit of the viscosity"
    )

    def numbers(self) -> dict[str, float]:
        """The parameters of the flow curve, arguments of the kernel."""
        raise NotImplementedError

    def flow_curve(self, x: Expression, *_: Any, **numbers: Any) -> tuple[Expression, Expression]:
        """Return nu and d(nu gamma)/d gamma without limits at gamma = 2**x.

        `x` is a number, an array or an expression.
        """
        raise NotImplementedError

    def arguments(self, lattice: Lattice) -> dict[str, float]:
        """The parameters of the flow curve, the limits and the interval of s."""
        half = float(lattice.cs2) / 2
        low, high = self.viscosity_min, self.viscosity_max
        return self.numbers() | {
            "nu_min": low,
            "nu_max": high,
            "guess_min": -log2(high + half),
            "guess_max": -log2(low + half),
        }

    def omega(
        self,
        lattice: Lattice,
        stress: Stress,
        rho: Expression,
        omega: Expression,
        let: Let,
        nu_min: Expression,
        nu_max: Expression,
        guess_min: Expression,
        guess_max: Expression,
        **numbers: Expression,
    ) -> Expression:
        """Return cs2 / (nu + cs2 / 2), nu from Newton's method for s = log2(gamma / P)."""
        half, start = lattice.cs2 / 2, Fraction(1, 2)
        squares = sum((1 if a == b else 2) * value**2 for (a, b), value in stress.items())
        P = let("stress_size", (squares / 2) ** Fraction(1, 2) / rho)
        log_P = let("stress_log", binary_log(largest(P, LEAST_STRESS)))
        s = let("guess_0", (guess_min + guess_max) * start)
        for k in range(1, NEWTON_STEPS + 1):
            nu, slope = self.flow_curve(log_P + s, **numbers)
            nu, slope = let(f"nu_{k}", nu + half), let(f"slope_{k}", slope + half)
            s = s - (s + binary_log(nu)) * nu / slope
            s = let(f"guess_{k}", smallest(largest(s, guess_min), guess_max))
        nu = self.flow_curve(log_P + s, **numbers)[0]
        nu = let("nu_local", smallest(largest(nu, nu_min), nu_max))
        return let("omega_local", lattice.cs2 / (nu + half))

    def viscosity(self, lattice: Lattice, strain: Strain, nu: Any) -> NDArray[Any]:
        """Nu within its limits, from the rate of strain; `nu` of the fluid is not used."""
        x = np.log2(np.maximum(shear_rate(lattice, strain), LEAST_STRESS))
        return np.clip(
            self.flow_curve(x, **self.numbers())[0], self.viscosity_min, self.viscosity_max
        )

    def limits(self) -> tuple[float, float]:
        """The limits of the flow curve between viscosity_min and viscosity_max."""
        return tuple(np.clip(self.curve_limits(), self.viscosity_min, self.viscosity_max).tolist())

    def curve_limits(self) -> tuple[float, float]:
        """The least and the largest viscosity of the flow curve."""
        return 0.0, inf

    def problems(self, case: Case) -> list[str]:
        """Limits in the wrong order; viscosities of the fluid or of the closure outside them."""
        low, high = self.viscosity_min, self.viscosity_max
        if low > high:
            return [
                f"viscosity_min: found {low:g}, but viscosity_max is {high:g}; viscosity_min "
                "must not be larger; change one of them"
            ]
        fluids = [fluid for fluid in case.fluids if fluid.collision.closure is self]
        given = [("found a fluid of viscosity ", fluid.viscosity) for fluid in fluids]
        given += [(f"{name}: found ", getattr(self, name)) for name in self.viscosities]
        return [
            f"{found}{value:g}; allowed: viscosity_min = {low:g} to viscosity_max = {high:g}, in "
            "lattice units; change it, or these limits of the closure"
            for found, value in given
            if not low * (1 - 1e-9) <= value <= high * (1 + 1e-9)
        ]


def power_viscosity(x: Expression, consistency: Expression, index: Expression) -> Expression:
    """Consistency gamma^(index - 1) at gamma = 2**x."""
    return consistency * power_of_two((index - 1) * x)


def consistency_of(table: Mapping[str, Any]) -> dict[str, Quantity]:
    """The quantity of the key `consistency` in a table with a valid index."""
    index = table.get("index")
    if not isinstance(index, int | float) or not 0 < index < 3:
        return {}
    return {"consistency": consistency(index)}


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
