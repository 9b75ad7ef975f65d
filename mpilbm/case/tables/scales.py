"""SI values of the lattice units."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from mpilbm.case.tables.substances import SUBSTANCES
from mpilbm.case.tables.values import Scale
from mpilbm.core import quantity
from mpilbm.core.quantity import in_si
from mpilbm.core.registry import Parameters
from mpilbm.core.units import DENSITY, LENGTH, TIME, VELOCITY, Units


class UnitsTable(Parameters):
    """SI values of the lattice units: side of a cell in m, step in s, rho = 1 in kg/m^3.

    `velocity`, the speed of one cell per step in m/s, may be given in place of `step`. `fluid`
    sets `density`, and `fluid.viscosity` unless the case gives it: water at 0 to 100 °C (density
    of Kell 1975, viscosity of IAPWS SR6-08), dry air at -70 to 500 °C (ideal gas, viscosity of
    Sutherland), both at one atmosphere.
    """

    cell: Annotated[Scale, in_si("m", "1 mm", LENGTH)] = Field(
        description="side of a cell", examples=["1 mm"]
    )
    step: Annotated[Scale | None, in_si("s", "50 us", TIME)] = Field(
        None, description="duration of a step; or give velocity", examples=["50 us"]
    )
    velocity: Annotated[Scale | None, in_si("m/s", "20 m/s", VELOCITY)] = Field(
        None, description="speed of one cell per step; or give step", examples=["20 m/s"]
    )
    density: Annotated[Scale | None, in_si("kg/m^3", "998 kg/m^3", DENSITY)] = Field(
        None, description="density of rho = 1; or give fluid", examples=["998 kg/m^3"]
    )
    fluid: Literal["water", "air"] | None = Field(
        None, description="fluid that sets density and viscosity", examples=["water"]
    )
    temperature: Annotated[float, quantity.CELSIUS] = Field(
        20.0, description="temperature of fluid in degrees Celsius", examples=["20 degC"]
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        """Either step or velocity; a density or a fluid at a valid temperature."""
        if (self.step is None) == (self.velocity is None):
            found = "neither" if self.step is None else "both"
            raise ValueError(
                f"has {found} of step and velocity; give one: the duration of a step in s, or the "
                "speed of one cell per step in m/s"
            )
        if self.fluid is None:
            if self.density is None:
                raise ValueError(
                    "has neither density nor fluid; write density = 1000, kg/m^3 of rho = 1, or "
                    'fluid = "water"'
                )
            if "temperature" in self.model_fields_set:
                raise ValueError(
                    'has temperature but no fluid; add fluid = "water" or "air", or remove '
                    "temperature"
                )
            return self
        least, most = SUBSTANCES[self.fluid].least, SUBSTANCES[self.fluid].most
        if not least <= self.temperature <= most:
            raise ValueError(
                f"has {self.fluid} at temperature = {self.temperature:g} degC; allowed: {least} to "
                f"{most} degC; change it, or give density and fluid.viscosity instead of fluid"
            )
        return self

    @property
    def kinematic_viscosity(self) -> float | None:
        """The viscosity of `fluid` in m^2/s; None without one."""
        if self.fluid is None:
            return None
        fluid = SUBSTANCES[self.fluid]
        return fluid.viscosity(self.temperature) / fluid.density(self.temperature)

    def checked(self) -> Units:
        """The units, whichever keys give them."""
        density = self.density
        if density is None:
            assert self.fluid is not None  # by _one_way
            density = SUBSTANCES[self.fluid].density(self.temperature)
        if self.step is not None:
            return Units(self.cell, self.step, density)
        assert self.velocity is not None  # by _one_way
        return Units(self.cell, self.cell / self.velocity, density)
