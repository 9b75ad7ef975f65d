"""The loop over time steps, from each step at which something is due to the next one."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from typing import Protocol

from mpilbm.outputs import Context
from mpilbm.outputs.core.summary import Summary
from mpilbm.outputs.core.writers import Writers
from mpilbm.parallel.agree import on_root
from mpilbm.run.start import Started
from mpilbm.run.steady import Watch
from mpilbm.verdicts.findings import Finding


class Visitor(Protocol):
    """Work besides outputs and checks, at steps of its own choice."""

    def next_due(self, step: int, last: int) -> int:
        """The next step after `step` at which it is due, at most `last`."""

    def visit(self, step: int, last: int) -> None:
        """Called at all steps at which something is due, on all ranks."""


class March:
    """Advances the solver, checks the flow, and writes the outputs of a simulation with a folder.

    `stack` closes the summary and the outputs. `reason`: why the last call of `to` ended early, ""
    if it did not.
    """

    def __init__(self, started: Started, stack: ExitStack):
        self.context, self.folder = started.context, started.folder
        self.reason = ""
        self.summary: Summary | None = None
        if self.folder is not None:
            self.summary = stack.enter_context(Summary(self.context, started.facts))
        self.context.clock.follow(self.context.solver.device.stream("bulk"))
        outputs = self.context.case.outputs if self.folder is not None else ()
        self.writers = stack.enter_context(Writers(self.context, outputs))
        report = partial(_report, self.context.say, started.facts["findings"])
        self.watch = Watch(self.context, report)
        stack.callback(self.watch.close)
        self._started = False

    def to(self, last: int, visitors: Sequence[Visitor] = ()) -> None:
        """Advance to step `last`, or to that at which the flow is steady; collective.

        All outputs are complete then. Raises NonFiniteError on all ranks.
        """
        solver, clock = self.context.solver, self.context.clock
        self.reason = ""
        with self.watch:
            if not self._started:
                self._first(last)
            while solver.steps < last:
                due = self._next_due(solver.steps, last, visitors)
                with clock.measure("stepping"):
                    solver.advance(due - solver.steps)
                with clock.measure("outputs"):
                    last = self._check_and_write(due, last)
                for visitor in visitors:
                    visitor.visit(due, last)
            with clock.measure("outputs"):
                self.writers.finish()
            solver.device.synchronize()

    def final(self, context: Context) -> int:
        """The step at which all outputs of the case are written."""
        return max(context.first_step, context.case.run.steps)

    def _first(self, last: int) -> None:
        """Check the state of the first step and write the outputs that are due at step 0."""
        step, context = self.context.solver.steps, self.context
        with context.clock.measure("outputs"):
            self.watch.verdict(step, last)
            if self.folder is not None:
                on_root(context.comm, self.folder.discard)
            if step == 0:
                self.writers.write(step, self.final(context))
        self._started = True

    def _next_due(self, step: int, last: int, visitors: Sequence[Visitor]) -> int:
        """The next step at which something is due."""
        final = self.final(self.context)
        written = self.writers.next_due(step, min(final, last) if step < final else last)
        asked = (visitor.next_due(step, last) for visitor in visitors)
        return min(self.watch.next_due(step, last), written, *asked)

    def _check_and_write(self, step: int, last: int) -> int:
        """Check the flow, and write the outputs of this step; returns the last step."""
        self.reason = self.watch.verdict(step, last)
        if self.summary is not None:
            self.summary.step, self.summary.reason = step, self.reason
        self.writers.write(step, step if self.reason else self.final(self.context))
        return step if self.reason else last


def _report(say: Callable[[str], None], findings: list[dict], found: Finding) -> None:
    """Report a finding of the running flow, and add it to those of the summary."""
    say(found.line)
    findings.append(asdict(found))
