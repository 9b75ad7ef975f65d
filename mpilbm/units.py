"""Lattice units: Reynolds and Mach number, viscosity, relaxation time, SI; pure functions.

Lengths in cells, times in steps; nu = cs2 (tau - 1/2).
"""

from dataclasses import dataclass
from math import sqrt

Dimension = tuple[int, int, int]  # powers of metre, second and kilogram
LENGTH, AREA, TIME, DENSITY = (1, 0, 0), (2, 0, 0), (0, 1, 0), (-3, 0, 1)
VELOCITY, VISCOSITY = (1, -1, 0), (2, -1, 0)
FORCE, TORQUE, PRESSURE, FORCE_DENSITY = (1, -2, 1), (2, -2, 1), (-1, -2, 1), (-2, -2, 1)


@dataclass(frozen=True)
class Scales:
    """SI values of a cell's side in m, of a step in s, and of rho = 1 in kg/m^3."""

    cell: float
    step: float
    density: float

    def unit(self, dimension: Dimension) -> float:
        """The lattice unit of a quantity in SI."""
        metres, seconds, kilograms = dimension
        # in one power of the cell, so that powers that cancel leave no rounding
        return self.cell ** (metres + 3 * kilograms) * self.step**seconds * self.density**kilograms

    def to_si(self, value, dimension: Dimension):
        """A number in lattice units, in SI."""
        return value * self.unit(dimension)

    def to_lattice(self, value, dimension: Dimension):
        """A number in SI, in lattice units."""
        return value / self.unit(dimension)


def viscosity_from_reynolds(reynolds: float, length: float, velocity: float) -> float:
    """Nu = velocity length / reynolds."""
    return velocity * length / reynolds


def reynolds(viscosity: float, length: float, velocity: float) -> float:
    """Re = velocity length / nu; also the grid Reynolds number, with length = 1."""
    return velocity * length / viscosity


def tau_from_viscosity(nu: float, cs2: float = 1 / 3) -> float:
    """Tau = nu / cs2 + 1/2."""
    return nu / float(cs2) + 0.5


def viscosity_from_tau(tau: float, cs2: float = 1 / 3) -> float:
    """Nu = cs2 (tau - 1/2)."""
    return float(cs2) * (tau - 0.5)


def omega_from_viscosity(nu: float, cs2: float = 1 / 3) -> float:
    """Omega = 1 / tau."""
    return 1 / tau_from_viscosity(nu, cs2)


def mach(velocity: float, cs2: float = 1 / 3) -> float:
    """Ma = velocity / cs."""
    return velocity / sqrt(float(cs2))


def counted(number: int, noun: str) -> str:
    """A number of things that a regular noun names: 1 rank, 2 ranks, 1,234 entries."""
    many = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number:,} {noun if number == 1 else many}"


def in_words(count: float) -> str:
    """Bytes in kB, MB, … of 1000."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            return f"{count:.0f} B" if unit == "B" else f"{count:.3g} {unit}"
        count /= 1000
