"""Ctrl-C in a Python program: delayed until a simulation is between two time steps."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import wraps
from types import FrameType
from typing import Any, TypeVar, cast

from mpilbm.run import stopping
from mpilbm.run.march import Failure, March


class Interrupts:
    """Delays SIGINT in the main thread; an object of the process, shared by all simulations.

    ```
    modes       | delayed (run) ............................................|
                |            | immediate (function of the program) |        |
                |            |      | delayed (field) |            |        |
    Ctrl-C in   | raised at an agreed step | at the end of field | at once |
    ```

    A handler that the program has installed remains. A second Ctrl-C, more than stopping.INTERVAL
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
        again = self._caught is not None and now > self._caught + stopping.INTERVAL
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


def interruption(march: March) -> stopping.EarlyEnd:
    """Raises KeyboardInterrupt on all ranks when all outputs of the step are complete."""

    def end(step: int, reason: str) -> None:
        march.finish()
        interrupts.take()
        raise KeyboardInterrupt

    return stopping.EarlyEnd(march, lambda: interrupts.caught, end)


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
