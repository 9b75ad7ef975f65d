"""Means of numbers over the last half of a run, with their standard errors by block averages.

With the means m_j of b blocks of equal length and their mean m,

    error^2 = sum_j (m_j - m)^2 / (b (b - 1))

Numbers of neighbouring times are correlated: blocks must be longer than the correlation time, or
the error is too small. So b is 8, 16 and 32, and the largest of these errors is taken: a flow that
still drifts has the error of its drift. Blocks that are longer than a period average it out, so the
error of a flow that oscillates is that of its slower changes.
[Flyvbjerg & Petersen 1989, J. Chem. Phys. 91, 461]
"""

from collections.abc import Sequence
from math import isnan, nan, sqrt
from typing import Any, NamedTuple

import numpy as np

BLOCKS = (8, 16, 32)  # numbers of blocks; the last ones if there are so many numbers
LEAST = 2 * BLOCKS[0]  # numbers of which an error is known


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
        """For summary.json, where a number that is not known is None."""
        return {name: None if isnan(each) else each for name, each in self._asdict().items()}

    def __str__(self) -> str:
        return f"{self.mean:.5g}" + ("" if isnan(self.error) else f" ± {self.error:.1g}")


def average(values: Sequence[float]) -> Average:
    """The mean of numbers at equal distances in time, and its standard error."""
    found, count = np.array(values, float), len(values)
    errors = []
    for blocks in BLOCKS if count >= LEAST else ():
        length = count // blocks
        if length:
            means = found[count - blocks * length :].reshape(blocks, length).mean(axis=1)
            errors.append(float(means.std(ddof=1)) / sqrt(blocks))
    mean = float(found.mean()) if count else nan
    return Average(mean, max(errors, default=nan), count)


def last_half(values: Sequence[Any]) -> Sequence[Any]:
    """The second half of numbers at equal distances in time."""
    return values[len(values) // 2 :]
