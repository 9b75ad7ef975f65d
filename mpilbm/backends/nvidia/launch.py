"""Generic kernels on a CUDA device, and their launches."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np

from mpilbm.backends.interfaces import Array, Resources, Runner, changed, checked
from mpilbm.backends.launch_shapes import Block, box_of, choose_block, launch_shape, pieces
from mpilbm.codegen.program import Kernel, Program


class CudaKernel:
    """A compiled kernel without arguments."""

    def __init__(self, device: Any, function: Any, kernel: Kernel, program: Program):
        self._device, self.function = device, function
        self.kernel, self._program = kernel, program
        self._block: Block | None = None

    @cached_property
    def joint(self) -> Any:
        """The function that exchanges edge planes, too; compiled at its first use."""
        text = f"{self._program.head}\n{self._program.bodies[self.kernel.name]}"
        options = (*self._device.kernel_options, "-DJOINT")
        return self._device.module(text, options).get_function(self.kernel.name)

    def bind(self, **arguments: Any) -> "CudaLaunch":
        """Fix all arguments; raises TypeError if one is missing, unknown or of another type.

        The first call chooses the block of a collide-stream kernel.
        """
        values = checked(self.kernel, self._program, arguments)
        box = box_of(self.kernel, arguments)

        def launch(block: Block) -> "CudaLaunch":
            return CudaLaunch(self, box, values, block.threads)

        if self._block is None:
            self._block = choose_block(self._device, self.kernel, self._program, arguments, launch)
        return launch(self._block)

    def resources(self) -> Resources:
        """Registers and spilled bytes of a thread, shared bytes of a block."""
        function = self.function
        return Resources(function.num_regs, function.local_size_bytes, function.shared_size_bytes)


class CudaLaunch:
    """A kernel with its arguments; keeps their arrays alive, and its grids for later calls."""

    def __init__(self, compiled: CudaKernel, box: tuple[int, int], values: list[Any], threads: int):
        self._compiled, self._function = compiled, compiled.function
        self._kernel, self._box, self._values = compiled.kernel, box, values
        self._threads = threads
        self._calls: dict[tuple, list] = {}

    @property
    def joint(self) -> Callable[[Array], Runner] | None:
        """A function that makes the launch exchange edge planes, too; None if it cannot."""
        return self._joint if self._kernel.exchanges else None

    def _joint(self, faces: Array) -> Runner:
        return partial(self._enqueue_joint, self._compiled.joint, faces)

    def _enqueue_joint(
        self, function: Any, faces: Array, stream: Any, begin: int, end: int, stride: int = 1
    ) -> None:
        over = self._kernel.over
        grid, block = launch_shape(over, *self._box, begin, end, stride, self._threads)
        numbers = (np.int64(number) for number in (begin, end, stride))
        with stream.cupy:
            function(grid, block, (faces, *numbers, *self._values))

    def set(self, **numbers: float) -> None:
        """Replace numbers among the arguments, for later calls."""
        self._values = changed(self._kernel, self._values, numbers)
        self._calls.clear()

    def __call__(self, stream: Any, begin: int, end: int, stride: int = 1) -> None:
        """Enqueue it for the planes (or entries) begin, begin + stride, … < end."""
        key = (begin, end, stride)
        if key not in self._calls:
            self._calls[key] = [
                (*launch_shape(self._kernel.over, *self._box, first, last, stride, self._threads),
                 (np.int64(first), np.int64(last), np.int64(stride), *self._values))
                for first, last in pieces(self._kernel.over, *key)
            ]  # fmt: skip
        with stream.cupy:
            for grid, block, values in self._calls[key]:
                self._function(grid, block, values)
