"""Labels of collisions in the table of measured limits: name, parameters and closure.

    trt    regularized(omega_bulk=1)    regularized(omega_bulk=1)+smagorinsky

Only parameters that differ from their defaults are named, separated by semicolons.
"""

from collections.abc import Mapping
from typing import Any


def label_of(name: str, parameters: Mapping[str, Any], closure: str = "") -> str:
    """The label of a collision with these changed parameters and this closure, or none ("")."""
    given = "; ".join(
        f"{key}={f'{value:g}' if isinstance(value, int | float) else value}"
        for key, value in parameters.items()
    )
    return f"{name}{f'({given})' if given else ''}{f'+{closure}' if closure else ''}"


def parts_of(label: str) -> tuple[str, dict[str, float | str], str]:
    """The name, the changed parameters and the closure of a label: the inverse of `label_of`.

    Parameters are numbers, or texts without semicolons.
    """
    name, opening, rest = label.partition("(")
    if not opening:
        name, _, closure = label.partition("+")
        return name, {}, closure
    given, _, closure = rest.rpartition(")")
    pairs = (each.partition("=") for each in given.split("; "))
    return name, {key: _value(text) for key, _, text in pairs}, closure.removeprefix("+")


def _value(text: str) -> float | str:
    """The number that a text stands for, or the text."""
    try:
        return float(text)
    except ValueError:
        return text
