"""The progress of a run: what a slow start does, then one line that is updated on a terminal.

In a log the progress consists of separate lines.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Self

from mpilbm.core.machine import activity, terminal
from mpilbm.core.units import duration
from mpilbm.parallel import Communicator
from mpilbm.solver.step_times import Clock

if TYPE_CHECKING:
    from rich.live import Live

PLAIN_SECONDS = 10.0
LIVE_SECONDS = 0.2
SLOW_SECONDS = 2.0  # after which a stage of the start is reported


def say(comm: Communicator, text: str) -> None:
    """Print a line for the user, from rank 0."""
    if comm.rank == 0:
        terminal.print_line(text)


class Say:
    """Gets lines for the user, on all ranks; those of rank 0 are printed.

    `messages` gets the lines of rank 0, too. Nothing is printed without `prints`.
    """

    def __init__(self, comm: Communicator, messages: list[str] | None = None, prints: bool = True):
        self._first = comm.rank == 0
        self._messages, self._prints = messages, prints and self._first

    def __call__(self, text: str) -> None:
        """Print a line, and keep it in `messages`."""
        if self._first and self._messages is not None:
            self._messages.append(text)
        if self._prints:
            terminal.print_line(text)

    @contextmanager
    def during(self, stage: str) -> Iterator[None]:
        """Print a line with the name of a stage, once the body has taken SLOW_SECONDS.

        Its present `activity` follows, and has a line of its own if it begins later. The lines are
        progress, and not kept in `messages`.
        """
        ended = Event()
        watch = Thread(target=_report, args=(stage, ended), daemon=True)
        if self._prints:
            watch.start()
        try:
            yield
        finally:
            ended.set()
            if self._prints:
                watch.join()  # no line follows the end


def _report(stage: str, ended: Event) -> None:
    """Print what a stage does, every SLOW_SECONDS if that has changed."""
    printed = ""
    while not ended.wait(SLOW_SECONDS):
        within = activity.present()
        line = f"{stage}: {within} ..." if within else f"{stage} ..."
        if line != printed:
            terminal.print_line(line)
        printed = line


class Progress:
    """Printed by rank 0 inside `with`. `update` may be called any number of times."""

    def __init__(self, comm: Communicator, first: int, last: int, cells: int, clock: Clock):
        self.first, self.last, self.cells, self.clock = first, last, cells, clock
        self.prints = comm.rank == 0
        self.step, self.note = first, ""
        self.shown = time.monotonic()
        self.live: Live | None = None

    def __enter__(self) -> Self:
        if self.prints:
            self.live = _live_line()
        return self

    def update(self, step: int, note: str = "") -> None:
        """The run has reached this step; `note` is shown after the times."""
        self.step, self.note = step, note
        pause = LIVE_SECONDS if self.live else PLAIN_SECONDS
        if self.prints and time.monotonic() - self.shown >= pause:
            self._show()

    def __exit__(self, *raised: object) -> None:
        if self.prints:
            self._show()
        if self.live:
            self.live.stop()

    def _show(self) -> None:
        self.shown = time.monotonic()
        if self.live:
            self.live.update(self.line(), refresh=True)
        else:
            print(self.line(), flush=True)

    def line(self) -> str:
        """`step 1200/20000 (6 %)  0.042 GLUPS  3 min left`, and the note."""
        return "  ".join(filter(None, (self._times(), self.note)))

    def _times(self) -> str:
        done, todo, seconds = self.step - self.first, self.last - self.step, self.clock.stepping
        text = f"step {self.step}/{self.last} ({100 * self.step // max(self.last, 1)} %)"
        if not done or not seconds:
            return text
        text += f"  {self.cells * done / seconds / 1e9:.3g} GLUPS"
        if todo:
            return text + f"  {duration((seconds + self.clock.outputs) / done * todo)} left"
        return text + f"  {duration(seconds + self.clock.outputs)}"


def _live_line() -> "Live | None":
    """A line of rich on a terminal, else None.

    Under Open MPI stdout looks like a terminal even if it is none, but stderr does not.
    """
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        return None
    from rich.console import Console
    from rich.live import Live

    console = Console(file=terminal.unfiltered())
    live = Live("", auto_refresh=False, console=console)
    live.start()
    return live
