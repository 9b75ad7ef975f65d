"""Tiles of the moment sweep: the candidates, their needs, and the planes of each block."""

from dataclasses import dataclass, replace

import numpy as np

from mpilbm.codegen.program import Program
from mpilbm.layouts.grid import LINE

TENSOR_MAPS = 90  # compute capability 9.0, the first with tensor maps
LEAST_PLANES = 4  # planes of a block, if the box has more
LEAST_COPY = 4  # bytes of an asynchronous copy of a thread


@dataclass(frozen=True)
class Tile:
    """A tile of tx * ty cells, of which each thread updates `rows` rows of `cells`.

    stages   planes that are loaded ahead
    blocks   blocks per multiprocessor
    planes   planes that a block processes, at most
    bulk     rows are copied by tensor maps, from compute capability 9.0; else by the threads
    steps    time steps in one pass over memory, 1 or 2; with two the block does not update the
             two outermost cells on each side, whose values the first step needs
    """

    tx: int
    ty: int
    stages: int
    blocks: int
    cells: int = 1
    planes: int = 64
    bulk: bool = True
    rows: int = 1
    steps: int = 1

    @property
    def own(self) -> tuple[int, int]:
        """Cells in a row, and rows, that a block updates."""
        rim = 4 * (self.steps - 1)
        return self.tx - rim, self.ty - rim

    @property
    def threads(self) -> tuple[int, int, int]:
        """Threads of a block."""
        return self.tx // self.cells, self.ty // self.rows, 1

    def options(self) -> tuple[str, ...]:
        """The options for the compiler."""
        sizes = f"-DTX={self.tx}", f"-DTY={self.ty}", f"-DCELLS={self.cells}", f"-DROWS={self.rows}"
        ahead = f"-DSTAGES={self.stages}", f"-DBLOCKS={self.blocks}", f"-DBULK={int(self.bulk)}"
        return (*sizes, *ahead, f"-DSTEPS_OF_PASS={self.steps}")

    def columns(self, rows: int, nx: int) -> int:
        """Blocks that cover a plane."""
        return -(-nx // self.own[0]) * -(-rows // self.own[1])

    def spreads(self, box: tuple[int, int, int], processors: int) -> list["Tile"]:
        """The tile with the planes of a (planes, rows, nx) box divided evenly among its blocks, in
        two ways.

        The box decides which is faster; the first is used where none is measured. Blocks run in
        waves of as many as the device holds. The first way has the fewest planes of all waves in
        turn: few multiprocessors idle at the end. The second has the fewest pieces that fill one
        wave: few planes are read twice.
        """
        planes, rows, nx = box
        columns = self.columns(rows, nx)
        wave = processors * self.blocks
        least = -(-planes // self.planes)
        most = max(least, planes // LEAST_PLANES)

        def planes_in_turn(pieces: int) -> int:
            return -(-columns * pieces // wave) * (-(-planes // pieces) + 2 * self.steps)

        even = min(range(least, most + 1), key=planes_in_turn)
        few = min(max(least, -(-wave // columns)), most)
        divided = (replace(self, planes=-(-planes // pieces)) for pieces in (even, few))
        return list(dict.fromkeys(divided))


# The first that fits is used where none is measured.
CANDIDATES = (
    Tile(128, 8, stages=2, blocks=1, cells=2, planes=32),
    Tile(128, 5, stages=2, blocks=2, cells=2, planes=32),
    Tile(128, 8, stages=2, blocks=1, cells=2, planes=128),
    Tile(128, 6, stages=2, blocks=2, cells=2, planes=32, rows=2),
    Tile(128, 12, stages=2, blocks=1, cells=2, planes=32, rows=2),
    Tile(128, 4, stages=2, blocks=2, cells=2, planes=32),
    Tile(64, 8, stages=2, blocks=2, cells=2, planes=64),
    Tile(64, 6, stages=2, blocks=1, cells=1, planes=32),
    Tile(64, 8, stages=2, blocks=1, cells=1, planes=32),
    Tile(32, 8, stages=2, blocks=1, cells=1, planes=32),
    Tile(32, 4, stages=2, blocks=1, cells=1, planes=32),
    Tile(128, 1, stages=4, blocks=8, cells=2, planes=128),
    Tile(128, 1, stages=2, blocks=4, cells=1, planes=64),
    Tile(32, 1, stages=2, blocks=8, cells=1, planes=64),
)


TWO_STEPS = (
    Tile(64, 16, stages=1, blocks=1, cells=2, bulk=False, steps=2),
    Tile(32, 16, stages=1, blocks=2, cells=2, bulk=False, steps=2),
    Tile(64, 16, stages=2, blocks=1, cells=2, bulk=False, steps=2),
    Tile(64, 16, stages=1, blocks=1, cells=1, bulk=False, steps=2),
    Tile(32, 16, stages=1, blocks=1, cells=1, bulk=False, steps=2),
)


# For boxes of a few cells along x, which take single steps without a general kernel.
NARROW = (
    *(Tile(8, 16, stages=2, blocks=blocks, cells=1, planes=64) for blocks in (3, 2)),
    Tile(16, 16, stages=2, blocks=2, cells=1, planes=64),
)


def candidates(capability: int, steps: int = 1, narrow: bool = False) -> list[Tile]:
    """Tiles for devices of this compute capability, and so many steps in one pass."""
    if steps == 2:
        return list(TWO_STEPS)
    single = (*CANDIDATES, *NARROW) if narrow else CANDIDATES
    return [replace(tile, bulk=capability >= TENSOR_MAPS) for tile in single]


@dataclass(frozen=True)
class Share:
    """The values of one format, as `Share` in sweep/packets.h.

    slot     the first of their slots
    values   number of values of a cell
    size     bytes of a value
    """

    slot: int
    values: int
    size: int

    def box(self, tile: Tile) -> int:
        """Numbers of a value in a row of a tile, with those on both sides of the tile."""
        return tile.tx + 2 * (32 // self.size)

    @property
    def side(self) -> int:
        """Numbers of a value that are copied from beyond a periodic face, in a row."""
        return 16 // self.size

    def row_bytes(self, tile: Tile) -> int:
        """Bytes of a row in shared memory, with cells beyond both faces; copies begin at lines."""
        row, side = (-(-self.values * n * self.size // 128) for n in (self.box(tile), self.side))
        return 128 * (row + 2 * side)


@dataclass(frozen=True)
class Needs:
    """Sizes of a sweep: those of SweepSizes, and the bytes of stored and of computed numbers.

    stored     bytes of a value in the narrowest format
    computed   bytes of a number of the arithmetic
    wide       values in the widest format, which come first, if there is another one
    widest     bytes of such a value
    """

    values: int
    crossing: tuple[tuple[int, int, int, int], ...]
    reach: int
    stored: int
    computed: int
    wide: int = 0
    widest: int = 0

    @classmethod
    def of(cls, program: Program) -> "Needs":
        """The sizes of a program's sweep, with the bytes of its numbers."""
        sweep = program.sweep_sizes
        if sweep is None:
            raise ValueError("the program has no sweep")
        stored, computed, widest = (
            np.dtype(kind).itemsize for kind in (program.storage, program.compute, program.widest)
        )
        wide = sweep.wide
        return cls(sweep.values, sweep.crossing, sweep.reach, stored, computed, wide, widest)

    @property
    def shares(self) -> tuple["Share", ...]:
        """The values of each format, in the order of their slots."""
        narrow = Share(self.wide * self.widest // self.stored, self.values - self.wide, self.stored)
        return (Share(0, self.wide, self.widest), narrow) if self.wide else (narrow,)

    def shared_bytes(self, tile: Tile) -> int:
        """Bytes of shared memory of a block: its stages, and messages between its threads."""
        messages = self._half_of_messages(tile) * self.computed
        if tile.steps == 2:  # a slot of each cell and messages of each step, see two_steps.h
            cell = self.wide * self.widest + (self.values - self.wide) * self.stored
            return tile.stages * cell * tile.tx * tile.ty + 4 * messages
        stage = (tile.ty + 2 * self.reach) * sum(share.row_bytes(tile) for share in self.shares)
        return tile.stages * stage + 2 * messages

    def _half_of_messages(self, tile: Tile) -> int:
        """Numbers of half of the messages of a tile: MIRROR in sweep/packets.h."""
        shapes = {(rows, cells): sums for rows, cells, *sums in self.crossing}
        levels, more = shapes[tile.rows, tile.cells]
        numbers = (levels * (tile.ty // tile.rows) + more) * (tile.tx // tile.cells + 1)
        return -(-numbers // 4) * 4

    def fits(self, tile: Tile, limit: int, nx: int, row_stride: int, rows: int) -> bool:
        """Whether threads, rows and shared memory of a tile are within the limits; `limit`: bytes
        of shared memory of a multiprocessor. Rows of windows are shorter than copies of them; no
        thread uses what lies beyond, zeros from tensor maps or what the memory held before.
        """
        if tile.steps == 2:
            possible = tile.cells * self.stored >= LEAST_COPY and self.reach == 1
        else:
            short = row_stride < LINE
            columns, rows_of_threads, _ = tile.threads
            around = 2 * columns * self.reach + 2 * (tile.ty + 2 * self.reach)
            box = max(share.box(tile) for share in self.shares)
            possible = (
                1024 >= columns * rows_of_threads >= around
                and rows % tile.rows == 0
                and (box <= min(row_stride, 256) or (short and tile.tx < 2 * max(nx, 8)))
                and (tile.ty == 1) == (rows == 1)
            )
        possible = possible and nx % tile.cells == 0
        return possible and tile.blocks * self.shared_bytes(tile) <= limit
