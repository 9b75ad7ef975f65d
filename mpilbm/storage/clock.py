"""Measures the wall time of a run: time steps, and outputs and checks."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Seconds since the start, in time steps (stepping), and in outputs and checks (outputs)."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self.stepping = 0.0
        self.outputs = 0.0

    @property
    def wall(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.start

    @contextmanager
    def measure(self, what: str) -> Iterator[None]:
        """Add the seconds of the body to `stepping` or `outputs`."""
        begin = time.monotonic()
        try:
            yield
        finally:
            setattr(self, what, getattr(self, what) + time.monotonic() - begin)
