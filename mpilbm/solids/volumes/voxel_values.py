"""The values of voxels: their shares, a threshold between pore and solid, and which are solid."""

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.units import counted
from mpilbm.solids import Flags, Floats, Ints
from mpilbm.solids.volumes import Volume

VOXELS = 1 << 21  # that are counted; of larger volumes, those of some planes
PLANES = 8, 64  # least and largest number of these
BYTES = 1 << 28  # that are read for them, unless this is less than the least number of planes
LISTED = 8  # values that are listed; if there are more,
FREQUENT, RARE = 3, 0.01  # the most frequent ones, if they have this share
Condition = Callable[[NDArray[Any]], Flags]
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


@dataclass(frozen=True, eq=False)
class VoxelValues:
    """The values of a volume.

    numbers  sorted, of the type of the volume; without infinite ones and nan
    shares   their shares of the voxels
    planes   planes that were read, and all planes
    """

    numbers: NDArray[Any]
    shares: Floats
    planes: tuple[int, int]

    @property
    def text(self) -> str:
        """The values and their shares, such as "0: 62 %, 255: 38 %"."""
        count = len(self.numbers)
        if count <= LISTED:
            return self._listed(range(count))
        order = np.argsort(-self.shares, kind="stable")[:FREQUENT].tolist()
        frequent = [k for k in order if self.shares[k] >= RARE]
        most = f", most frequent {self._listed(frequent)}" if frequent else ""
        return f"{count} values from {self.number(0)} to {self.number(-1)}{most}"

    def _listed(self, indices: Iterable[int]) -> str:
        return ", ".join(f"{self.number(k)}: {_percent(self.shares[k])}" for k in indices)

    @property
    def sampled(self) -> str:
        """The part of the volume that was read; "" for all."""
        read, planes = self.planes
        return "" if read == planes else f"in {read} of {counted(planes, 'plane')}"

    def number(self, k: int) -> str:
        """A value as text."""
        return self._text(self.numbers[k])

    def _text(self, value: Any) -> str:
        return f"{value:.6g}" if self.numbers.dtype.kind == "f" else str(int(value))

    @property
    def threshold_text(self) -> str:
        """The threshold as text."""
        return self._text(self.threshold)

    def share(self, holds: Flags) -> float:
        """The share of the voxels with the values for which `holds` is true."""
        return float(self.shares[holds].sum())

    @property
    def threshold(self) -> float:
        """The N between two classes, below N and from N on, with the largest variance between them.

        [Otsu 1979, IEEE Trans. Syst. Man Cybern. 9, 62, eq. 18]; requires two values.
        """
        numbers = self.numbers.astype(np.float64)
        weight = np.cumsum(self.shares)[:-1]
        moment = np.cumsum(self.shares * numbers)
        with np.errstate(all="ignore"):
            between = (moment[-1] * weight - moment[:-1]) ** 2 / (weight * (1 - weight))
        k = int(np.argmax(np.nan_to_num(between, nan=0.0, posinf=0.0)))
        middle = numbers[k] / 2 + numbers[k + 1] / 2
        return float(middle if self.numbers.dtype.kind == "f" else np.ceil(middle))


def voxel_values(volume: Volume, spans: Sequence[tuple[int, int]]) -> VoxelValues:
    """The values in a part of a volume; spans: its first and last + 1 voxel, slowest axis first.

    Raises ValueError, whose text follows the name of the file, for planes that cannot be read.
    """
    array, inner = volume.array, tuple(slice(*span) for span in spans[1:])
    (begin, end), plane = spans[0], prod(b - a for a, b in spans[1:])
    stored = prod(array.shape[1:]) * array.dtype.itemsize * volume.chunk  # bytes
    least, most = PLANES
    count = min(end - begin, max(least, min(most, BYTES // stored)))
    if (end - begin) * plane <= VOXELS:
        step = max(1, BYTES // 8 // stored) * volume.chunk
        parts = [(k, min(k + step, end)) for k in range(begin, end, step)]
    else:
        each = begin + (np.arange(count) + 0.5) * ((end - begin) / count)
        parts = [(int(k), int(k) + 1) for k in each]
    read = sum(b - a for a, b in parts)
    thinned = -(-read * plane // VOXELS)
    found = [_unique(array[(slice(a, b), *inner)].reshape(-1)[::thinned]) for a, b in parts]
    numbers, place = np.unique(np.concatenate([n for n, _ in found]), return_inverse=True)
    counts = np.bincount(place, np.concatenate([c for _, c in found]), len(numbers))
    return VoxelValues(numbers, counts / max(1, counts.sum()), (read, end - begin))


def _unique(values: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
    if values.dtype.kind == "f":
        values = values[np.isfinite(values)]
    return np.unique(values, return_counts=True)


def _percent(share: float) -> str:
    percent = 100 * share
    return f"{percent:.0f} %" if 10 <= percent <= 99 else f"{percent:.3g} %"


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
            allowed = f"allowed: labels{_span(values)}; change solid"
            raise ValueError(f"has type {dtype.name}, but solid contains {found}; {allowed}")
        return lambda array: np.isin(array, np.array(solid))
    holds, limits = _parsed(solid)
    near = {f(limit) + step for limit in limits for f in (floor, ceil) for step in (-1, 0, 1)}
    if values:
        held = {bool(holds(min(max(each, values[0]), values[1]))) for each in (*near, *values)}
        if len(held) == 1:
            all_or_no = "all values" if held == {True} else "no value"
            holds_for = f"solid = '{solid}' holds for {all_or_no}{_span(values)}"
            raise ValueError(f"has type {dtype.name}, for which {holds_for}; change solid")
    return lambda array: holds(array.view(np.uint8) if array.dtype.kind == "b" else array)


def _parsed(text: str) -> tuple[Callable[[Any], Any], list[float]]:
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
