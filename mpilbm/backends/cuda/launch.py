"""Streams, events, graphs, kernels and launches on a CUDA device, by the CuPy of the device."""

import ctypes
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np

from mpilbm.backends.gpu import Waiting
from mpilbm.backends.gpu.launch import GpuKernel, GpuLaunch
from mpilbm.backends.interfaces import Array, Resources, Runner
from mpilbm.backends.units import Units
from mpilbm.codegen.program import Kernel, Program
from mpilbm.core.errors import MpilbmError

USE_NODE_PRIORITY = 8  # CUgraphInstantiate_flags: kernels keep the priority of their stream


class CudaEvent:
    """A point in a stream."""

    def __init__(self, cupy: Any, stream: "CudaStream", timed: bool):
        self._cupy, self._wait = cupy, stream.wait_for
        self.cupy = cupy.cuda.Event(disable_timing=not timed)
        self.cupy.record(stream.cupy)

    def synchronize(self) -> None:
        self._wait(self.cupy)

    @property
    def done(self) -> bool:
        return self.cupy.done

    def seconds_since(self, earlier: "CudaEvent") -> float:
        self.synchronize()
        return self._cupy.cuda.get_elapsed_time(earlier.cupy, self.cupy) / 1000


class CudaStream:
    """A CUDA stream that does not wait for the default stream."""

    def __init__(self, cupy: Any, priority: int, waiting: Waiting):
        self._cupy, self.wait_for = cupy, waiting
        self.cupy = cupy.cuda.Stream(non_blocking=True, priority=priority)

    def record(self, timed: bool = False) -> CudaEvent:
        return CudaEvent(self._cupy, self, timed)

    def wait(self, event: Any) -> None:
        self.cupy.wait_event(event.cupy)

    def flush(self) -> None:
        """Do nothing: a GPU starts enqueued work without a flush."""

    def synchronize(self) -> None:
        self.wait_for(self.cupy)


class CudaGraph:
    """A graph of all that `work()` enqueues; a call launches the graph.

    `queue`: the stream in which `work()` begins, and into which all others join again; `runtime`:
    cupy.cuda.runtime. The graph holds addresses only: its owner keeps the arrays alive. Kernels
    keep the priority of their stream, which CuPy's own graphs lose, so that edge planes and
    messages do not wait for the bulk planes. [CUDA driver API, Graph Management]
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


class CudaKernel(GpuKernel):
    """A function of a compiled unit."""

    def __init__(self, device: Any, units: Units, kernel: Kernel, program: Program):
        super().__init__(device, kernel, program)
        self._units = units

    @cached_property
    def function(self) -> Any:
        """The function of CuPy."""
        return self._units.of(self.kernel.name).get_function(self.kernel.name)

    @cached_property
    def joint(self) -> Any:
        """The function that exchanges edge planes, too; compiled at its first use."""
        text = f"{self.program.head}\n{self.program.bodies[self.kernel.name]}"
        options = (*self.device.kernel_options, "-DJOINT")
        return self.device.module(text, options).get_function(self.kernel.name)

    def launch(self, box: tuple[int, int], values: list[Any], threads: int) -> "CudaLaunch":
        return CudaLaunch(self, box, values, threads)

    def resources(self) -> Resources:
        function = self.function
        return Resources(function.num_regs, function.local_size_bytes, function.shared_size_bytes)


class CudaLaunch(GpuLaunch):
    """A function of CuPy with its arguments."""

    def __init__(self, compiled: CudaKernel, box: tuple[int, int], values: list[Any], threads: int):
        super().__init__(compiled.kernel, box, values, threads)
        self._compiled, self._function = compiled, compiled.function

    @property
    def joint(self) -> Callable[[Array], Runner] | None:
        return self._joint if self._kernel.exchanges else None

    def _joint(self, faces: Array) -> Runner:
        return partial(self._enqueue_joint, self._compiled.joint, faces)

    def _enqueue_joint(
        self, function: Any, faces: Array, stream: Any, begin: int, end: int, stride: int = 1
    ) -> None:
        grid, block, values = self.call(begin, end, stride)
        with stream.cupy:
            function(grid, block, (faces, *values))

    def call(self, begin: int, end: int, stride: int) -> tuple:
        """(grid, block, arguments)."""
        numbers = map(np.int64, (begin, end, stride))
        return *self.shape(begin, end, stride), (*numbers, *self._values)

    def enqueue(self, stream: Any, calls: list[Any]) -> None:
        with stream.cupy:
            for grid, block, values in calls:
                self._function(grid, block, values)
