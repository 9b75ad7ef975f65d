"""Density and viscosity of water and air at atmospheric pressure, from the temperature."""

from collections.abc import Callable
from dataclasses import dataclass
from math import fsum

ZERO_CELSIUS = 273.15  # K
ATMOSPHERE = 101325.0  # Pa


@dataclass(frozen=True)
class Substance:
    """Density in kg/m^3 and dynamic viscosity in Pa s at T degrees Celsius, least <= T <= most."""

    density: Callable[[float], float]
    viscosity: Callable[[float], float]
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


SUBSTANCES = {
    "water": Substance(water_density, water_viscosity, 0, 100),
    "air": Substance(air_density, air_viscosity, -70, 500),
}
