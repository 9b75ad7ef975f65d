"""Numbers with an SI unit in a case, as "1e-6 m^2/s": they become lattice units as it is read.

So each number says itself what it is: one without a unit is in lattice units, always.
"""

import re
from math import isfinite

from mpilbm.case import tables as case_file
from mpilbm.case.tables import Units
from mpilbm.system.toml_text import shown
from mpilbm.units import (
    AREA,
    DENSITY,
    FORCE_DENSITY,
    LENGTH,
    VELOCITY,
    VISCOSITY,
    Dimension,
    Scales,
)

# keys that may have a unit, with an example each
KEYS = {
    "viscosity": (VISCOSITY, "1e-6 m^2/s"),
    "velocity": (VELOCITY, "0.2 m/s"),
    "u": (VELOCITY, "0.2 m/s"),
    "rho": (DENSITY, "998 kg/m^3"),
    "rho_jump": (DENSITY, "0.5 kg/m^3"),
    "value": (FORCE_DENSITY, "9810 N/m^3"),
    "area": (AREA, "2 cm^2"),
} | dict.fromkeys(
    ("length", "centre", "radius", "tube", "lower", "upper", "point"), (LENGTH, "25 mm")
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
    """Value in SI and dimension of a unit like kg/m^3; raises UnitError."""
    if "".join(match[0] for match in FACTOR.finditer(text)) != text:
        raise UnitError(f"'{text}' is no unit")
    value, powers = 1.0, [0, 0, 0]
    for sign, symbol, power in FACTOR.findall(text):
        if symbol not in SYMBOLS:
            raise UnitError(f"unknown unit '{symbol}'; allowed: {', '.join(SYMBOLS)}")
        factor, dimension = SYMBOLS[symbol]
        exponent = int(power or 1) * (-1 if sign == "/" else 1)
        value *= factor**exponent
        powers = [p + exponent * d for p, d in zip(powers, dimension, strict=True)]
    return value, tuple(powers)


def in_lattice_units(tables: dict) -> tuple[dict, list[str]]:
    """The tables of a case with lattice units in place of SI, and what is wrong, a line each."""
    given, problems = tables.get("units"), []
    try:
        scales = Units.model_validate(given).scales() if given is not None else None
    except ValueError:  # is reported with the other keys
        scales = Scales(1, 1, 1)
    found = {
        key: value if key == "units" else _converted(value, key, key, scales, problems)
        for key, value in tables.items()
    }
    return found, problems


def _converted(value, key: str, path: str, scales: Scales | None, problems: list[str]):
    """A value of the key `key`, and all below it, in lattice units."""
    if isinstance(value, dict):
        return {
            name: _converted(item, name, f"{path}.{name}", scales, problems)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [
            _converted(item, key, f"{path}.{k}", scales, problems) for k, item in enumerate(value)
        ]
    match = QUANTITY.fullmatch(value) if isinstance(value, str) and key in KEYS else None
    if not match:
        return value
    problem = ""
    dimension, example = KEYS[key]
    try:
        factor, found = unit(match[2])
        if found != dimension:
            problem = f"found {shown(value)}; allowed: the unit of \"{example}\", or a number in " \
                      "lattice units"  # fmt: skip
        elif scales is None:
            problem = f"found {shown(value)}, but the case has no [units]; add [units] with " \
                      "cell = 0.001 (m), step = 1e-4 (s), density = 1000 (kg/m^3)"  # fmt: skip
    except UnitError as error:
        problem = f'found {shown(value)}: {error}; write it as "{example}"'
    if not problem:
        number = scales.to_lattice(float(match[1]) * factor, dimension)
        if isfinite(number):
            return number
        problem = f"found {shown(value)}, which is {number:g} in lattice units; allowed: finite " \
                  "numbers; change it or [units]"  # fmt: skip
    problems.append(f"{path}: {problem}")
    return 1e-3  # a placeholder, so that the other problems can be reported


def schema() -> dict:
    """JSON schema of a case file, in which the KEYS may have a unit."""
    plain = case_file.schema()
    found = _with_texts(plain, "")
    found["$defs"]["Units"] = plain["$defs"]["Units"]
    return found


def _with_texts(part, key: str):
    """A part of the schema that is about `key`, or holds keys."""
    if isinstance(part, list):
        return [_with_texts(each, key) for each in part]
    if not isinstance(part, dict):
        return part
    if key in KEYS and part.get("type") == "number":
        return {"anyOf": [part, {"type": "string", "pattern": f"^{QUANTITY.pattern}$"}]}
    found = {name: _with_texts(each, key) for name, each in part.items()}
    if key in KEYS and "oneOf" in found:  # a number with its unit may be a formula's text as well
        found["anyOf"] = found.pop("oneOf")
    for table in ("properties", "$defs"):
        if table in part:
            found[table] = {name: _with_texts(each, name) for name, each in part[table].items()}
    return found
