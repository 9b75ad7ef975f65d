"""Many time steps enqueued by one call: recorded once, replayed by the device."""

from collections import deque
from collections.abc import Callable
from time import perf_counter

from mpilbm.backends import Device
from mpilbm.backends.interfaces import Event, Stream

LENGTHS = 64, 32, 16, 8, 4, 2  # steps of a recording: multiples of every period
STEPS_AHEAD = 8  # steps that the host enqueues between two marks
MARKS_AHEAD = 4  # marks that the device may not have reached yet


class StepsAhead:
    """Limits how many steps the host is ahead of the device, so that it sees signals and errors.

    The queue of a device is also finite: a host that fills it waits in the driver.
    """

    def __init__(self, stream: Stream):
        self._stream, self._steps = stream, 0
        self._marks: deque[Event] = deque()

    def enqueued(self, steps: int = 1) -> None:
        """Count steps that have been enqueued; wait if there are too many."""
        self._steps += steps
        if self._steps < STEPS_AHEAD:
            return
        self._steps = 0
        self._marks.append(self._stream.record())
        if len(self._marks) > MARKS_AHEAD:
            self._marks.popleft().synchronize()


class Recordings:
    """Recordings of steps, by the number of steps, in the dictionary `kept` of the exchanger.

    A GPU computes a step of a small box faster than the host enqueues its launches, each of which
    takes 5 us or more; to replay 64 recorded steps takes about as long as one launch. A recording
    contains the addresses of the arrays of one solver.
    """

    def __init__(self, device: Device, kept: dict[int, Callable[[], None]]):
        self._device, self._kept = device, kept

    @staticmethod
    def length(steps: int) -> int | None:
        """The longest recording of at most so many steps; None if all are longer."""
        return next((length for length in LENGTHS if length <= steps), None)

    def play(self, length: int, enqueue: Callable[[], None]) -> float:
        """Replay so many steps, recorded at first use from what `enqueue()` enqueues; the host's
        seconds.
        """
        if length not in self._kept:
            self._kept[length] = self._device.recording(enqueue)
        begin = perf_counter()
        self._kept[length]()
        return perf_counter() - begin
