"""Measures the time of a run: time steps, and outputs and checks."""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from mpilbm.backends.interfaces import Event, Stream


class HostMoment:
    """The present time of the host."""

    done = True

    def __init__(self) -> None:
        self.seconds = time.perf_counter()

    def synchronize(self) -> None:
        """Return at once."""

    def seconds_since(self, earlier: Any) -> float:
        """Seconds from another moment of the host."""
        return self.seconds - earlier.seconds


class Span(NamedTuple):
    """What a device or the host did from one moment to another."""

    what: str
    begin: Event
    end: Event


class Reading:
    """The seconds of stepping up to the present point of a run, known later."""

    def __init__(self, clock: "Clock"):
        self._clock, self.value = clock, 0.0
        self.known = False

    @property
    def seconds(self) -> float:
        """Waits until the device has reached this point."""
        while not self.known:
            self._clock.settle(wait=True)
        return self.value


class Clock:
    """Seconds since the start, in time steps (stepping), and in outputs and checks (outputs).

    After `follow(stream)` these are times of the device. The host may enqueue steps and outputs
    ahead of it: what counts is how long the device takes until it has done what was enqueued inside
    `measure`, with the time for which it waits for the host there.
    """

    def __init__(self) -> None:
        self.start = time.monotonic()
        self._seconds = {"stepping": 0.0, "outputs": 0.0}
        self._open: deque[Span | Reading] = deque()
        self._stream: Stream | None = None

    def follow(self, stream: Stream) -> None:
        """From now on measure the times of the work in this stream."""
        self._stream = stream

    @property
    def wall(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.start

    @property
    def stepping(self) -> float:
        """Seconds of the time steps that are done."""
        self._settle_if_possible()
        return self._seconds["stepping"]

    @property
    def outputs(self) -> float:
        """Seconds of the outputs and checks that are done."""
        self._settle_if_possible()
        return self._seconds["outputs"]

    def reading(self) -> Reading:
        """The seconds of stepping up to here."""
        reading = Reading(self)
        self._open.append(reading)
        return reading

    @contextmanager
    def measure(self, what: str) -> Iterator[None]:
        """Add the seconds of the body to `stepping` or `outputs`."""
        begin = self._now()
        try:
            yield
        finally:
            self._open.append(Span(what, begin, self._now()))

    def _now(self) -> Event:
        if self._stream is None:
            return HostMoment()
        event = self._stream.record(timed=True)
        self._stream.flush()
        return event

    def _settle_if_possible(self) -> None:
        """Settle without waiting; if the device has failed, keep what is known.

        The error of the device ends the run elsewhere. Its summary needs these times then.
        """
        try:
            self.settle()
        except Exception:
            self._open.clear()

    def settle(self, wait: bool = False) -> None:
        """Add the seconds of all spans that are done; with `wait`, wait for the oldest one."""
        while self._open:
            oldest = self._open[0]
            if isinstance(oldest, Span):
                if wait:
                    oldest.end.synchronize()
                elif not oldest.end.done:
                    return
                self._seconds[oldest.what] += oldest.end.seconds_since(oldest.begin)
                wait = False
            else:
                oldest.value, oldest.known = self._seconds["stepping"], True
            self._open.popleft()
