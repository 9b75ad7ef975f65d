"""Means of numbers over the last half of a run, with their standard errors by block averages.

With the means m_j of b blocks of equal duration and their mean m,

    error^2 = sum_j (m_j - m)^2 / (b (b - 1)) (1 + r) / (1 - r)

r is the correlation of neighbouring blocks, at least 0: the error of a series m' = r m + noise.
That of b numbers is estimated too small by about (1 + 4 r) / b, which is corrected. b is 16 and 32,
and the larger error is taken. Numbers that change more slowly than the time over which they are
averaged, and a flow that drifts, have r = MOST, so that their error is about half of their range.
Blocks that are longer than a period average it out, so the error of a flow that oscillates is that
of its slower changes. [Flyvbjerg & Petersen 1989, J. Chem. Phys. 91, 461; Kendall 1954, Biometrika
41, 403, for the correction of r]
"""

from collections.abc import Sequence
from math import isfinite, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

BLOCKS = (16, 32)  # numbers of blocks
LEAST = 32  # numbers of which an error is known
MOST = 0.97  # correlation of neighbouring blocks

Floats = NDArray[np.float64]


class Average(NamedTuple):
    """A mean over numbers, its standard error, which is nan for too few, and their count."""

    mean: float
    error: float
    samples: int

    @property
    def relative(self) -> float:
        """The error relative to the mean; nan if it is not known or the mean is 0."""
        return self.error / abs(self.mean) if self.mean else nan

    @property
    def record(self) -> dict[str, Any]:
        """For summary.json, where a number that is not known or not finite is None."""
        return {name: each if isfinite(each) else None for name, each in self._asdict().items()}

    def __str__(self) -> str:
        digit = f"{float(f'{self.error:.1g}'):g}"
        return f"{self.mean:.5g}" + (f" ± {digit}" if isfinite(self.error) else "")


def average(values: Sequence[float] | Floats, times: Sequence[float] | Floats = ()) -> Average:
    """The mean of numbers and its standard error.

    `times`: increasing; each number counts for the time since the one before. Without them all
    count alike.
    """
    found, count = np.array(values, float), len(values)
    if not count:
        return Average(nan, nan, 0)
    spans = np.diff(times, prepend=2 * times[0] - times[1]) if len(times) > 1 else np.ones(count)
    errors = [_error(found, spans, b) for b in BLOCKS] if count >= LEAST else []
    known = [error for error in errors if error is not None]
    return Average(float((spans * found).sum() / spans.sum()), max(known, default=nan), count)


def _error(values: Floats, spans: Floats, blocks: int) -> float | None:
    """The standard error by so many blocks; None if one of them is empty."""
    middles = np.cumsum(spans) - spans / 2
    place = (middles * (blocks / spans.sum())).astype(int)
    lengths = np.bincount(place, spans, blocks)
    if not lengths.all():
        return None
    means = np.bincount(place, spans * values, blocks) / lengths
    apart = means - means.mean()
    square = float(apart @ apart)
    if not square:
        return 0.0
    r = float(apart[1:] @ apart[:-1]) / square
    r = min(max((blocks * r + 1) / (blocks - 4), 0.0), MOST)
    return sqrt(square / (blocks * (blocks - 1)) * (1 + r) / (1 - r))


def last_half(times: Sequence[float] | Floats) -> slice:
    """The rows in the last half of the time."""
    return slice(int(np.searchsorted(times, (times[0] + times[-1]) / 2)) if len(times) else 0, None)
