"""Quantities of a case in lattice units: "1e-6 m^2/s" becomes a number.

The annotation of a field says which quantities it accepts, see mpilbm/core/quantity.py. A number
without a unit is in lattice units (in [units] in SI).
"""

import re
from functools import cache
from math import inf, isfinite
from typing import Any

from mpilbm.case.tables.case_file import CaseFile
from mpilbm.case.tables.units import UnitsTable
from mpilbm.case.typed_keys import Kind, converted, resolved
from mpilbm.core.formulas.values import is_file
from mpilbm.core.printable import shown
from mpilbm.core.quantity import NUMBER, SYMBOL, UNIT, Form, Quantity, whole_type
from mpilbm.core.units import VISCOSITY, Dimension, Units
from mpilbm.model.findings import NOTE, WARNING, Finding

BASES = ("[length]", "[time]", "[mass]", "[temperature]")
SYMBOLS = ("m", "s", "kg", "K")  # of the bases
LONGEST = 80  # characters
FREQUENCY = r"\b[a-zA-Zµμ]*(?:Hz|hertz)\b"  # pint takes 1 Hz for 1 rad/s
# A number and anything that begins as a unit: no valid formula has this form.
LIKE_A_QUANTITY = rf"\s*({NUMBER})(?:\s+|(?![eE]))((?:1\s*/\s*)?[A-Za-zµμΩ°].*?)\s*"


class UnitError(ValueError):
    """A unit that cannot be read; the text follows the value found in a message."""


def parts(text: object) -> tuple[float, str] | None:
    """The number and the unit of a quantity; None for anything else, such as a formula."""
    if not isinstance(text, str) or is_file(text):
        return None
    match = re.fullmatch(LIKE_A_QUANTITY, text)
    return (float(match[1]), match[2]) if match else None


def in_si(number: float, unit: str) -> tuple[float, Dimension]:
    """A number with a unit in SI (angles in rad, temperatures in K), and its dimension.

    Raises UnitError.
    """
    if len(unit) > LONGEST or not re.fullmatch(UNIT, unit):
        raise UnitError(f"'{unit[:LONGEST]}' is not a unit")
    if re.search(FREQUENCY, unit):
        raise UnitError(f"'{unit}' is a frequency; an angular velocity is in rad/s or rpm")
    try:
        found = _registry().Quantity(number, _registry().parse_units(unit)).to_base_units()
    except Exception:  # pint raises errors of many classes
        unknown = [each for each in re.findall(SYMBOL, unit) if not _is_known(each)]
        if unknown:
            raise UnitError(
                f"unknown unit '{unknown[0]}'; allowed: SI units with prefixes such as m, mm, s, "
                "ms, kg, N, Pa, mPa, bar, and h, min, rpm, deg, degC"
            ) from None
        raise UnitError(f"'{unit}' is not a unit") from None
    powers = dict(found.dimensionality)
    if not set(powers) <= set(BASES):
        raise UnitError(f"'{unit}' is not a unit of length, time, mass and temperature")
    if any(power != int(power) for base, power in powers.items() if base != "[time]"):
        raise UnitError(f"'{unit}' has powers of the base units that are no whole numbers")
    dimension = tuple(round(float(powers.get(base, 0)), 6) for base in BASES)
    return float(found.magnitude), dimension if dimension[3] else dimension[:3]


def in_words(dimension: Dimension) -> str:
    """A dimension as a unit in SI: m^2/s."""

    def product(sign: int) -> str:
        found = [(s, p * sign) for s, p in zip(SYMBOLS, dimension, strict=False) if p * sign > 0]
        return " ".join(s if p == 1 else f"{s}^{p:g}" for s, p in found)

    above, below = product(1), product(-1)
    if not below:
        return above or "1"
    return f"{above or '1'}/{below if ' ' not in below else f'({below})'}"


def _is_known(symbol: str) -> bool:
    try:
        _registry().parse_units(symbol)
    except Exception:  # as above
        return False
    return True


@cache
def _registry() -> Any:
    """The units of pint, imported when the first text with a unit is read: it takes 0.3 s."""
    import pint

    return pint.UnitRegistry()


LATTICE = whole_type(CaseFile.model_fields["lattice"])
ROUNDED = 0.01  # relative change of a number of cells or steps by rounding above which it warns
NOTED = 1e-6  # and above which it is noted
NO_UNITS = (
    ", but the case has no [units]; add [units] with cell = 0.001 (m), step = 1e-4 (s), "
    "density = 1000 (kg/m^3)"
)
INSTEAD = 1e-3  # of a wrong quantity, so that the other problems can be reported
ADVICE = (
    "; choose [units] and the length or time such that it is a whole number, or give the number"
)


def in_lattice_units(tables: dict) -> tuple[dict, list[str], list[Finding]]:
    """The tables of a case in lattice units, the problems, and findings on rounded numbers."""
    reading = Reading(None, 1 / 3)
    found = dict(tables)
    if "units" in tables:
        found["units"] = converted(tables["units"], reading.convert, UnitsTable, "units")
        reading.units, found = _units(found)
        reading.invalid_units = reading.units is None or bool(reading.problems)
    lattice = resolved(tables.get("lattice"), Kind(LATTICE))
    reading.cs2 = float(getattr(lattice.hint, "cs2", 1 / 3))
    reading.coupled = "coupling" in tables
    reading.capacities = _capacities(tables.get("scalar"))
    rest = {key: value for key, value in found.items() if key != "units"}
    found = {key: found[key] for key in found if key == "units"}
    return found | converted(rest, reading.convert), reading.problems, reading.findings


def _capacities(scalars: Any) -> dict[str, float]:
    """The heat capacities of the scalars that have one, by number and by label."""
    found: dict[str, float] = {}
    for number, table in enumerate(scalars if isinstance(scalars, list) else ()):
        given = table.get("heat_capacity") if isinstance(table, dict) else None
        try:
            text = parts(given)
            value = in_si(*text)[0] if text else given
        except UnitError:  # reported with the other keys
            continue
        if isinstance(value, int | float) and 0 < value < inf:
            found |= {f"scalar.{number}": float(value), str(table.get("label")): float(value)}
    return found


def units_of(tables: dict) -> Units | None:
    """The units of the tables of a case in lattice units; None without valid [units]."""
    try:
        return UnitsTable.model_validate(tables["units"]).checked()
    except (KeyError, ValueError):
        return None


def _units(tables: dict) -> tuple[Units | None, dict]:
    """The units of [units], None if they are invalid, and the tables with its fluid's viscosity."""
    try:
        table = UnitsTable.model_validate(tables["units"])
    except ValueError:  # reported with the other keys
        if isinstance(tables["units"], dict) and "fluid" in tables["units"]:
            tables = {"fluid": {"viscosity": INSTEAD}} | tables
        return None, tables
    units, fluid = table.checked(), tables.get("fluid", {})
    nu = table.kinematic_viscosity
    given = {"viscosity", "reynolds", "length", "velocity"}
    if nu is not None and isinstance(fluid, dict) and not given & set(fluid):
        tables = tables | {"fluid": fluid | {"viscosity": units.to_lattice(nu, VISCOSITY)}}
    return units, tables


class Reading:
    """Converts values by the annotations of their fields; collects problems and findings."""

    def __init__(self, units: Units | None, cs2: float):
        self.units, self.cs2, self.coupled = units, cs2, False
        self.capacities: dict[str, float] = {}  # see _capacities
        self.invalid_units = False  # then quantities are not converted
        self.problems: list[str] = []
        self.findings: list[Finding] = []

    def convert(self, value: Any, kind: Kind, path: str) -> Any:
        """A value with a unit in lattice units; all other values unchanged, see `converted`."""
        quantity = kind.quantity
        given = parts(value) if quantity and kind.fits(value) else None
        if given is None or quantity is None:
            return value
        whole = kind.hint is int
        try:
            found = self._number(*given, quantity, path)
            if found is not None:
                return self._whole(found, value, path) if whole else found
        except UnitError as error:
            self.problems.append(f"{path}: found {shown(value)}{error}")
        return 1 if whole else INSTEAD

    def _number(self, number: float, unit: str, quantity: Quantity, path: str) -> float | None:
        """A number with a unit as the number of a case; None if [units] is invalid.

        Raises UnitError.
        """
        examples = " or ".join(f'"{example}"' for example in quantity.examples)
        try:
            value, dimension = in_si(number, unit)
        except UnitError as error:
            raise UnitError(f": {error}; write it as {examples}") from None
        form = next((form for form in quantity.forms if form.dimension == dimension), None)
        if form is None:
            raise UnitError(
                f", of unit {in_words(dimension)}; allowed: the unit of {examples}, or a number "
                f"in {quantity.unit}"
            )
        return self._converted(form, value / self._capacity(path) if form.of_heat else value)

    def _capacity(self, path: str) -> float:
        """The heat capacity of the scalar at a key path: scalar.0.… or body.0.scalar.T.…"""
        table, number, *rest = path.split(".")
        key = f"scalar.{number}" if table == "scalar" else (*rest, "", "")[1]
        if key not in self.capacities:
            raise UnitError(
                ", a quantity of heat, and the scalar has no heat_capacity; add heat_capacity = "
                '"4.18e6 J/(m^3 K)" to [[scalar]]'
            )
        return self.capacities[key]

    def _converted(self, form: Form, value: float) -> float | None:
        if self.invalid_units and not form.absolute:
            return None
        if self.units is None and not form.absolute:
            raise UnitError(NO_UNITS)
        if form.one_fluid and self.coupled:
            raise UnitError(
                ", a pressure; allowed with [coupling]: a density, since the pressure of coupled "
                "fluids is not cs2 rho"
            )
        found = form.convert(value, self.units or Units(1, 1, 1), self.cs2)
        if not isfinite(found):
            raise UnitError(
                f", which is {found:g} in lattice units; allowed: finite numbers; change it or "
                "[units]"
            )
        return found

    def _whole(self, number: float, text: str, path: str) -> int:
        """The nearest integer; numbers between 0 and 1 are refused, large changes are reported."""
        if 0 < abs(number) < 1 - NOTED:
            raise UnitError(
                f", which is {number:.3g} in lattice units; allowed: 1 or more; change it or "
                "[units]"
            )
        found = round(number)
        change = abs(found - number) / abs(number or 1)
        if change > NOTED:
            self.findings.append(
                Finding(
                    WARNING if change > ROUNDED else NOTE,
                    path,
                    f"found {shown(text)}, which is {number:.6g} and is rounded to {found}, a "
                    f"change of {change:.2g}{ADVICE if change > ROUNDED else ''}",
                )
            )
        return found
