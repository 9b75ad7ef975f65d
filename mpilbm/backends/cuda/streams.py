"""Streams, events and graphs of CUDA by CuPy, which the device passes as an argument."""

import ctypes
from collections.abc import Callable
from typing import Any

from mpilbm.backends.gpu import Waiting
from mpilbm.core.errors import MpilbmError

USE_NODE_PRIORITY = 8  # CUgraphInstantiate_flags: kernels keep the priority of their stream


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


class CudaGraph:
    """A graph of all that `work()` enqueues; a call launches the graph.

    `queue`: the stream in which `work()` begins, and into which all other streams join again. The
    graph holds addresses only: its owner keeps the arrays alive. Kernels keep the priority of their
    stream, so that edge planes and messages do not wait for the bulk planes; CuPy's own graphs lose
    priorities. `runtime` is cupy.cuda.runtime.
    [CUDA driver API, Graph Management]
    """

    def __init__(self, runtime: Any, queue: int, work: Callable[[], None]):
        self._runtime, self._queue, self._graph = runtime, queue, 0
        runtime.streamBeginCapture(queue, runtime.streamCaptureModeRelaxed)
        try:
            work()
        finally:
            captured = runtime.streamEndCapture(queue)
        try:
            self._graph = instantiate(captured)
        finally:
            runtime.graphDestroy(captured)

    def __call__(self) -> None:
        """Enqueue the graph, after the work that is in the stream `queue`."""
        self._runtime.graphLaunch(self._graph, self._queue)

    def __del__(self) -> None:
        if self._graph:
            self._runtime.graphExecDestroy(self._graph)


def instantiate(captured: int) -> int:
    """The executable graph of a captured one; raises MpilbmError with the driver's error."""
    made = ctypes.c_void_p()
    error = ctypes.CDLL("libcuda.so.1").cuGraphInstantiateWithFlags(
        ctypes.byref(made), ctypes.c_void_p(captured), ctypes.c_ulonglong(USE_NODE_PRIORITY)
    )
    if error:
        raise MpilbmError(f"cuGraphInstantiateWithFlags returns error {error}")
    assert made.value is not None
    return made.value
