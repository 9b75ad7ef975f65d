"""Checks of the state during a run, its warnings, and whether the flow is steady."""

from functools import partial
from math import nan
from typing import Self

from mpilbm.case.starts import last_ramp
from mpilbm.case.tables.case_file import VELOCITY
from mpilbm.case.tables.case_file import Steady as Settings
from mpilbm.core.errors import NonFiniteError
from mpilbm.core.units import TIME, counted
from mpilbm.model.findings import WARNING, Finding
from mpilbm.outputs import Context
from mpilbm.outputs.core import next_multiple
from mpilbm.outputs.core.averages import LEAST
from mpilbm.parallel import on_root
from mpilbm.run.checks import Alarm, MassCheck
from mpilbm.run.checks.alternation import Alternation
from mpilbm.run.checks.speeds import Speeds
from mpilbm.run.last_good import LastGood
from mpilbm.run.watched import ChangeOfVelocity, Comparison, Numbers, change, error
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
        if self.steady and self.steady.compared.prepare:
            before = next_multiple(step + 1, self.steady.every, last + 1) - 1
            checked = min(checked, before)
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
        self.prepare(step)
        if reason:  # this is the last step
            self.totals.check(step)
        self._warn(step)
        self.alternation.judge(step, self.totals.fastest)
        return reason

    def prepare(self, step: int) -> None:
        """Sample this step if the flow is compared at the next one; collective."""
        if self.steady and (step + 1) % self.steady.every == 0 and self.steady.compared.prepare:
            self.steady.compared.prepare()

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
        return f", but not steady: {self.residual or self.steady.unknown}{rises}"

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


class Steady:
    """Compares the flow every `every` steps, and ends the run when it changes too little.

    A flow whose velocities or forces still rise is not steady: with ramps the run ends at step
    `from_step`, the end of the last one, or later; `rises`: whether the last comparison was before.

    `residual`: the last relative change, or with `by = "error"` the relative error of the mean;
    None as long as it is not known. `what`: of which quantity. With an output folder rank 0 writes
    `steady.csv`: step, time, residual and the numbers that are compared; with [units] also time_s.
    """

    def __init__(self, context: Context, settings: Settings):
        self.context, self.every, self.tolerance = context, settings.every, settings.tolerance
        self.residual: float | None = None
        self.what, self.of_error = "", settings.by == "error"
        self.rises, self.from_step = False, last_ramp(context.case)
        self.compared: Comparison = ChangeOfVelocity(context.solver, context.comm)
        if settings.of != VELOCITY:
            output = next(each for each in context.case.outputs if each.name == settings.of)
            self.what = f" of {settings.of}"
            measure = error if self.of_error else change
            self.compared = Numbers(output.watched(context), measure, context.comm)
        self._rows: Rows | None = None  # on rank 0
        self._kept = -1  # the last step of the rows that a restart keeps
        if context.keeps_files:
            on_root(context.comm, self._open)

    def _open(self) -> None:
        names = ["step", "time", "residual", *self.compared.names]
        header = [*names, *(["time_s"] if self.context.case.units else [])]
        self._rows = Rows(self.context.directory / STEADY, header, self.context.first_step)
        self.context.rows.append(self._rows)
        if kept := self._rows.kept:
            self._kept = int(kept[-1].partition(",")[0])
        if isinstance(self.compared, Numbers):
            self.compared.continue_from(kept, header)

    @property
    def is_reached(self) -> bool:
        """Whether the last relative change is below the tolerance; not a number is not."""
        if self.residual is None or self.rises:
            return False
        return self.residual < self.tolerance

    @property
    def unknown(self) -> str:
        """Why there is no residual."""
        if not self.of_error:
            return "the flow was not compared twice"
        needs = f"{2 * LEAST} comparisons and a mean that is not 0"
        return f"the error of the mean{self.what} is not known, which requires {needs}"

    def reached(self, step: int) -> str:
        """Why the run may end, or "" if the flow still changes; collective."""
        ratio = self.residual = self.compared(step)
        self.rises = step < self.from_step
        if self.context.keeps_files:
            on_root(self.context.comm, self._write, step, ratio)
        if not self.is_reached:
            return ""
        steps = counted(self.every, "step")
        if self.of_error:
            text = f"standard error of the mean{self.what} {ratio:.3g} < {self.tolerance:.3g}"
            return f"steady: relative {text}, compared every {steps}"
        return f"steady: relative change{self.what} {ratio:.3g} < {self.tolerance:.3g} in {steps}"

    def _write(self, step: int, residual: float | None) -> None:
        """Add a row, unless a restart keeps that of this step, or it would have no number."""
        assert self._rows is not None  # of rank 0
        numbers = self.compared.last if isinstance(self.compared, Numbers) else []
        if step <= self._kept or (residual is None and not numbers):
            return
        units = self.context.case.units
        row = [step, nan if residual is None else residual, *numbers]
        self._rows.add(step, [*row, *([units.to_si(step, TIME)] if units else [])])

    def close(self) -> None:
        """Close the file."""
        if self._rows is not None:
            self._rows.close()
            self._rows = None
