"""How the host waits for a device while others, on whom the device depends, may be gone."""

import time
from collections.abc import Callable

CHECKED_EVERY = 0.5  # seconds
AT_ONCE = 1e-3  # seconds in which the host asks without a pause
PAUSE = 50e-6  # seconds between two questions after that


class Waiting:
    """Called with what has `done` and `synchronize()`, an event or a stream of CuPy.

    Without a `check` the driver waits. With one the host asks, lets its other threads run, and
    calls `check` now and then, which raises if what it waits for will never come.
    """

    def __init__(self):
        self.check: Callable[[], None] | None = None

    def __call__(self, point) -> None:
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
            time.sleep(0 if now - begin < AT_ONCE else PAUSE)
