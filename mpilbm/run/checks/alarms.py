"""Findings of a run about numbers that may grow, such as the mass of a closed flow."""

from collections.abc import Callable, Sequence

import numpy as np

from mpilbm.case.case_findings import is_closed, leaking, remedy
from mpilbm.model.findings import SERIOUS, WARNING, Finding
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


# Relative changes of the mass that are reported, and from which the finding is serious.
CLOSED = 1e-3, 1e-2, 0.1, 1.0
OPEN = 0.1, 1.0, 10.0
WRONG = {True: CLOSED[1], False: OPEN[1]}


class MassCheck:
    """Compares the mass with that at the first check, and reports a finding if it has changed."""

    def __init__(self, context: Context):
        self._context, self._case = context, context.case
        self._closed = is_closed(self._case)
        held = any(getattr(each, "rho", None) is not None for each in self._case.boundaries)
        self._applies = self._closed or not held
        self._alarm = Alarm(context, CLOSED if self._closed else OPEN)
        self.forget()

    def forget(self) -> None:
        """Compare with the mass at the next check, because the state was replaced."""
        self._first: tuple[int, float] | None = None

    def check(self, step: int) -> None:
        """Compare the mass at this step; collective."""
        if not self._applies:
            return
        parts = self._context.comm.allgather(self._context.solver.mass())
        mass = float(np.cumsum(np.concatenate(parts))[-1])
        begin, before = self._first = self._first or (step, mass)
        change = mass / before - 1 if before else 0.0
        self._alarm.update(abs(change), lambda: self._finding(step, change, begin))

    def _finding(self, step: int, change: float, begin: int) -> Finding:
        names = ", ".join(dict.fromkeys(f"'{b.name}'" for b in leaking(self._case).values()))
        flow, cause = "flow", "no face gives the density"
        fix = "give one of the faces rho, or use characteristic with rho as outlet"
        if self._closed:
            flow, cause = "closed flow", "no boundary of the case explains this"
            stored = self._case.precision.storage
            fix = "use a finer box" if stored == "float64" else 'use precision.storage = "float64"'
            if names:
                cause, fix = f"{names} does not conserve it", f"set {remedy(self._case)}"
        sentence = (
            f"by step {step} the mass of the {flow} has changed by {change:+.2g} of its value "
            f"at step {begin}: {cause}; {fix}"
        )
        level = SERIOUS if abs(change) >= WRONG[self._closed] else WARNING
        return Finding(level, "", sentence)
