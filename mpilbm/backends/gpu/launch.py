"""Kernels of a GPU and their launches: blocks of threads, and the calls of a range of planes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mpilbm.backends.interfaces import Array, Launch, Runner, changed, checked
from mpilbm.backends.tuning import fastest
from mpilbm.codegen.program import Kernel, Program

ROWS_AT_ONCE = 4  # as in the prelude: rows that a block of a kernel over rows adds
COLUMN_PARTS = 8  # as in the prelude: threads that add the rows of a column
CHUNK_THREADS = 128  # as in the preludes
PLANE_THREADS = 256  # as in the prelude: threads that fetch the numbers of a plane
FIXED_THREADS = {  # of blocks of kernels whose texts require a number
    "chunks": CHUNK_THREADS,
    "planes": PLANE_THREADS,
    "columns": 32 * COLUMN_PARTS,
    "rows": 32 * ROWS_AT_ONCE,
    "node_rows": 32 * ROWS_AT_ONCE,
}
GRID_LIMIT = 65535  # blocks along the second and third axis of a grid


@dataclass(frozen=True)
class Block:
    """The number of threads of a block, for a kernel over cells; the kernel text allows 256."""

    threads: int


BLOCKS = (Block(256), Block(128), Block(64))  # the first is used where none is measured


def block_shape(nx: int, rows: int, threads: int = 256) -> tuple[int, int, int]:
    """Threads of a block of a kernel over cells: whole warps along x, then rows.

    A warp has several rows where these have at most 16 cells, as those of windows.
    """
    x = min(threads, -(-nx // 32) * 32) if nx > 16 else 1 << (max(1, nx) - 1).bit_length()
    return x, max(1, min(rows, threads // x)), 1


def launch_shape(
    over: str, nx: int, rows: int, begin: int, end: int, stride: int = 1, threads: int = 256
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(grid, block) of a kernel over planes (or entries) begin, begin + stride, … < end."""
    count = -(-(end - begin) // stride)
    if over == "entries":
        return (-(-count // threads),), (threads,)
    if over == "chunks":
        return (count,), (CHUNK_THREADS,)
    if over == "planes":
        return (count,), (PLANE_THREADS,)
    if over.endswith("rows"):
        return (-(-rows // ROWS_AT_ONCE), count), (32 * ROWS_AT_ONCE,)
    if over == "columns":
        return (-(-nx // 32), 1, count), (32, COLUMN_PARTS)
    nx = max(1, -(-nx // 2) if over == "pairs" else nx)  # planes of solid cells have no nodes
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


def planes_of(arguments: Mapping[str, Any]) -> tuple[int, int]:
    """The number of the first owned plane in the arrays of a dense field, and of owned planes.

    Where addresses do not depend on it (Grid.wraps is None), second ghost planes count as owned.
    """
    if "f_first" in arguments:
        first, last = (int(arguments[name]) for name in ("f_first", "f_last"))
        return first, last + 1 - first
    field = arguments["f_in"] if "f_in" in arguments else arguments["f"]
    return 1, field.size // int(arguments["f_plane"]) - 2


def box_of(kernel: Kernel, arguments: Mapping[str, Any]) -> tuple[int, int]:
    """(nx, rows) of the planes of a kernel over cells, or (most nodes of a plane, 1)."""
    if kernel.over == "nodes":
        return int(arguments["node_most"]), 1
    return int(arguments.get("nx", 0)), int(arguments.get("rows", 0))


class GpuKernel:
    """A compiled kernel without arguments, which chooses the threads of its blocks."""

    def __init__(self, device: Any, kernel: Kernel, program: Program):
        self.device, self.kernel, self.program = device, kernel, program
        self._block: Block | None = None

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Of these, the first call of `bind` chooses one for a collide-stream kernel."""
        return BLOCKS

    def launch(self, box: tuple[int, int], values: list[Any], threads: int) -> Launch:
        """The kernel with its arguments, for blocks of so many threads."""
        raise NotImplementedError

    def bind(self, **arguments: Any) -> Launch:
        """Fix all arguments; raises TypeError if one is missing, unknown or of another type."""
        values = checked(self.kernel, self.program, arguments)
        box = box_of(self.kernel, arguments)
        if self._block is None:
            self._block = self._fastest(
                arguments, lambda block: self.launch(box, values, block.threads)
            )
        return self.launch(box, values, self._block.threads)

    def _fastest(self, arguments: Mapping[str, Any], launch: Callable[[Block], Runner]) -> Block:
        """The fastest block for a collide-stream kernel, the first one for others."""
        kernel, blocks = self.kernel, self.blocks
        steps = kernel.phase == "collide" and kernel.over != "entries"
        if "f_plane" not in arguments or not steps:
            return blocks[0]
        nx, rows = box_of(kernel, arguments)
        first, planes = planes_of(arguments)
        text = f"{kernel.name}\n{self.program.text}"
        held = [one for one in blocks if rows <= most_rows(nx, rows, one.threads)]
        return fastest(
            self.device, text, (planes, rows, nx), held or blocks[:1], launch, first=first
        )


class GpuLaunch:
    """A kernel with its arguments; keeps their arrays alive, and its calls for later use."""

    def __init__(self, kernel: Kernel, box: tuple[int, int], values: list[Any], threads: int = 256):
        self._kernel, self._box, self._values, self._threads = kernel, box, values, threads
        self._calls: dict[tuple[int, int, int], list[Any]] = {}

    @property
    def joint(self) -> Callable[[Array], Runner] | None:
        """A function that makes the launch exchange edge planes, too; None if it cannot."""
        return None

    def set(self, **numbers: float) -> None:
        self._values = changed(self._kernel, self._values, numbers)
        self._calls.clear()

    def __call__(self, stream: Any, begin: int, end: int, stride: int = 1) -> None:
        key = (begin, end, stride)
        if key not in self._calls:
            self._calls[key] = [self.call(*key) for key in self.pieces(*key)]
        self.enqueue(stream, self._calls[key])

    def pieces(self, begin: int, end: int, stride: int) -> list[tuple[int, int, int]]:
        """(begin, end, stride) of each call that a range needs."""
        return [(*piece, stride) for piece in pieces(self._kernel.over, begin, end, stride)]

    def shape(self, begin: int, end: int, stride: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """(grid, block) of a call."""
        return launch_shape(self._kernel.over, *self._box, begin, end, stride, self._threads)

    def call(self, begin: int, end: int, stride: int) -> Any:
        """What `enqueue` needs for a range of planes."""
        raise NotImplementedError

    def enqueue(self, stream: Any, calls: list[Any]) -> None:
        """Enqueue some calls."""
        raise NotImplementedError
