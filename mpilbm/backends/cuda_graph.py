"""CUDA graphs: what streams have been told once, told again by one call."""

import ctypes

from mpilbm.errors import MpilbmError

USE_NODE_PRIORITY = 8  # CUgraphInstantiate_flags: kernels keep the priority of their stream


class CudaGraph:
    """What `work()` enqueues, in the stream `queue` and in those that wait for it; call it to run.

    Priorities are kept: else the bulk would keep edge planes and messages waiting. CuPy's own
    graphs drop them. `runtime` is cupy.cuda.runtime.
    [CUDA driver API, Graph Management]
    """

    def __init__(self, runtime, queue: int, work):
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
        """Enqueue all of it, behind what is in the stream."""
        self._runtime.graphLaunch(self._graph, self._queue)

    def __del__(self):
        if self._graph:
            self._runtime.graphExecDestroy(self._graph)


def instantiate(captured: int) -> int:
    """The executable graph of a captured one; raises MpilbmError with the driver's error."""
    made = ctypes.c_void_p()
    error = ctypes.CDLL("libcuda.so.1").cuGraphInstantiateWithFlags(
        ctypes.byref(made), ctypes.c_void_p(captured), ctypes.c_ulonglong(USE_NODE_PRIORITY)
    )
    if error:
        raise MpilbmError(f"cuGraphInstantiateWithFlags answers {error}")
    return made.value
