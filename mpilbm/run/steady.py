"""Checks of the state during a run, its warnings, and whether the flow is steady."""

from collections.abc import Callable
from functools import partial
from math import isnan
from typing import Self

import numpy as np

from mpilbm.case.starts import last_ramp
from mpilbm.case.tables.case_file import VELOCITY
from mpilbm.case.tables.case_file import Steady as Settings
from mpilbm.core.errors import NonFiniteError
from mpilbm.core.units import TIME, counted
from mpilbm.model.findings import WARNING, Finding
from mpilbm.outputs import Context
from mpilbm.outputs.core import next_multiple
from mpilbm.outputs.core.averages import average, last_half
from mpilbm.parallel import Communicator, on_root
from mpilbm.run.checks import Alarm, MassCheck
from mpilbm.run.checks.alternation import Alternation
from mpilbm.run.checks.speeds import Speeds
from mpilbm.run.last_good import LastGood
from mpilbm.solver.solver import Solver
from mpilbm.storage.csv_log import Rows
from mpilbm.storage.directory import STEADY

# Steps between two checks of the flow, independent of outputs. A check and a copy of the state read
# and write about as many bytes as two steps.
CHECK_EVERY = 1000
FAST = 0.4  # the largest Mach number without a warning
# Levels of warnings: how far a scalar is beyond its bounds, relative to their difference.
OVERSHOOTS = (0.01, 0.1)


class Watch:
    """Checks the flow at fixed steps and at the last one, for any number of ranks.

    As a context manager it replaces a NonFiniteError by one with the step and the cell in which the
    flow became unstable (see last_good).
    """

    def __init__(self, context: Context):
        settings = context.case.run.steady
        self.context, self.totals, self.samples = context, context.totals, context.samples
        self.steady = Steady(context, settings) if settings else None
        self.periods = [CHECK_EVERY] + ([self.steady.every] if self.steady else [])
        self.last_good = LastGood(context)
        self.alternation = Alternation(context, CHECK_EVERY)
        self._fast = Alarm(context, (FAST,))
        self._scalars = {label: Alarm(context, OVERSHOOTS) for label in context.solver.bounds}
        self._mass = MassCheck(context)
        self._speeds = Speeds(context, CHECK_EVERY)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, NonFiniteError):  # raised on all ranks alike
            found = self.last_good.explain(error)
            if found is not error:
                raise found from error

    def next_due(self, step: int, last: int) -> int:
        """The next step at which the flow is checked or sampled."""
        checked = min(next_multiple(step, every, last) for every in self.periods)
        return min(checked, self.alternation.next_due(step, last))

    def verdict(self, step: int, last: int) -> str:
        """Why the run may end at this step, "" if it continues; collective.

        Raises NonFiniteError on all ranks.
        """
        self.alternation.visit(step)
        if step % CHECK_EVERY == 0 or step == last or self.totals.checked is None:
            self.samples.settle()  # they may find that the flow failed at an earlier step
            self.totals.check(step)
            self._mass.check(step)
            self._speeds.check(step)
            if step < last:
                self.last_good.keep(step)
        reason = ""
        if self.steady and step % self.steady.every == 0:
            reason = self.steady.reached(step)
        if reason:  # this is the last step
            self.totals.check(step)
        self._warn(step)
        self.alternation.judge(step, self.totals.fastest)
        return reason

    @property
    def residual(self) -> str:
        """The last residual and its tolerance, for the user; "" before the first one."""
        steady = self.steady
        if steady is None or steady.residual is None:
            return ""
        return f"residual{steady.what} {steady.residual:.3g} (steady < {steady.tolerance:g})"

    @property
    def unfinished(self) -> str:
        """At the end of a run: why it did not end as steady; "" if it did or need not."""
        if self.steady is None or self.steady.is_reached:
            return ""
        rises = f", but a ramp ends at step {self.steady.from_step}" * self.steady.rises
        return f", but not steady: {self.residual or 'the flow was not compared twice'}{rises}"

    def close(self) -> None:
        """Close the file of the residuals."""
        if self.steady:
            self.steady.close()

    def forget(self) -> None:
        """Check the flow again at the next step that is due, because the state was replaced."""
        self.totals.checked = None
        self.last_good.forget()
        self.alternation.forget()
        self._mass.forget()
        self._speeds.forget()

    def _warn(self, step: int) -> None:
        mach, scalars = self.totals.fastest / self.totals.speed_of_sound, self.totals.scalars
        text = (
            f"by step {step} the flow has reached Mach {mach:.2g}, above {FAST}: "
            f"compressibility errors of about Ma^2 = {mach**2:.0%}, and it may become "
            "unstable; lower the velocity, and the viscosity with it"
        )
        self._fast.update(mach, lambda: Finding(WARNING, "", text))

        def overshoot(label: str) -> Finding:
            text = f"by step {step} {scalars.text(label)}; {scalars.advice(label)}"
            return Finding(WARNING, f"scalar.{label}", text)

        for label, number in scalars.beyond.items() if self.totals.checked == step else ():
            self._scalars[label].update(number, partial(overshoot, label))


class ChangeOfVelocity:
    """The relative change |u - u'|_2 / |u|_2 over the fluid cells; u' is u at the previous call.

    The device sums the squares of each plane in double precision; the planes are added in their
    order, so that the result does not depend on the number of ranks.
    """

    def __init__(self, solver: Solver, comm: Communicator):
        self.solver, self.comm, self._first = solver, comm, True

    def __call__(self) -> float | None:
        """The change on all ranks; None at the first call and if u is 0. Collective."""
        parts, first = self.comm.gather(self.solver.start_change()()), self._first
        self._first, ratio = False, None
        if parts is not None and not first:
            change, norm = np.cumsum(np.concatenate(parts), axis=0)[-1]
            ratio = float(np.sqrt(change / norm)) if norm > 0 else None
        return self.comm.bcast(ratio)


class ChangeOfNumber:
    """The relative change |k - k'| / |k| of a number; k' is k at the previous call.

    `number` is the result of Output.watched.
    """

    def __init__(self, number: Callable[[], float], comm: Communicator):
        self.number, self.comm = number, comm
        self._before: float | None = None

    def __call__(self) -> float | None:
        """The change on all ranks; None at the first call and if k is 0. Collective."""
        now, before, ratio = self.number(), self._before, None
        self._before = now
        if self.comm.rank == 0 and before is not None and now:
            ratio = abs(now - before) / abs(now)
        return self.comm.bcast(ratio)


class ErrorOfMean:
    """The relative standard error of the mean of a number over the second half of all calls.

    `number` is the result of Output.watched. A restart begins again without earlier numbers.
    """

    def __init__(self, number: Callable[[], float], comm: Communicator):
        self.number, self.comm = number, comm
        self._values: list[float] = []

    def __call__(self) -> float | None:
        """The error on all ranks; None for too few numbers and if their mean is 0. Collective."""
        self._values.append(self.number())
        found: float | None = None
        if self.comm.rank == 0:
            found = average(last_half(self._values)).relative
        found = self.comm.bcast(found)
        return None if found is None or isnan(found) else found


class Steady:
    """Compares the flow every `every` steps, and ends the run when it changes too little.

    A flow whose velocities or forces still rise is not steady: with ramps the run ends at step
    `from_step`, the end of the last one, or later; `rises`: whether the last comparison was before.

    `residual`: the last relative change, None before the first comparison, or with `by = "error"`
    the relative error of the mean; `what`: of which quantity. With an output folder rank 0 writes
    `steady.csv`: step, time, residual; with [units] also time_s.
    """

    def __init__(self, context: Context, settings: Settings):
        self.context, self.every, self.tolerance = context, settings.every, settings.tolerance
        self.residual: float | None = None
        self.what, self.rises, self.from_step = "", False, last_ramp(context.case)
        self._change: Callable[[], float | None] = ChangeOfVelocity(context.solver, context.comm)
        if settings.of != VELOCITY:
            output = next(each for each in context.case.outputs if each.name == settings.of)
            self.what = f" of {settings.of}"
            kind = ErrorOfMean if settings.by == "error" else ChangeOfNumber
            self._change = kind(output.watched(context), context.comm)
        self.of_error = settings.by == "error"
        self._rows: Rows | None = None  # on rank 0
        if context.keeps_files:
            on_root(context.comm, self._open)

    def _open(self) -> None:
        header = ["step", "time", "residual", *(["time_s"] if self.context.case.units else [])]
        self._rows = Rows(self.context.directory / STEADY, header, self.context.first_step)
        self.context.rows.append(self._rows)

    @property
    def is_reached(self) -> bool:
        """Whether the last relative change is below the tolerance; not a number is not."""
        if self.residual is None or self.rises:
            return False
        return self.residual < self.tolerance

    def reached(self, step: int) -> str:
        """Why the run may end, or "" if the flow still changes; collective."""
        ratio = self.residual = self._change()
        self.rises = step < self.from_step
        if ratio is not None and self.context.keeps_files:
            on_root(self.context.comm, self._write, step, ratio)
        if not self.is_reached:
            return ""
        steps = counted(self.every, "step")
        if self.of_error:
            text = f"standard error of the mean{self.what} {ratio:.3g} < {self.tolerance:.3g}"
            return f"steady: relative {text}, compared every {steps}"
        return f"steady: relative change{self.what} {ratio:.3g} < {self.tolerance:.3g} in {steps}"

    def _write(self, step: int, residual: float) -> None:
        assert self._rows is not None  # of rank 0
        units = self.context.case.units
        self._rows.add(step, [step, residual, *([units.to_si(step, TIME)] if units else [])])

    def close(self) -> None:
        """Close the file."""
        if self._rows is not None:
            self._rows.close()
            self._rows = None
