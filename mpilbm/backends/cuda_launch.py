"""Generic kernels on a CUDA device: shapes of grids and blocks, and launches."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from mpilbm.backends.interfaces import Array, Resources, Runner, changed, checked
from mpilbm.backends.tuning import fastest
from mpilbm.codegen.program import Kernel, Program

ROWS_AT_ONCE = 4  # as in the prelude: rows that a block of a kernel over rows adds
COLUMN_PARTS = 8  # as in the prelude: threads that add the rows of a column
CHUNK_THREADS = 128  # as in the preludes
PLANE_THREADS = 256  # as in the prelude: threads that fetch the numbers of a plane
GRID_LIMIT = 65535  # blocks along the second and third axis of a grid


@dataclass(frozen=True)
class Block:
    """The number of threads of a block, for a kernel over cells; the kernel text allows 256."""

    threads: int


BLOCKS = (Block(256), Block(128), Block(64))  # the first is used where none is measured


def block_shape(nx: int, rows: int, threads: int = 256) -> tuple[int, int, int]:
    """Threads of a block of a kernel over cells: whole warps along x, then rows."""
    x = min(threads, -(-nx // 32) * 32)
    return x, max(1, min(rows, threads // x)), 1


def launch_shape(
    over: str, nx: int, rows: int, begin: int, end: int, stride: int = 1, threads: int = 256
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(grid, block) of a kernel over planes (or entries) begin, begin + stride, … < end."""
    count = -(-(end - begin) // stride)
    if over == "entries":
        return (-(-count // 256),), (256,)
    if over == "chunks":
        return (count,), (CHUNK_THREADS,)
    if over == "planes":
        return (count,), (PLANE_THREADS,)
    if over.endswith("rows"):
        return (-(-rows // ROWS_AT_ONCE), count), (32 * ROWS_AT_ONCE,)
    if over == "columns":
        return (-(-nx // 32), 1, count), (32, COLUMN_PARTS)
    nx = -(-nx // 2) if over == "pairs" else nx
    block = block_shape(nx, rows, threads)
    return (-(-nx // block[0]), -(-rows // block[1]), count), block


def pieces(over: str, begin: int, end: int, stride: int = 1) -> list[tuple[int, int]]:
    """(begin, end) of each launch that a range needs: a grid has at most 65535 planes."""
    if begin >= end:
        return []
    step = end - begin if over in ("entries", "chunks", "planes") else GRID_LIMIT * stride
    return [(first, min(first + step, end)) for first in range(begin, end, step)]


def most_rows(nx: int, rows: int, threads: int = 256) -> int:
    """The largest number of rows of nx cells that a grid holds."""
    return GRID_LIMIT * block_shape(nx, rows, threads)[1]


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
        box = int(arguments.get("nx", 0)), int(arguments.get("rows", 0))
        if self.kernel.over == "nodes":
            box = int(arguments["node_most"]), 1

        def launch(block: Block) -> "CudaLaunch":
            return CudaLaunch(self, box, values, block.threads)

        if self._block is None:
            self._block = self._choose(box, arguments, launch)
        return launch(self._block)

    def _choose(
        self,
        box: tuple[int, int],
        arguments: Mapping[str, Any],
        launch: Callable[[Block], "CudaLaunch"],
    ) -> Block:
        """The fastest block for a collide-stream kernel, the default for others."""
        steps = self.kernel.phase == "collide" and self.kernel.over != "entries"
        if "f_plane" not in arguments or not steps:
            return BLOCKS[0]
        field = arguments["f_in"] if "f_in" in arguments else arguments["f"]
        planes = field.size // int(arguments["f_plane"]) - 2
        text = f"{self.kernel.name}\n{self._program.text}"
        held = [one for one in BLOCKS if box[1] <= most_rows(box[0], box[1], one.threads)]
        return fastest(self._device, text, (planes, box[1], box[0]), held or BLOCKS[:1], launch)

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
