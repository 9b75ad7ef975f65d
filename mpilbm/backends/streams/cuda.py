"""Streams and events of CUDA by CuPy, which the device passes as an argument."""

from typing import Any

from mpilbm.backends.waiting import Waiting


class CudaEvent:
    """A point in a stream."""

    def __init__(self, cupy: Any, stream: "CudaStream", timed: bool):
        self._cupy, self._wait = cupy, stream.wait_for
        self.cupy = cupy.cuda.Event(disable_timing=not timed)
        self.cupy.record(stream.cupy)

    def synchronize(self) -> None:
        """Wait on the host until the device has reached this point."""
        self._wait(self.cupy)

    @property
    def done(self) -> bool:
        """Whether the device has reached this point."""
        return self.cupy.done

    def seconds_since(self, earlier: "CudaEvent") -> float:
        """Seconds on the device from another event to this one; both recorded with `timed`."""
        self.synchronize()
        return self._cupy.cuda.get_elapsed_time(earlier.cupy, self.cupy) / 1000


class CudaStream:
    """A CUDA stream that does not wait for the default stream."""

    def __init__(self, cupy: Any, priority: int, waiting: Waiting):
        self._cupy, self.wait_for = cupy, waiting
        self.cupy = cupy.cuda.Stream(non_blocking=True, priority=priority)

    def record(self, timed: bool = False) -> CudaEvent:
        """An event after all work enqueued so far."""
        return CudaEvent(self._cupy, self, timed)

    def wait(self, event: Any) -> None:
        """Work enqueued from now on runs after that event."""
        self.cupy.wait_event(event.cupy)

    def flush(self) -> None:
        """Do nothing: a GPU starts enqueued work without a flush."""

    def synchronize(self) -> None:
        """Wait on the host until all enqueued work is done."""
        self.wait_for(self.cupy)
