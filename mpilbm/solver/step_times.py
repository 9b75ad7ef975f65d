"""Where the time of a run goes: in a step, some of which are timed; in steps and outputs."""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, NamedTuple

from mpilbm.backends import Device
from mpilbm.backends.interfaces import Event, Stream

EVERY = 255  # odd, so that steps of both parities are timed


class StepTimes:
    """Means over timed steps: of `every` steps one is timed on the device, another on the host.

    ```
    bulk stream   |begin| lists | bulk planes ...............|done|
    edge stream                 | edge planes |ready|    |..........arrived|
                        |<------ edge ------->|<--- bulk --->|<-exchange-->|
    ```

    `split` contains four times in seconds. `edge`: until the edge planes are ready to be sent;
    `bulk`: from then until all planes are computed; `exchange`: the part of the exchange after
    that. Their sum is the device's time for a step. `host`: the time in which the host enqueues a
    step, which overlaps with the device's work.
    """

    def __init__(self, device: Device):
        self.every, self._bulk = EVERY, device.stream("bulk")
        self._begin: Event | None = None  # of the present step, if it is timed on the device
        self._timed: tuple[Event, Sequence[Any]] | None = None  # the last one: (begin, events)
        self._host_begin: float | None = None  # of the present step, if it is timed on the host
        self._device, self._steps = {"edge": 0.0, "exchange": 0.0, "bulk": 0.0}, 0
        self._exchanging, self._host, self._host_steps = 0.0, 0.0, 0
        self._enqueued, self._replayed, self._replaying = 0, 0, 0.0

    def untimed(self, step: int) -> int:
        """How many steps from this one on come before the next that is timed."""
        phase, half = step % self.every, self.every // 2
        return (half if phase <= half else self.every - 1) - phase

    def replayed(self, steps: int, seconds: float) -> None:
        """Count recorded steps that the host replayed in so many seconds."""
        self._replayed, self._replaying = self._replayed + steps, self._replaying + seconds

    def begin(self, step: int, waited: float) -> bool:
        """Begin a step; True if it is timed on the device, with the events given to `end`.

        `waited`: seconds that the host has waited in steps so far.
        """
        self._enqueued += 1
        phase = step % self.every
        timed = phase == self.every - 1
        if timed:
            self._read()
            self._begin = self._bulk.record(timed=True)
        self._host_begin = perf_counter() - waited if phase == self.every // 2 else None
        return timed

    def end(self, events: Sequence[Any], waited: float) -> None:
        """End a step: the events ready, done and arrived of each pass if it is timed."""
        if self._begin is not None:
            self._timed, self._begin = (self._begin, events), None
        if self._host_begin is not None:
            self._host += perf_counter() - waited - self._host_begin
            self._host_steps += 1

    def _read(self) -> None:
        """Add the times of the last step that was timed on the device."""
        if self._timed is None:
            return
        begin, events = self._timed
        seconds, before = [event.seconds_since(begin) for event in events], 0.0
        for ready, done, arrived in zip(*(seconds[k::3] for k in range(3)), strict=True):
            self._device["edge"] += ready - before
            self._device["bulk"] += max(0.0, done - ready)
            self._device["exchange"] += max(0.0, arrived - max(ready, done))
            self._exchanging += arrived - ready
            before = max(done, arrived)
        self._steps, self._timed = self._steps + 1, None

    @property
    def host(self) -> float | None:
        """Mean seconds of the host's work in a step so far; None if not known."""
        if not self._host_steps:
            return None
        alone = self._host / self._host_steps * self._enqueued
        return (alone + self._replaying) / (self._enqueued + self._replayed)

    @property
    def split(self) -> dict[str, float] | None:
        """Mean seconds of a step, by `edge`, `exchange`, `bulk` and `host`; None if not known."""
        self._read()
        host = self.host
        if host is None or not self._steps:
            return None
        device = {name: seconds / self._steps for name, seconds in self._device.items()}
        return device | {"host": host}

    @property
    def hidden(self) -> float | None:
        """Share of the exchange's time that overlaps with computing; None if not known."""
        self._read()
        if self._exchanging <= 0:
            return None
        return 1 - self._device["exchange"] / self._exchanging


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

    After `follow(stream)` these are times of the device, which the host may be ahead of: what
    counts is how long the device takes for what was enqueued inside `measure`, with its waiting for
    the host.
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
        """Settle without waiting; if the device has failed, which ends the run elsewhere, keep what
        is known.
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
