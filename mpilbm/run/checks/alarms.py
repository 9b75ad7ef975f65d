"""Findings of a run about numbers that may grow."""

from collections.abc import Callable, Sequence

from mpilbm.model.findings import Finding
from mpilbm.outputs import Context


class Alarm:
    """Reports a finding when a number passes each of some levels, in place of the last one."""

    def __init__(self, context: Context, levels: Sequence[float]):
        self._context, self._levels = context, levels
        self._passed = 0
        self._last: Finding | None = None

    def update(self, number: float, describe: Callable[[], Finding]) -> None:
        """The number, the same on all ranks; `describe()` is called on all ranks at a new level."""
        passed = sum(number > level for level in self._levels)
        if passed > self._passed:
            found = describe()
            self._context.report(found, instead=self._last)
            self._passed, self._last = passed, found


class Repeated:
    """Whether a condition holds repeatedly: at checks that are at least `every` steps apart.

    `first`: the step at which it held first, None before it. One start-up or one sound wave
    does not repeat; sound that stays in the box does.
    """

    def __init__(self, every: int):
        self._every = every
        self.first: int | None = None

    def update(self, step: int, holds: bool) -> bool:
        """Whether it holds at this step, and held at an earlier check."""
        if holds and self.first is None:
            self.first = step
        return holds and self.first is not None and step - self.first >= self._every
