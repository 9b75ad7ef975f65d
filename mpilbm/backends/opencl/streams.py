"""In-order queues and events of OpenCL by pyopencl, which the device passes as an argument."""

from collections import deque
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from mpilbm.core.errors import MpilbmError

MOST_ENDS = 4  # events that are kept, where barriers follow each other without a command
MARK = np.zeros(1, np.int32)  # what the device writes to take a time


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
    """A point in a queue; `timed`: the point immediately after it at which its time is taken."""

    def __init__(self, stream: "OpenclStream", point: Point, timed: Point | None):
        self.queue, self.point = stream.queue, point
        self._wait, self._timed, self.end = stream.wait_for, timed, timed or point

    def synchronize(self) -> None:
        """Wait on the host until the device has reached this point."""
        self._wait(self.end)

    @property
    def done(self) -> bool:
        """Whether the device has reached this point."""
        return self.end.done

    def seconds_since(self, earlier: "OpenclEvent") -> float:
        """Seconds on the device from another event to this one; both recorded with `timed`."""
        self.synchronize()
        earlier.synchronize()  # its time may be taken in another queue
        assert self._timed is not None, "not recorded with `timed`"
        assert earlier._timed is not None, "not recorded with `timed`"
        return (self._timed.event.profile.end - earlier._timed.event.profile.end) * 1e-9


class OpenclStream:
    """An in-order queue. Times are taken in a second queue, because profiling delays kernels.

    One thread at a time enqueues work. `waiting(point)`: waits on the host.
    """

    def __init__(self, cl: Any, context: Any, device: Any, waiting: Callable[[Point], None]):
        self._cl, self.wait_for = cl, waiting
        self.queue = cl.CommandQueue(context, device)
        self._context, self._device = context, device
        self._copies: deque[Any] = deque()
        # Events after which all work enqueued so far is done: that of the last command, after a
        # barrier also those that it waits for.
        self._ends: list[Any] = []

    def enqueued(self, event: Any) -> None:
        """Note the event of a command that was enqueued, which is now the last one."""
        self._ends = [event]

    def point(self) -> Point:
        """A point after all work enqueued so far, which the device begins.

        It is the event of the last command where there is one. NVIDIA's driver completes a marker
        only after the kernels that other queues run at the time, so that an exchange would wait
        for the kernel that should hide it.
        """
        event = self._ends[0] if len(self._ends) == 1 else self._cl.enqueue_marker(self.queue)
        self.queue.flush()
        return Point(self._cl, event)

    def record(self, timed: bool = False) -> OpenclEvent:
        """An event after all work enqueued so far."""
        point = self.point()
        return OpenclEvent(self, point, self._time_of(point) if timed else None)

    @cached_property
    def _clock(self) -> tuple[Any, Any]:
        """A queue with profiling, and a buffer."""
        cl = self._cl
        profiling = cl.command_queue_properties.PROFILING_ENABLE
        buffer = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, MARK.nbytes)
        return cl.CommandQueue(self._context, self._device, profiling), buffer

    def _time_of(self, point: Point) -> Point:
        """A point of the queue with profiling, immediately after another one.

        The device must do something there: drivers have no times of markers.
        """
        queue, mark = self._clock
        ends, fill = self._ends or [point.event], self._cl.enqueue_fill_buffer
        timed = Point(self._cl, fill(queue, mark, MARK, 0, MARK.nbytes, wait_for=ends))
        queue.flush()
        # Otherwise the next kernel could occupy the device, and delay the fill until its end.
        self._barrier(timed)
        return timed

    def wait(self, event: Any) -> None:
        """Work enqueued from now on runs after that event of the same device."""
        if event.queue is not self.queue:
            self._barrier(event.end)  # a kernel that began before it could delay a time

    def _barrier(self, point: Point) -> None:
        """Work enqueued from now on runs after a point."""
        barrier = self._cl.enqueue_barrier(self.queue, wait_for=[point.event])
        self._ends = [*self._ends, point.event] if len(self._ends) < MOST_ENDS else [barrier]

    def flush(self) -> None:
        """Let the enqueued work begin."""
        self.queue.flush()

    def synchronize(self) -> None:
        """Wait on the host until all enqueued work is done."""
        self.wait_for(self.point())
        self._copies.clear()

    def keep(self, copy: Any) -> None:
        """Keep the event of a copy, and so its host memory, until the copy is done."""
        complete = self._cl.command_execution_status.COMPLETE
        while self._copies and self._copies[0].command_execution_status == complete:
            self._copies.popleft()
        self._copies.append(copy)
