"""Kernels on a CUDA device, and their launches."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np

from mpilbm.backends.gpu.launch import GpuKernel, GpuLaunch
from mpilbm.backends.interfaces import Array, Resources, Runner
from mpilbm.backends.units import Units
from mpilbm.codegen.program import Kernel, Program


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
        """The kernel with its arguments, for blocks of so many threads."""
        return CudaLaunch(self, box, values, threads)

    def resources(self) -> Resources:
        """Registers and spilled bytes of a thread, shared bytes of a block."""
        function = self.function
        return Resources(function.num_regs, function.local_size_bytes, function.shared_size_bytes)


class CudaLaunch(GpuLaunch):
    """A function of CuPy with its arguments."""

    def __init__(self, compiled: CudaKernel, box: tuple[int, int], values: list[Any], threads: int):
        super().__init__(compiled.kernel, box, values, threads)
        self._compiled, self._function = compiled, compiled.function

    @property
    def joint(self) -> Callable[[Array], Runner] | None:
        """A function that makes the launch exchange edge planes, too; None if it cannot."""
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
        """Launch the function."""
        with stream.cupy:
            for grid, block, values in calls:
                self._function(grid, block, values)
