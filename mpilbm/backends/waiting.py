"""How the host waits for a device that depends on other ranks, which may have ended."""

import time
from collections.abc import Callable
from typing import Any

CHECKED_EVERY = 0.5  # seconds
BUSY = 1e-3  # seconds in which the host polls without a pause
PAUSE = 50e-6  # seconds between two polls after that


class Waiting:
    """Called with an event or a stream of CuPy: an object with `done` and `synchronize()`.

    Without a `check` the driver waits. With a `check` the host polls, lets its other threads run,
    and at intervals calls `check`, which raises if the point can no longer be reached.
    """

    def __init__(self) -> None:
        self.check: Callable[[], None] | None = None

    def __call__(self, point: Any) -> None:
        """Wait until the point is reached."""
        if self.check is None:
            point.synchronize()
            return
        begin = checked = time.monotonic()
        while not point.done:
            now = time.monotonic()
            if now - checked > CHECKED_EVERY:
                self.check()
                checked = now
            time.sleep(0 if now - begin < BUSY else PAUSE)
