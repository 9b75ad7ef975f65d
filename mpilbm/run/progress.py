"""How far a run has come: one line that moves on a terminal, plain lines in a log."""

import sys
import time

from mpilbm.system import terminal

PLAIN_SECONDS = 10.0
LIVE_SECONDS = 0.2


def say(comm, text: str):
    """A line for the user, from rank 0."""
    if comm.rank == 0:
        terminal.print_line(text)


class Progress:
    """Shown by rank 0 while entered; `update` may come as often as it likes."""

    def __init__(self, comm, first: int, last: int, cells: int, clock):
        self.first, self.last, self.cells, self.clock = first, last, cells, clock
        self.speaks = comm.rank == 0
        self.step = first
        self.shown = time.monotonic()
        self.live = None

    def __enter__(self):
        if self.speaks:
            self.live = _live_line()
        return self

    def update(self, step: int):
        """The run has come to this step."""
        self.step = step
        pause = LIVE_SECONDS if self.live else PLAIN_SECONDS
        if self.speaks and time.monotonic() - self.shown >= pause:
            self._show()

    def __exit__(self, kind, error, trace):
        if self.speaks:
            self._show()
        if self.live:
            self.live.stop()

    def _show(self):
        self.shown = time.monotonic()
        if self.live:
            self.live.update(self.line(), refresh=True)
        else:
            print(self.line(), flush=True)

    def line(self) -> str:
        """`step 1200/20000 (6 %)  0.042 GLUPS  3 min left`."""
        done, todo, seconds = self.step - self.first, self.last - self.step, self.clock.stepping
        text = f"step {self.step}/{self.last} ({100 * self.step // max(self.last, 1)} %)"
        if not done or not seconds:
            return text
        text += f"  {self.cells * done / seconds / 1e9:.3g} GLUPS"
        if todo:
            return text + f"  {_duration((seconds + self.clock.outputs) / done * todo)} left"
        return text + f"  {_duration(seconds + self.clock.outputs)}"


def _live_line():
    """A rich line on a terminal, else None. Open MPI feigns one for stdout, but not for stderr."""
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        return None
    from rich.console import Console
    from rich.live import Live

    live = Live("", auto_refresh=False, console=Console(file=terminal.unfiltered()))
    live.start()
    return live


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
