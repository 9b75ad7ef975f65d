"""Streams of a CPU: queues of calls that run when the host flushes them."""

import time
from collections import deque
from collections.abc import Callable
from typing import Any


class Event:
    """A point in the queue of a stream."""

    def __init__(self, stream: "Stream"):
        self._stream = stream
        self._time: float | None = None

    def _reach(self) -> None:
        self._time = time.perf_counter()

    def synchronize(self) -> None:
        """Run the work enqueued before this point."""
        while self._time is None:
            self._stream.run_next()

    @property
    def done(self) -> bool:
        """Whether the work enqueued before this point has run."""
        return self._time is not None

    def seconds_since(self, earlier: "Event") -> float:
        """Seconds from another event to this one."""
        self.synchronize()
        assert self._time is not None
        assert earlier._time is not None
        return self._time - earlier._time


class Stream:
    """A queue whose work runs when it is flushed or when an event in it is awaited.

    So a time step, which is written for the streams of a GPU, also overlaps communication with
    computing on a CPU: `flush` of the bulk stream computes while MPI transfers the edge planes.
    """

    def __init__(self) -> None:
        self._queue: deque[Callable[[], object]] = deque()

    def submit(self, work: Callable[[], object]) -> None:
        """Enqueue work."""
        self._queue.append(work)

    def run_next(self) -> None:
        """Run the oldest work in the queue."""
        self._queue.popleft()()

    def record(self, timed: bool = False) -> Event:
        """An event after all work enqueued so far."""
        event = Event(self)
        self._queue.append(event._reach)
        return event

    def wait(self, event: Any) -> None:
        """Work enqueued from now on runs after that event."""
        self._queue.append(event.synchronize)

    def flush(self) -> None:
        """Run all enqueued work."""
        while self._queue:
            self.run_next()

    synchronize = flush
