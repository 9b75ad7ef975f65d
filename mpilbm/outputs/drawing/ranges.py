"""The range of a curve that is shown: that of its last half, where a start-up spike hides it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPIKE = 3.0  # the range of all values is shown up to so many times that of the last half
MOST_OUTSIDE = 1 / 5  # of all points; more are no spike, but a decay
LEAST = 0.2  # least margin around the last half, relative to its largest value

BACK = {"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1}  # of a note on curves


class Range(NamedTuple):
    """The ends of an axis, and the number of the points that are outside, of all points."""

    low: float
    high: float
    outside: int
    points: int

    @property
    def note(self) -> str:
        """`3 of 80 points outside`, or "" if all points are shown."""
        return f"{self.outside} of {self.points} points outside" if self.outside else ""


def last_half(time: np.ndarray) -> slice:
    """The rows in the last half of the time."""
    return slice(int(np.searchsorted(time, (time[0] + time[-1]) / 2)), None)


def shown_range(time: np.ndarray, curves: Sequence[np.ndarray]) -> Range | None:
    """The range of curves over the time; None if no value is finite.

    The values of the last half of the time have a margin of half of their own range, at least LEAST
    of the largest. If all values need more than SPIKE times this, those beyond it are not shown,
    unless they are many.
    """
    values = np.array(curves, float)
    known = np.isfinite(values)
    late = values[:, last_half(time)]
    late = late[np.isfinite(late)]
    if not known.any():
        return None
    every = values[known]
    found = Range(float(every.min()), float(every.max()), 0, every.size)
    if not late.size:
        return found
    least, most = float(late.min()), float(late.max())
    margin = max((most - least) / 2, LEAST * max(abs(least), abs(most)))
    if found.high - found.low <= SPIKE * (most - least + 2 * margin):
        return found
    low, high = max(found.low, least - margin), min(found.high, most + margin)
    outside = int(((every < low) | (every > high)).sum())
    return Range(low, high, outside, every.size) if outside <= MOST_OUTSIDE * every.size else found


def show_range(axis: "Axes", time: np.ndarray, curves: Sequence[np.ndarray]) -> None:
    """Give an axis with linear curves this range, and write how many points are outside."""
    found = shown_range(time, curves)
    if found is None or not found.outside:
        return
    space = 0.05 * (found.high - found.low)
    axis.set_ylim(found.low - space, found.high + space)
    above = any((each > found.high).any() for each in curves)  # on this side is a margin
    place, va = (0.97, "top") if above else (0.03, "bottom")
    axis.text(0.5, place, found.note, transform=axis.transAxes, ha="center", va=va, fontsize=8,
              color="0.3", bbox=BACK)  # fmt: skip
