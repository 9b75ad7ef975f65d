"""Lattice units: Reynolds and Mach number, viscosity, relaxation time, conversion to SI.

Lengths are in cells, times in steps; nu = cs2 (tau - 1/2).
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np

Number = TypeVar("Number", float, "np.ndarray")
Dimension = tuple[float, ...]  # powers of metre, second, kilogram (and kelvin)
LENGTH, AREA, TIME, DENSITY = (1, 0, 0), (2, 0, 0), (0, 1, 0), (-3, 0, 1)
VELOCITY, VISCOSITY = (1, -1, 0), (2, -1, 0)
FORCE, TORQUE, PRESSURE, FORCE_DENSITY = (1, -2, 1), (2, -2, 1), (-1, -2, 1), (-2, -2, 1)

# dimension and name of the SI unit of each field in files
FIELDS: dict[str, tuple[Dimension, str]] = {
    "rho": (DENSITY, "kg/m^3"),
    "u": (VELOCITY, "m/s"),
    "vorticity": ((0, -1, 0), "1/s"),
    "q_criterion": ((0, -2, 0), "1/s^2"),
    "pressure": (PRESSURE, "Pa"),
    "reynolds_stress": ((2, -2, 0), "m^2/s^2"),
}
LATTICE_UNIT = "lattice unit"  # attribute of a dataset in SI: the SI value of its lattice unit


@dataclass(frozen=True)
class Units:
    """SI values of the lattice units: side of a cell in m, step in s, rho = 1 in kg/m^3."""

    cell: float
    step: float
    density: float

    def unit(self, dimension: Dimension) -> float:
        """The SI value of the lattice unit of a quantity."""
        metres, seconds, kilograms = dimension[:3]
        # one power of the cell, so that no rounding remains where powers cancel
        return self.cell ** (metres + 3 * kilograms) * self.step**seconds * self.density**kilograms

    def to_si(self, value: Number, dimension: Dimension) -> Number:
        """A value in lattice units, converted to SI."""
        return value * self.unit(dimension)

    def to_lattice(self, value: Number, dimension: Dimension) -> Number:
        """A value in SI, converted to lattice units."""
        return value / self.unit(dimension)


def lattice_text(dimension: Dimension) -> str:
    """The lattice unit of a quantity in words, such as "rho_0 cells^4/step" of a momentum."""
    metres, seconds, kilograms = dimension[:3]
    powers = (("rho_0", kilograms), ("cells", metres + 3 * kilograms), ("step", seconds))
    above, below = (
        [f"{name}^{abs(n):g}" if abs(n) != 1 else name for name, n in powers if n * sign > 0]
        for sign in (1, -1)
    )
    return "/".join([" ".join(above) or "1", *below])


def si_text(name: str) -> str:
    """The SI unit in the name of a column: kg m/s of kg_m_per_s."""
    text = f" {name}".replace("_per_", "/").replace(" per_", "1/").replace("_", " ").strip()
    return re.sub("([a-z])([2-9])", r"\1^\2", text)


def field_unit(units: Units | None, field: str) -> tuple[float, str]:
    """The SI value of the lattice unit of a field, and its SI unit; (1, "") without one.

    The density of one of several fluids is rho_<label>. Order parameters have no unit.
    """
    known = FIELDS.get("rho" if field.startswith("rho_") else field)
    if units is None or known is None:
        return 1.0, ""
    return units.unit(known[0]), known[1]


def viscosity_from_reynolds(reynolds: float, length: float, velocity: float) -> float:
    """Nu = velocity length / reynolds."""
    return velocity * length / reynolds


def reynolds(viscosity: float, length: float, velocity: float) -> float:
    """Re = velocity length / nu; with length = 1 the grid Reynolds number."""
    return velocity * length / viscosity


def tau_from_viscosity(nu: Number, cs2: float | Fraction = 1 / 3) -> Number:
    """Tau = nu / cs2 + 1/2."""
    return nu / float(cs2) + 0.5


def omega_from_viscosity(nu: float, cs2: float | Fraction = 1 / 3) -> float:
    """Omega = 1 / tau."""
    return 1 / tau_from_viscosity(nu, cs2)


def mach(velocity: float, cs2: float | Fraction = 1 / 3) -> float:
    """Ma = velocity / cs."""
    return velocity / sqrt(float(cs2))


def counted(number: int, noun: str) -> str:
    """A count with its noun: 1 rank, 2 ranks, 1,234 entries."""
    many = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number:,} {noun if number == 1 else many}"


def duration(seconds: float) -> str:
    """`90 s`, `5 min` or `2.1 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def in_words(count: float) -> str:
    """A number of bytes in B, kB, MB, GB or TB, which are powers of 1000."""
    if count < 1000:
        return f"{count:.0f} B"
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if count < 1000:
            return f"{count:.3g} {unit}"
    return f"{count / 1000:.3g} TB"
