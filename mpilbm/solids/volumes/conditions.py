"""Which values of voxels are solid: nonzero ones, a comparison, a range or a list of labels."""

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from math import ceil, floor, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

Condition = Callable[[NDArray[Any]], NDArray[np.bool_]]

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
}
NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
COMPARISON = re.compile(rf"\s*(<=|<|>=|>|==|!=)\s*{NUMBER}\s*")
RANGE = re.compile(rf"\s*{NUMBER}\s*\.\.\s*{NUMBER}\s*")


def condition(solid: str | Sequence[int] | None, dtype: np.dtype) -> Condition:
    """The function that returns where values of a type are solid.

    solid: None for nonzero values, labels, or text such as ">= 128" and "100 .. 200". Raises
    ValueError, whose text follows the name of the file, for text that is no condition, and for one
    that holds for no or for all values.
    """
    if solid is None:
        return lambda values: values != 0
    values = _possible(dtype)
    if not isinstance(solid, str):
        wrong = [label for label in solid if values and not values[0] <= label <= values[1]]
        if not solid or wrong:
            found = f"the label {wrong[0]}" if wrong else "no label"
            raise ValueError(f"has type {dtype.name}, but solid contains {found}; allowed: labels"
                             f"{_span(values)}; change solid")  # fmt: skip
        return lambda array: np.isin(array, np.array(solid))
    holds, limits = _parsed(solid)
    near = {f(limit) + step for limit in limits for f in (floor, ceil) for step in (-1, 0, 1)}
    if values:
        held = {bool(holds(min(max(each, values[0]), values[1]))) for each in (*near, *values)}
        if len(held) == 1:
            all_or_no = "all values" if held == {True} else "no value"
            raise ValueError(f"has type {dtype.name}, for which solid = '{solid}' holds for "
                             f"{all_or_no}{_span(values)}; change solid")  # fmt: skip
    return lambda array: holds(array.view(np.uint8) if array.dtype.kind == "b" else array)


def _parsed(text: str) -> tuple[Callable[[Any], Any], list[float]]:
    """The function of a text, and its numbers."""
    compared, between = COMPARISON.fullmatch(text), RANGE.fullmatch(text)
    texts = [compared[2]] if compared else between.groups() if between else []
    if not all(isfinite(float(each)) for each in texts):
        compared = between = None
    if compared:
        compare, (limit,) = COMPARISONS[compared[1]], _numbers([compared[2]])
        return lambda value: compare(value, limit), [limit]
    if between:
        low, high = _numbers(between.groups())
        return lambda value: (value >= low) & (value <= high), [low, high]
    raise ValueError(
        f"cannot be used with solid = '{text}', which is not a condition; allowed: a "
        'comparison such as ">= 128" with <, <=, >, >=, == or !=, '
        'a range such as "100 .. 200", or a list of labels such as [1, 3]'
    )


def _numbers(texts: Iterable[str]) -> list[float]:
    """Numbers; integers as int, so that integers are compared without conversion."""
    return [int(number) if (number := float(text)).is_integer() else number for text in texts]


def _possible(dtype: np.dtype) -> tuple[int, int] | None:
    """The least and the largest value of an integer type; None for floats."""
    if dtype.kind == "b":
        return 0, 1
    return (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.kind in "iu" else None


def _span(values: tuple[int, int] | None) -> str:
    return f" from {values[0]} to {values[1]}" if values else ""
