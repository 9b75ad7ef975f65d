"""SI values of the lattice units; density and viscosity of water and air."""

from collections.abc import Callable
from dataclasses import dataclass
from math import fsum, sqrt
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from mpilbm.case.tables import Scale
from mpilbm.core import quantity
from mpilbm.core.quantity import in_si
from mpilbm.core.registry import Parameters
from mpilbm.core.units import DENSITY, LENGTH, TIME, VELOCITY, Units

ZERO_CELSIUS = 273.15  # K
ATMOSPHERE = 101325.0  # Pa


@dataclass(frozen=True)
class Substance:
    """Properties at T degrees Celsius, least <= T <= most.

    Density in kg/m^3, dynamic viscosity in Pa s and speed of sound in m/s.
    """

    density: Callable[[float], float]
    viscosity: Callable[[float], float]
    sound: Callable[[float], float]
    least: float
    most: float


def water_density(T: float) -> float:
    """Return the density of air-free water in kg/m^3, 0 to 100 °C.

    [Kell 1975, J. Chem. Eng. Data 20, 97, eq. 16]
    """
    above = fsum(
        a * T**k
        for k, a in enumerate(
            (999.83952, 16.945176, -7.9870401e-3, -46.170461e-6, 105.56302e-9, -280.54253e-12)
        )
    )
    return above / (1 + 16.879850e-3 * T)


def water_viscosity(T: float) -> float:
    """Return sum_i a_i (T/300 K)^b_i in 1e-6 Pa s, with an error of 1 %.

    [IAPWS SR6-08(2011), Liquid water at 0.1 MPa, eq. 7]
    """
    tau = (T + ZERO_CELSIUS) / 300
    terms = ((280.68, -1.9), (511.45, -7.7), (61.131, -19.6), (0.45903, -40.0))
    return 1e-6 * fsum(a * tau**b for a, b in terms)


def air_density(T: float) -> float:
    """Return p / (R T) of dry air at one atmosphere, R = 287.05 J/(kg K)."""
    return ATMOSPHERE / (287.05287 * (T + ZERO_CELSIUS))


def air_viscosity(T: float) -> float:
    """Return beta T^(3/2) / (T + S), beta = 1.458e-6 kg/(m s K^(1/2)), S = 110.4 K.

    [U.S. Standard Atmosphere 1976, eq. 51]
    """
    kelvin = T + ZERO_CELSIUS
    return 1.458e-6 * kelvin**1.5 / (kelvin + 110.4)


def water_sound(T: float) -> float:
    """Return the speed of sound in air-free water in m/s, 0 to 100 °C.

    [Del Grosso & Mader 1972, J. Acoust. Soc. Am. 52, 1442]
    """
    return fsum(
        a * T**k
        for k, a in enumerate(
            (1402.388, 5.03711129, -5.80852166e-2, 3.34198834e-4, -1.47800417e-6, 3.14643091e-9)
        )
    )


def air_sound(T: float) -> float:
    """Return sqrt(1.4 R T) of dry air."""
    return sqrt(1.4 * 287.05287 * (T + ZERO_CELSIUS))


SUBSTANCES = {
    "water": Substance(water_density, water_viscosity, water_sound, 0, 100),
    "air": Substance(air_density, air_viscosity, air_sound, -70, 500),
}


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

    @property
    def sound(self) -> float | None:
        """The speed of sound in `fluid` in m/s; None without one."""
        return SUBSTANCES[self.fluid].sound(self.temperature) if self.fluid else None

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
