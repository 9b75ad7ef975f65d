"""Steps enqueued many at a time: recorded once, played again, by the device alone."""

from functools import cached_property, partial
from time import perf_counter

LENGTHS = 64, 8  # steps of a recording: multiples of every period
LEAD = 8  # steps after which the host waits until those before have been done


class Lead:
    """Keeps the host within a few steps of the device, so that it hears of signals and errors.

    Also the queue of a device is finite: who fills it waits without knowing.
    """

    def __init__(self, stream):
        self._stream, self._steps, self._mark = stream, 0, None

    def passed(self, steps: int = 1) -> None:
        """So many steps more have been enqueued."""
        self._steps += steps
        if self._steps < LEAD:
            return
        self._steps, mark, self._mark = 0, self._mark, self._stream.record()
        if mark is not None:
            mark.synchronize()


class Replay:
    """Enqueues the steps of a solver, where it can many of them by one call.

    A step of a small box takes a GPU less than the host needs for its launches, 5 us and more for
    each; a recording of 64 steps costs the host hardly more than one launch. It holds what steps
    do that differ in nothing but the state. One by one go those that are timed, all steps of a
    case with values that follow the time, and all if the host takes part in the exchange.
    """

    def __init__(self, solver):
        self._solver, self.recordings = solver, solver.exchanger.recordings

    @cached_property
    def possible(self) -> bool:
        """Whether steps t and t + period enqueue the same."""
        solver = self._solver
        exchanges = (one.exchange for each in solver.passes for one in each.passes)
        return (
            solver.device.records
            and not solver.follows_time
            and all(exchange.in_streams for exchange in exchanges)
        )

    def advance(self, steps: int) -> None:
        """Enqueue so many steps."""
        while steps > 0:
            length = self._length(steps)
            if length:
                self._play(length)
            else:
                self._solver.step()
            steps -= length or 1

    def _length(self, steps: int) -> int:
        """Of the longest recording that fits before a step that is timed; 0 if none does."""
        solver = self._solver
        if solver.steps % solver.period or not self.possible:
            return 0
        steps = min(steps, solver.times.untimed(solver.steps))
        return next((length for length in LENGTHS if length <= steps), 0)

    def _play(self, length: int) -> None:
        solver = self._solver
        if length not in self.recordings:
            self.recordings[length] = solver.device.recording(partial(self._enqueue, length))
        begin = perf_counter()
        self.recordings[length]()
        solver.times.played(length, perf_counter() - begin)
        solver.steps += length
        solver.lead.passed(length)

    def _enqueue(self, length: int) -> None:
        for step in range(length):
            self._solver.enqueue_step(step % self._solver.period)
