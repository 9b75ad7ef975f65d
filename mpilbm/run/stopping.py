"""Ends a run early, all ranks at the same step: by a signal or at a time limit.

In a Python program Ctrl-C is delayed until a simulation is between two time steps.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import wraps
from types import FrameType
from typing import Any, NamedTuple, Self, TypeVar, cast

from mpilbm.core.errors import Terminated
from mpilbm.outputs.checkpoint import Checkpoint
from mpilbm.parallel import Communicator
from mpilbm.run.march import Failure, March
from mpilbm.solver.step_times import Clock
from mpilbm.solver.two_steps import GROUP
from mpilbm.storage.background import GUESSED_BYTES_PER_SECOND

SIGNALS = (signal.SIGUSR1, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
# Seconds between two agreements; the number of steps between them at most doubles each time.
INTERVAL = 1.0


class Signals:
    """Stores the signal that has arrived in `caught`, so that the ranks can agree on an early end.

    While `stepping` there is a state to save. Before that, SIGINT (Ctrl-C), SIGTERM and SIGHUP end
    the process, and SIGUSR1 is stored. A second Ctrl-C also ends the process. A launcher may
    forward the signal that the terminal has sent to all processes, so two within INTERVAL count as
    one.
    """

    def __init__(self) -> None:
        self.caught, self.stepping = "", False
        self._first: float | None = None  # when the first signal was stored
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            used = [number for number in SIGNALS if number not in _ignored()]
            self._handlers = {number: signal.signal(number, self._catch) for number in used}
        return self

    def __exit__(self, *raised: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _catch(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if number in (signal.SIGTERM, signal.SIGHUP) and not self.stepping:
            raise Terminated(signal.Signals(number).name, number)
        again = self._first is not None and now > self._first + INTERVAL
        if number == signal.SIGINT and (not self.stepping or again):
            raise KeyboardInterrupt
        self.caught = signal.Signals(number).name
        self._first = now if self._first is None else self._first


def _ignored() -> set[int]:
    """Signals that the process ignores: SIGINT in the background of a shell, SIGHUP by nohup."""
    numbers = signal.SIGINT, signal.SIGHUP
    return {number for number in numbers if signal.getsignal(number) == signal.SIG_IGN}


class TimeLimit(NamedTuple):
    """When a run must have ended, in seconds of its clock, and the name of the limit."""

    seconds: float
    name: str


def time_limit(
    walltime: float | None, clock: Clock, environment: Mapping[str, str] = os.environ
) -> TimeLimit | None:
    """The earlier of `walltime` and the end of the SLURM job; None without limits.

    The job ends at SLURM_JOB_END_TIME. A time in the past belongs to an earlier job and is ignored.
    """
    limits = []
    if walltime is not None:
        limits.append(TimeLimit(walltime, f"wall-time limit of {walltime:g} s"))
    end = environment.get("SLURM_JOB_END_TIME", "")
    left = int(end) - time.time() if end.isdigit() else 0.0
    if left > 0:
        limits.append(TimeLimit(clock.wall + left, "time limit of the SLURM job"))
    return min(limits, default=None)


class Stopping:
    """At `next_step` the ranks agree whether to end because of a signal or a time limit.

    Rank 0 measures the speed and chooses the next such step, about a second ahead. The run ends
    early enough before the limit to reach the next agreement, for which the longest time between
    two agreements is assumed, to finish the files that are being written, and to write a checkpoint
    of `state_bytes`.
    """

    def __init__(
        self,
        comm: Communicator,
        clock: Clock,
        limit: TimeLimit | None,
        state_bytes: int,
        first: int,
    ):
        self.comm, self.clock, self.limit = comm, clock, limit
        self.guessed_seconds = state_bytes / GUESSED_BYTES_PER_SECOND
        self.step, self.next_step = first, first + 1
        self.then, self.longest = clock.wall, INTERVAL

    def agree(
        self,
        step: int,
        caught: str = "",
        checkpoint_seconds: float | None = None,
        left: float = 0.0,
    ) -> str:
        """Why all ranks end here, or "" to continue until the new `next_step`; collective.

        `caught` is the signal that this rank has received; `checkpoint_seconds` the time of the
        last checkpoint, None if there was none; `left` the time that files which are being written
        may still take.
        """
        signals = self.comm.gather(caught)
        saving = (checkpoint_seconds or self.guessed_seconds) + left
        decision = self._decide(step, signals, saving) if signals is not None else None
        reason, self.next_step = self.comm.bcast(decision)
        self.step, self.then = step, self.clock.wall
        return reason

    def _decide(self, step: int, signals: list[str], saving: float) -> tuple[str, int]:
        """The reason to end and the next step, on rank 0; `saving`: seconds to save the state."""
        done = step - self.step
        seconds = max(self.clock.wall - self.then, 1e-9)
        self.longest = max(self.longest, seconds)
        ahead = min(int(INTERVAL * done / seconds), 2 * done)
        reason = next(filter(None, signals), "")
        margin = self.longest + INTERVAL + 2 * saving
        if not reason and self.limit and self.clock.wall + margin > self.limit.seconds:
            reason = self.limit.name
        following = step + max(1, ahead)
        if ahead >= 2 * GROUP:  # no group of steps is divided, see solver.two_steps
            following -= following % GROUP
        return reason, following


class EarlyEnd:
    """A visitor of the march that ends it at a signal or a time limit.

    caught  returns the name of the signal that this rank has received, or ""
    end     called on all ranks with the step and the reason; raises the error that ends the run
    """

    def __init__(
        self,
        march: March,
        caught: Callable[[], str],
        end: Callable[[int, str], None],
        limit: TimeLimit | None = None,
    ):
        context = march.context
        self.march, self.caught, self.end = march, caught, end
        size = Checkpoint(every=1).disk_bytes(context.case, 1)
        self.stopping = Stopping(context.comm, context.clock, limit, size, context.solver.steps)

    def next_due(self, step: int, last: int) -> int:
        """The next step at which the ranks agree whether to end."""
        return min(self.stopping.next_step, last)

    def visit(self, step: int, last: int) -> None:
        """Call `end` on all ranks if the run has to end before `last`."""
        if step != self.stopping.next_step:
            return
        context = self.march.context
        with context.clock.measure("outputs"):
            context.samples.settle()
        context.solver.device.synchronize()
        seconds = self.march.writers.checkpoint_seconds, context.background.left
        reason = self.stopping.agree(step, self.caught(), *seconds)
        if reason and step < last:
            self.end(step, reason)


class Interrupts:
    """Delays SIGINT in the main thread; an object of the process, shared by all simulations.

    ```
    modes       | delayed (run) ............................................|
                |            | immediate (function of the program) |        |
                |            |      | delayed (field) |            |        |
    Ctrl-C in   | raised at an agreed step | at the end of field | at once |
    ```

    A handler that the program has installed remains. A second Ctrl-C, more than INTERVAL
    after the first one, is raised at once.
    """

    def __init__(self) -> None:
        self._caught: float | None = None  # when the signal that is delayed has arrived
        self._modes: list[bool] = []  # whether the signal is delayed, the innermost last

    @property
    def caught(self) -> str:
        """The name of the signal that is delayed; "" without one."""
        return "" if self._caught is None else signal.SIGINT.name

    def take(self) -> None:
        """Forget the signal, because the caller raises KeyboardInterrupt."""
        self._caught = None

    @contextmanager
    def delayed(self) -> Iterator[None]:
        """Raise KeyboardInterrupt at the end of the body if SIGINT has arrived in it.

        In a body of another `delayed` block: at the end of the outer one.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        depth, previous = len(self._modes), signal.getsignal(signal.SIGINT)
        installs = previous is signal.default_int_handler
        self._modes.append(True)
        whole = False
        try:
            if installs:
                signal.signal(signal.SIGINT, self._catch)
            yield
            whole = True
        finally:
            if installs:
                signal.signal(signal.SIGINT, previous)
            del self._modes[depth:]
            raises = self._caught is not None and not any(self._modes[-1:])
            if raises:
                self.take()
        if whole and raises:
            raise KeyboardInterrupt

    @contextmanager
    def immediate(self) -> Iterator[None]:
        """Raise KeyboardInterrupt in the body at once, except in `delayed` blocks of it."""
        depth = len(self._modes)
        self._modes.append(False)
        try:
            yield
        finally:
            del self._modes[depth:]

    def _catch(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        again = self._caught is not None and now > self._caught + INTERVAL
        if again or not any(self._modes[-1:]):
            self.take()
            raise KeyboardInterrupt
        self._caught = now if self._caught is None else self._caught


interrupts = Interrupts()


class Calls:
    """Calls `call(sim)` at steps that are multiples of `every`.

    On a single rank Ctrl-C ends the function at once; several ranks agree on a step.
    """

    def __init__(self, sim: Any, every: int, call: Callable[[Any], object]):
        self.sim, self.every, self.call = sim, every, call

    def next_due(self, step: int, last: int) -> int:
        """The next multiple of `every`, at most `last`."""
        return min((step // self.every + 1) * self.every, last)

    def visit(self, step: int, last: int) -> None:
        """Call the function."""
        if step % self.every:
            return
        with interrupts.immediate() if self.sim.comm.size == 1 else nullcontext():
            self.call(self.sim)


def interruption(march: March) -> EarlyEnd:
    """Raises KeyboardInterrupt on all ranks when all outputs of the step are complete."""

    def end(step: int, reason: str) -> None:
        march.finish()
        interrupts.take()
        raise KeyboardInterrupt

    return EarlyEnd(march, lambda: interrupts.caught, end)


Method = TypeVar("Method", bound=Callable[..., Any])


def undivided(method: Method) -> Method:
    """A method of a simulation whose end Ctrl-C waits for.

    After a second Ctrl-C, which interrupts it, the simulation refuses all further calls.
    """

    @wraps(method)
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        with interrupts.delayed():
            try:
                return method(self, *arguments, **options)
            except KeyboardInterrupt as error:
                self._failed = self._failed or Failure(error, f"in {method.__name__}", True)
                raise

    return cast(Method, call)
