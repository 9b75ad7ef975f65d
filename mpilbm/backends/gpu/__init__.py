"""What CUDA, HIP and OpenCL devices share: waiting on the host, limits, errors of compilers."""

import time
from collections.abc import Callable
from threading import current_thread, main_thread
from typing import Any

from mpilbm.backends import Device
from mpilbm.backends.gpu.launch import most_rows
from mpilbm.core.errors import MpilbmError
from mpilbm.core.machine import cache

CHECKED_EVERY = 0.5  # seconds
BUSY = 1e-3  # seconds in which the host polls without a pause
PAUSE = 50e-6  # seconds between two polls after that
LONG_PAUSE = 5e-4  # seconds between two polls of a thread that writes files


class Waiting:
    """How the host waits for a point: an object with `done` and `synchronize()`.

    Without a `check` the driver waits: it polls, which needs a free core. With a `check` the host
    polls, lets its other threads run, and at intervals calls `check`, which raises if the point can
    no longer be reached because other ranks have ended. Threads that write files sleep between two
    polls.
    """

    def __init__(self) -> None:
        self.check: Callable[[], None] | None = None

    def __call__(self, point: Any) -> None:
        main = current_thread() is main_thread()
        if self.check is None and main:
            point.synchronize()
            return
        begin = checked = time.monotonic()
        while not point.done:
            now = time.monotonic()
            if self.check is not None and now - checked > CHECKED_EVERY:
                self.check()
                checked = now
            polled = main and now - begin < BUSY
            time.sleep(0 if polled else PAUSE if main else LONG_PAUSE)


class GpuDevice(Device):
    """A device with a driver, for which the host waits by `_waiting`."""

    _waiting: Waiting

    def watch(self, check: Callable[[], None] | None = None) -> None:
        """Call `check`, which may raise, at intervals while the host waits; None: stop calling."""
        self._waiting.check = check

    def problems(self, shape: tuple[int, int, int]) -> list[str]:
        """Why a box of (planes, rows, nx) has too many rows for a grid; empty if it has not."""
        _, rows, nx = shape
        most = most_rows(nx, rows)
        if rows <= most:
            return []
        return [
            f"domain.size: {rows} rows of {nx} cells, a GPU allows at most {most} of this length; "
            "turn the box so that its longest side is x or z"
        ]

    def compile_error(self, text: str, suffix: str, error: Exception) -> MpilbmError:
        """An error of the compiler: its first lines, and the file that holds the text."""
        kept = cache.put(suffix, cache.digest(text), text.encode()).resolve()
        lead = f"{self.compiler} could not compile the kernels (text: {kept}):"
        return MpilbmError([lead, *str(error).splitlines()[:12]])
