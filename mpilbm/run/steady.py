"""Watches a run: is the flow finite and slower than sound, and has it stopped changing?"""

import numpy as np

from mpilbm.errors import NonFiniteError
from mpilbm.outputs import Context, next_due
from mpilbm.run.last_good import LastGood
from mpilbm.run.progress import say
from mpilbm.storage.planes import blocks
from mpilbm.units import counted

# However rarely anything is written, the flow is checked every so many steps. A check and a copy of
# the state read and write about as many bytes as two steps.
CHECK_EVERY = 1000
FAST = 0.4  # the largest Mach number without a warning


class Watch:
    """Checks the flow at fixed steps and at the last one, so all rank counts see the same.

    As a context manager it replaces a NonFiniteError by one that names the step and the cell in
    which the flow became unstable (see last_good).
    """

    def __init__(self, context: Context):
        settings = context.case.run.steady
        self.comm, self.totals = context.comm, context.totals
        self.steady = settings and Steady(settings, context.solver, context.slab, context.comm)
        self.periods = [CHECK_EVERY] + ([self.steady.every] if self.steady else [])
        self.last_good, self.warned = LastGood(context), False

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if isinstance(error, NonFiniteError):  # raised on all ranks alike
            found = self.last_good.explain(error)
            if found is not error:
                raise found from error

    def next_due(self, step: int, last: int) -> int:
        """The next step to check the flow."""
        return min(next_due(step, every, last) for every in self.periods)

    def verdict(self, step: int, last: int) -> str:
        """Why the run may end at this step, "" if it goes on; NonFiniteError on all ranks."""
        if step % CHECK_EVERY == 0 or step == last or self.totals.checked is None:
            self.totals.check(step)
            if step < last:
                self.last_good.keep(step)
        due = self.steady and step % self.steady.every == 0
        reason = self.steady.reached() if due else ""
        if reason:  # so this is the last step
            self.totals.check(step)
        self._warn(step)
        return reason

    def _warn(self, step: int) -> None:
        """Warn once of a flow that is too fast."""
        mach = self.totals.fastest / self.totals.speed_of_sound
        if mach > FAST and not self.warned:
            self.warned = True
            say(
                self.comm,
                f"warning: by step {step} the flow has reached Mach {mach:.2g}, above {FAST}: "
                f"compressibility errors of about Ma^2 = {mach**2:.0%}, and it may become "
                "unstable; lower the velocity, and the viscosity with it",
            )


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
