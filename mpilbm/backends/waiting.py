"""How the host waits for a device that depends on other ranks, which may have ended."""

import time
from collections.abc import Callable
from threading import current_thread, main_thread
from typing import Any

CHECKED_EVERY = 0.5  # seconds
BUSY = 1e-3  # seconds in which the host polls without a pause
PAUSE = 50e-6  # seconds between two polls after that
LONG_PAUSE = 5e-4  # seconds between two polls of a thread that writes files


class Waiting:
    """Called with an event or a stream of CuPy: an object with `done` and `synchronize()`.

    Without a `check` the driver waits: it polls, which a core must be free for. With a `check` the
    host polls, lets its other threads run, and at intervals calls `check`, which raises if the
    point can no longer be reached. Threads that write files sleep between two polls.
    """

    def __init__(self) -> None:
        self.check: Callable[[], None] | None = None

    def __call__(self, point: Any) -> None:
        """Wait until the point is reached."""
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
