"""The loop over time steps, from each step at which something is due to the next one."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple, Protocol

from mpilbm.core.errors import NonFiniteError
from mpilbm.outputs.core.summary import Summary
from mpilbm.outputs.core.writers import Writers
from mpilbm.parallel import on_root
from mpilbm.run.start import Started
from mpilbm.run.steady import Watch


class Visitor(Protocol):
    """Work besides outputs and checks, at steps of its own choice."""

    def next_due(self, step: int, last: int) -> int:
        """The next step after `step` at which it is due, at most `last`."""

    def visit(self, step: int, last: int) -> None:
        """Called at all steps at which something is due, on all ranks."""


class Failure(NamedTuple):
    """An error after which a run cannot continue: steps, rows or files may be missing.

    `in_steps`: the steps were not complete, so that the state is that of no step.
    """

    error: BaseException
    where: str
    in_steps: bool

    def __str__(self) -> str:
        name, text = type(self.error).__name__, str(self.error).partition("\n")[0]
        return f"{self.where} ({name}{': ' * bool(text)}{text})"


STEPPING, WRITING = "stepping", "outputs"


class March:
    """Advances the solver, checks the flow, and writes the outputs of a simulation with a folder.

    `stack` closes the summary and the outputs. `reason`: why the last call of `to` ended early, ""
    if it did not. `failure`: the error after which `to` must not be called again; None if there was
    none, or if it was raised by a visitor, when all outputs of the step were written.
    """

    def __init__(self, started: Started, stack: ExitStack):
        self.context, self.folder = started.context, started.folder
        self.reason = ""
        self.failure: Failure | None = None
        self._doing = ""  # what an error now leaves incomplete: STEPPING, WRITING, or nothing
        self.summary: Summary | None = None
        if self.folder is not None:
            self.summary = stack.enter_context(Summary(self.context, started.facts))
        self.context.clock.follow(self.context.solver.device.stream("bulk"))
        outputs = self.context.case.outputs if self.folder is not None else ()
        self.writers = stack.enter_context(Writers(self.context, outputs))
        self.watch = Watch(self.context)
        stack.callback(self.watch.close)
        self._started = False

    def to(self, last: int, visitors: Sequence[Visitor] = ()) -> None:
        """Advance to step `last`, or to that at which the flow is steady; collective.

        All outputs are complete then. Raises NonFiniteError on all ranks. Not to be called after a
        `failure`.
        """
        self.reason = ""
        try:
            with self.watch:
                self._to(last, visitors)
        except BaseException as error:
            self._note(error)
            raise

    def _to(self, last: int, visitors: Sequence[Visitor]) -> None:
        solver = self.context.solver
        if not self._started:
            self._first(last)
        while solver.steps < last:
            due = self._next_due(solver.steps, last, visitors)
            with self._whole(STEPPING):
                solver.advance(due - solver.steps)
            with self._whole(WRITING):
                last = self._check_and_write(due, last)
            for visitor in visitors:
                visitor.visit(due, last)
        self.finish()
        solver.device.synchronize()

    def finish(self) -> None:
        """Wait until all outputs up to this step are complete; collective."""
        try:
            with self._whole(WRITING):
                self.writers.finish()
        except BaseException as error:
            self._note(error)
            raise

    def forget(self) -> None:
        """Check and sample the flow again, because the state was replaced; collective."""
        step = self.context.solver.steps
        self.watch.forget()
        self.watch.prepare(step)
        self.writers.prepare(step, self.final)

    @contextmanager
    def _whole(self, what: str) -> Iterator[None]:
        """Measures the time of the body, which an error leaves incomplete."""
        self._doing = what
        with self.context.clock.measure(what):
            yield
        self._doing = ""

    def _note(self, error: BaseException) -> None:
        nothing_lost = isinstance(error, NonFiniteError) and self.folder is None
        if self._doing and not nothing_lost:
            step = self.context.solver.steps
            places = {STEPPING: f"in the steps after step {step}", WRITING: f"at step {step}"}
            in_steps = self._doing == STEPPING or not isinstance(error, Exception)
            self.failure = Failure(error, places[self._doing], in_steps)
        self._doing = ""

    @property
    def final(self) -> int:
        """The step at which all outputs of the case are written."""
        return max(self.context.first_step, self.context.case.run.steps)

    def _first(self, last: int) -> None:
        """Check the first step, write the outputs that are due at step 0, prepare the others."""
        step, context = self.context.solver.steps, self.context
        with self._whole(WRITING):
            self.watch.verdict(step, last)
            if self.folder is not None:
                on_root(context.comm, self.folder.discard)
            if step == 0:
                self.writers.write(step, self.final)
            else:
                self.writers.prepare(step, self.final)
        self._started = True

    def _next_due(self, step: int, last: int, visitors: Sequence[Visitor]) -> int:
        final = self.final
        written = self.writers.next_due(step, min(final, last) if step < final else last, final)
        asked = (visitor.next_due(step, last) for visitor in visitors)
        return min(self.watch.next_due(step, last), written, *asked)

    def _check_and_write(self, step: int, last: int) -> int:
        """Check the flow, and write the outputs of this step; returns the last step."""
        self.reason = self.watch.verdict(step, last)
        if self.summary is not None:
            self.summary.step, self.summary.reason = step, self.reason
        self.writers.write(step, step if self.reason else self.final)
        return step if self.reason else last
