"""Looks after the flow: is it still finite, and has it stopped changing?"""

import numpy as np

from mpilbm.outputs import Context, next_due
from mpilbm.outputs.planes import blocks
from mpilbm.units import counted

# However rarely anything is written, the flow is looked at every so many steps.
CHECK_EVERY = 1000


class Watch:
    """Looks at the flow at fixed steps and at the last one, so all rank counts see the same."""

    def __init__(self, context: Context):
        settings = context.case.run.steady
        self.totals = context.totals
        self.steady = settings and Steady(settings, context.solver, context.slab, context.comm)
        self.periods = [CHECK_EVERY] + ([self.steady.every] if self.steady else [])

    def next_due(self, step: int, last: int) -> int:
        """The next step to look at the flow."""
        return min(next_due(step, every, last) for every in self.periods)

    def verdict(self, step: int, last: int) -> str:
        """Why the run may end at this step, "" if it goes on; NonFiniteError on all ranks."""
        if step % CHECK_EVERY == 0 or step == last:
            self.totals.at(step)
        if self.steady and step % self.steady.every == 0:
            return self.steady.reached()
        return ""


class Steady:
    """The relative change |u - u_before|_2 / |u|_2 over the fluid cells.

    Compares the velocity with that of the last call, `every` steps before. `every` and `tolerance`
    are those of the case's `run.steady`. Squares are summed per plane in double and added in plane
    order, so the verdict does not depend on the number of ranks. Solid cells have u = 0 and add
    nothing.
    """

    def __init__(self, settings, solver, slab, comm):
        self.every, self.tolerance = settings.every, settings.tolerance
        self.solver, self.slab, self.comm = solver, slab, comm
        self.before = None

    def change(self) -> float | None:
        """The relative change on all ranks; None at the first call and for a flow at rest."""
        first = self.before is None
        sums = np.zeros((self.slab.planes, 2))
        for begin, end in blocks(self.slab.planes, self.slab.shape[1] * self.slab.shape[2] * 24):
            self._compare(begin, end, sums)
        parts = self.comm.gather(sums)
        ratio = None
        if parts is not None and not first:
            change, norm = np.cumsum(np.concatenate(parts), axis=0)[-1]
            ratio = float(np.sqrt(change / norm)) if norm > 0 else None
        return self.comm.bcast(ratio)

    def _compare(self, begin, end, sums):
        u = self.solver.fields(("u",), begin, end)["u"]
        if self.before is None:
            self.before = np.zeros((self.slab.planes, *u.shape[1:]), u.dtype)
        for plane, now in enumerate(u, begin):
            wide = now.astype(np.float64)
            difference = wide - self.before[plane]
            sums[plane] = np.sum(difference * difference), np.sum(wide * wide)
        self.before[begin:end] = u

    def reached(self) -> str:
        """Why the run may end, or "" if the flow still changes."""
        ratio = self.change()
        if ratio is None or not ratio < self.tolerance:  # not a number is not steady
            return ""
        steps = counted(self.every, "step")
        return f"steady: relative change {ratio:.3g} < {self.tolerance:.3g} in {steps}"
