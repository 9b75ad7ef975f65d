"""Reads a number with a unit, such as "1 mPa s", with the library pint."""

import re
from functools import cache
from typing import Any

from mpilbm.core.formulas.values import is_file
from mpilbm.core.quantity import NUMBER, SYMBOL, UNIT
from mpilbm.core.units import Dimension

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
