"""Numbers with an SI unit in a case, such as "1e-6 m^2/s", and their conversion to lattice units.

A number without a unit is always in lattice units.
"""

import re
from math import isfinite
from typing import Any

from mpilbm.case.tables import case_file
from mpilbm.case.tables.scales import UnitsTable
from mpilbm.system.toml_text import shown
from mpilbm.units import (
    AREA,
    DENSITY,
    FORCE_DENSITY,
    LENGTH,
    VELOCITY,
    VISCOSITY,
    Dimension,
    Units,
)

# keys whose value may have a unit: dimension, and an example
KEYS: dict[str, tuple[Dimension, str]] = {
    "viscosity": (VISCOSITY, "1e-6 m^2/s"),
    "velocity": (VELOCITY, "0.2 m/s"),
    "u": (VELOCITY, "0.2 m/s"),
    "rho": (DENSITY, "998 kg/m^3"),
    "rho_jump": (DENSITY, "0.5 kg/m^3"),
    "value": (FORCE_DENSITY, "9810 N/m^3"),
    "area": (AREA, "2 cm^2"),
} | dict.fromkeys(
    ("length", "centre", "radius", "tube", "lower", "upper", "point", "at"), (LENGTH, "25 mm")
)
SYMBOLS: dict[str, tuple[float, Dimension]] = {
    "m": (1, (1, 0, 0)),
    "cm": (1e-2, (1, 0, 0)),
    "mm": (1e-3, (1, 0, 0)),
    "um": (1e-6, (1, 0, 0)),
    "s": (1, (0, 1, 0)),
    "ms": (1e-3, (0, 1, 0)),
    "kg": (1, (0, 0, 1)),
    "g": (1e-3, (0, 0, 1)),
    "N": (1, (1, -2, 1)),
    "Pa": (1, (-1, -2, 1)),
}
QUANTITY = re.compile(
    r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?:\s+|(?![eE]))([A-Za-z]\S*)\s*"
)
FACTOR = re.compile(r"([*/]?)([A-Za-z]+)(?:\^(-?\d))?")


class UnitError(ValueError):
    """A unit that cannot be read."""


def unit(text: str) -> tuple[float, Dimension]:
    """SI value and dimension of a unit such as kg/m^3; raises UnitError."""
    if "".join(match[0] for match in FACTOR.finditer(text)) != text:
        raise UnitError(f"'{text}' is not a unit")
    value, metres, seconds, kilograms = 1.0, 0, 0, 0
    for sign, symbol, power in FACTOR.findall(text):
        if symbol not in SYMBOLS:
            raise UnitError(f"unknown unit '{symbol}'; allowed: {', '.join(SYMBOLS)}")
        factor, dimension = SYMBOLS[symbol]
        exponent = int(power or 1) * (-1 if sign == "/" else 1)
        value *= factor**exponent
        metres += exponent * dimension[0]
        seconds += exponent * dimension[1]
        kilograms += exponent * dimension[2]
    return value, (metres, seconds, kilograms)


def in_lattice_units(tables: dict) -> tuple[dict, list[str]]:
    """The tables of a case with all quantities in lattice units, and the problems, one per line."""
    given = tables.get("units")
    try:
        units = UnitsTable.model_validate(given).checked() if given is not None else None
    except ValueError:  # reported with the other keys
        units = Units(1, 1, 1)
    problems: list[str] = []
    found = {
        key: value if key == "units" else _converted(value, key, key, units, problems)
        for key, value in tables.items()
    }
    return found, problems


def _converted(value: Any, key: str, path: str, units: Units | None, problems: list[str]) -> Any:
    """A value of the key `key`, and all values in it, in lattice units."""
    if isinstance(value, dict):
        return {
            name: _converted(item, name, f"{path}.{name}", units, problems)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [
            _converted(item, key, f"{path}.{k}", units, problems) for k, item in enumerate(value)
        ]
    match = QUANTITY.fullmatch(value) if isinstance(value, str) and key in KEYS else None
    if not match:
        return value
    try:
        return _number(float(match[1]), match[2], key, units)
    except UnitError as error:
        problems.append(f"{path}: found {shown(value)}{error}")
        return 1e-3  # a placeholder, so that the other problems can be reported


def _number(number: float, symbol: str, key: str, units: Units | None) -> float:
    """A number with a unit, in lattice units.

    Raises UnitError, whose text follows the value found in the message.
    """
    dimension, example = KEYS[key]
    try:
        factor, found = unit(symbol)
    except UnitError as error:
        raise UnitError(f': {error}; write it as "{example}"') from None
    if found != dimension:
        raise UnitError(f'; allowed: the unit of "{example}", or a number in lattice units')
    if units is None:
        raise UnitError(
            ", but the case has no [units]; add [units] with cell = 0.001 (m), step = 1e-4 (s), "
            "density = 1000 (kg/m^3)"
        )
    value = units.to_lattice(number * factor, dimension)
    if not isfinite(value):
        raise UnitError(
            f", which is {value:g} in lattice units; allowed: finite numbers; change it or [units]"
        )
    return value


def schema() -> dict[str, Any]:
    """JSON schema of a case file in which the values of KEYS may have a unit."""
    plain = case_file.schema()
    found = _with_quantities(plain, "")
    found["$defs"]["UnitsTable"] = plain["$defs"]["UnitsTable"]
    return found


def _with_quantities(part: Any, key: str) -> Any:
    """The part of the schema that belongs to `key`; quantities are allowed in it."""
    if isinstance(part, list):
        return [_with_quantities(each, key) for each in part]
    if not isinstance(part, dict):
        return part
    if key in KEYS and part.get("type") == "number":
        return {"anyOf": [part, {"type": "string", "pattern": f"^{QUANTITY.pattern}$"}]}
    found = {name: _with_quantities(each, key) for name, each in part.items()}
    if key in KEYS and "oneOf" in found:  # a number with a unit also matches as a formula
        found["anyOf"] = found.pop("oneOf")
    for table in ("properties", "$defs"):
        if table in part:
            found[table] = {
                name: _with_quantities(each, name) for name, each in part[table].items()
            }
    return found
