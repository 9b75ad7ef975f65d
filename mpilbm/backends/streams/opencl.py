"""In-order queues and events of OpenCL by pyopencl, which the device passes as an argument."""

from collections import deque
from typing import Any

from mpilbm.backends.waiting import Waiting
from mpilbm.errors import MpilbmError


class Point:
    """An event of pyopencl, as `Waiting` expects it."""

    def __init__(self, cl: Any, event: Any):
        self._cl, self.event = cl, event

    @property
    def done(self) -> bool:
        """Whether the device has reached this point; raises MpilbmError if a command failed."""
        status = self.event.command_execution_status
        if status < 0:
            raise MpilbmError(f"OpenCL: a command failed with error {status}")
        return status == self._cl.command_execution_status.COMPLETE

    def synchronize(self) -> None:
        """Wait on the host until the device has reached this point."""
        try:
            self.event.wait()
        except self._cl.Error as error:
            raise MpilbmError(f"OpenCL: {error}") from error


class OpenclEvent:
    """A point in a queue."""

    def __init__(self, stream: "OpenclStream"):
        self._wait, self.point = stream.wait_for, stream.marker()

    def synchronize(self) -> None:
        """Wait on the host until the device has reached this point."""
        self._wait(self.point)

    @property
    def done(self) -> bool:
        """Whether the device has reached this point."""
        return self.point.done

    def seconds_since(self, earlier: "OpenclEvent") -> float:
        """Seconds on the device from another event to this one; both recorded with `timed`."""
        self.synchronize()
        return (self.point.event.profile.end - earlier.point.event.profile.end) * 1e-9


class OpenclStream:
    """An in-order queue."""

    def __init__(self, cl: Any, context: Any, device: Any, waiting: Waiting):
        self._cl, self.wait_for = cl, waiting
        profiling = cl.command_queue_properties.PROFILING_ENABLE
        self.queue = cl.CommandQueue(context, device, profiling)
        self._copies: deque[Any] = deque()

    def marker(self) -> Point:
        """A point after all work enqueued so far, which the device begins."""
        point = Point(self._cl, self._cl.enqueue_marker(self.queue))
        self.queue.flush()
        return point

    def record(self, timed: bool = False) -> OpenclEvent:
        """An event after all work enqueued so far."""
        return OpenclEvent(self)

    def wait(self, event: Any) -> None:
        """Work enqueued from now on runs after that event of the same device."""
        self._cl.enqueue_barrier(self.queue, wait_for=[event.point.event])

    def flush(self) -> None:
        """Let the enqueued work begin."""
        self.queue.flush()

    def synchronize(self) -> None:
        """Wait on the host until all enqueued work is done."""
        self.wait_for(self.marker())
        self._copies.clear()

    def keep(self, copy: Any) -> None:
        """Keep the event of a copy, and so its host memory, until the copy is done."""
        complete = self._cl.command_execution_status.COMPLETE
        while self._copies and self._copies[0].command_execution_status == complete:
            self._copies.popleft()
        self._copies.append(copy)
