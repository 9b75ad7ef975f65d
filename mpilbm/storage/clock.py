"""Where the seconds of a run go."""

import time
from contextlib import contextmanager


class Clock:
    """Seconds since the start, spent stepping, and spent in outputs and checks."""

    def __init__(self):
        self.start = time.monotonic()
        self.stepping = 0.0
        self.outputs = 0.0

    @property
    def wall(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.start

    @contextmanager
    def measure(self, what: str):
        """Add the seconds that the body takes to `stepping` or `outputs`."""
        begin = time.monotonic()
        try:
            yield
        finally:
            setattr(self, what, getattr(self, what) + time.monotonic() - begin)
