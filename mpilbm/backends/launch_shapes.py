"""The division of a kernel's work into blocks of threads, for all kinds of GPUs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mpilbm.backends import Device
from mpilbm.backends.interfaces import Runner
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
    """Threads of a block of a kernel over cells: whole warps along x, then rows."""
    x = min(threads, max(1, -(-nx // 32)) * 32)
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


def too_many_rows(shape: tuple[int, int, int]) -> list[str]:
    """Why a box of (planes, rows, nx) has too many rows for a grid; empty if it has not."""
    _, rows, nx = shape
    most = most_rows(nx, rows)
    if rows <= most:
        return []
    return [
        f"domain.size: {rows} rows of {nx} cells, a GPU allows at most {most} of this length; "
        "turn the box so that its longest side is x or z"
    ]


def choose_block(
    device: Device,
    kernel: Kernel,
    program: Program,
    arguments: Mapping[str, Any],
    launch: Callable[[Block], Runner],
    blocks: tuple[Block, ...] = BLOCKS,
) -> Block:
    """The fastest of some blocks for a collide-stream kernel, the first one for others.

    `arguments`: those of the kernel, by name; `launch(block)` makes a launch over planes.
    """
    steps = kernel.phase == "collide" and kernel.over != "entries"
    if "f_plane" not in arguments or not steps:
        return blocks[0]
    nx, rows = box_of(kernel, arguments)
    field = arguments["f_in"] if "f_in" in arguments else arguments["f"]
    planes = field.size // int(arguments["f_plane"]) - 2
    text = f"{kernel.name}\n{program.text}"
    held = [one for one in blocks if rows <= most_rows(nx, rows, one.threads)]
    return fastest(device, text, (planes, rows, nx), held or blocks[:1], launch)


def box_of(kernel: Kernel, arguments: Mapping[str, Any]) -> tuple[int, int]:
    """(nx, rows) of the planes of a kernel over cells, or (most nodes of a plane, 1)."""
    if kernel.over == "nodes":
        return int(arguments["node_most"]), 1
    return int(arguments.get("nx", 0)), int(arguments.get("rows", 0))
