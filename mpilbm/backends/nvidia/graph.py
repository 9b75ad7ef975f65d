"""CUDA graphs: work enqueued in streams is recorded once and launched again by one call."""

import ctypes
from collections.abc import Callable
from typing import Any

from mpilbm.core.errors import MpilbmError

USE_NODE_PRIORITY = 8  # CUgraphInstantiate_flags: kernels keep the priority of their stream


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
