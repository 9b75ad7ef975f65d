"""Kinds of blocks in a pass of two steps: which walls and bodies a block meets.

Each kind has a kernel of its own, compiled for what its blocks meet, because registers are few: a
kernel for all of them spills, and its loop also costs more where a block meets one wall alone.

    kind        FACES_MET   PLANES_MET   BODIES_MET   SHARES_MET
    free        0           0            0            0            most blocks
    planes      0           1            0            0            walls across the planes
    columns     3           0            0            0            walls at x- or x+
    rows        12          0            0            0            walls along rows
    bodies      0           0            1            0            half-way walls of bodies
    shares      0           0            0            1            cells partly in bodies
    all         15          1            1            1            any other

The free blocks are enqueued last, and those of the other kinds in a stream beside them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mpilbm.backends.cuda.tiles import Tile
from mpilbm.codegen.program import SHARE
from mpilbm.layouts.grid import Grid, byte_grid
from mpilbm.solids.body_walls import BLOCK

COLUMNS, ROWS, WITHIN = 3, 12, 15  # bits of the faces x-, x+ and row-, row+, and of all four
BITS = 20  # of each number of a block in a word, along x, along rows, and of its part


@dataclass(frozen=True)
class Kind:
    """What the blocks of a kind may meet.

    faces   bits of the walls along x and rows
    planes  walls across the planes
    bodies  half-way walls of bodies at rest
    shares  cells with a solid share
    listed  the numbers of its blocks are in an array; else they are all blocks of the grid
    """

    faces: int = 0
    planes: bool = False
    bodies: bool = False
    shares: bool = False
    listed: bool = True

    def options(self) -> tuple[str, ...]:
        """The options for the compiler."""
        met = f"-DFACES_MET={self.faces}", f"-DPLANES_MET={int(self.planes)}"
        inside = f"-DBODIES_MET={int(self.bodies)}", f"-DSHARES_MET={int(self.shares)}"
        return (*met, *inside, f"-DLISTED={int(self.listed)}")


FREE = Kind()
SINGLE = Kind(COLUMNS), Kind(ROWS), Kind(planes=True), Kind(bodies=True), Kind(shares=True)


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What the blocks of a slab may meet.

    nx, rows  of its planes
    owned     number of the first owned plane in the arrays, and of owned planes
    wraps     whether planes wrap around
    columns   (begin, end) along x that are updated; blocks begin at x = 0 in any case
    faces     bits of the faces along x and rows that are walls
    walls     first and last plane at walls across the planes
    bodies    bool (planes, rows, segments): whether BLOCK cells of a row have words; None without
    shares    the same of cells with a solid share
    moves     shares change with time: all blocks may meet some
    """

    nx: int
    rows: int
    owned: tuple[int, int]
    wraps: bool
    columns: tuple[int, int]
    faces: int
    walls: tuple[int, int]
    bodies: NDArray[np.bool_] | None = None
    shares: NDArray[np.bool_] | None = None
    moves: bool = False

    @property
    def free(self) -> bool:
        """Whether no block can meet anything."""
        first, count = self.owned
        across = self.walls[0] >= first - 1 or self.walls[1] <= first + count
        there = self.bodies is not None or self.shares is not None
        return not self.faces and not across and not there

    @property
    def whole(self) -> Kind:
        """The kind of all blocks of a slab in which they are free."""
        return Kind(shares=self.moves, listed=False)

    def blocks(
        self, tile: Tile, parts: list[tuple[int, int]]
    ) -> Iterator[tuple[Kind, NDArray[np.int64]]]:
        """The kinds of the blocks of some parts (first plane, end), and the words of these blocks.

        The free blocks come last.
        """
        xs = np.arange(0, self.columns[1], tile.own[0])
        rows = np.arange(0, self.rows, tile.own[1])
        meets = np.zeros((len(parts), len(rows), len(xs), len(SINGLE)), bool)
        low, high = (xs < 2), (xs + tile.own[0] > self.nx - 2)
        meets[..., 0] = low * (self.faces & 1) | high * (self.faces & 2)
        low, high = (rows < 2), (rows + tile.own[1] > self.rows - 2)
        meets[..., 1] = (low * (self.faces & 4) | high * (self.faces & 8))[:, None]
        for k, (first, last) in enumerate(parts):
            meets[k, ..., 2] = first - 1 <= self.walls[0] or last >= self.walls[1]
            for number, there in ((3, self.bodies), (4, self.shares)):
                if there is not None:
                    meets[k, ..., number] = self._near(there, tile, first, last, rows, xs)
        numbers = np.arange(meets[..., 0].size, dtype=np.int64).reshape(meets.shape[:-1])
        part, row, x = np.unravel_index(numbers, meets.shape[:-1])
        words = x | row << BITS | part << 2 * BITS
        count = meets.sum(axis=-1)
        several = Kind(WITHIN, True, self.bodies is not None, self.shares is not None)
        kinds = [*SINGLE, several, FREE]
        masks = [(count == 1) & meets[..., k] for k in range(len(SINGLE))]
        for kind, mask in zip(kinds, [*masks, count > 1, count == 0], strict=True):
            if mask.any():
                yield replace(kind, shares=kind.shares or self.moves), words[mask]

    def _near(
        self,
        table: NDArray[np.bool_],
        tile: Tile,
        first: int,
        last: int,
        rows: NDArray[np.int64],
        xs: NDArray[np.int64],
    ) -> NDArray[np.bool_]:
        """Whether a table has something where blocks compute the first step, (rows, xs)."""
        lower, upper = max(first - 1, self.walls[0]), min(last, self.walls[1])
        planes = np.arange(lower, upper + 1)
        if self.wraps:
            planes = self.owned[0] + (planes - self.owned[0]) % self.owned[1]
        there: NDArray[np.bool_] = np.logical_or.reduce(table[planes], axis=0)
        near_rows = (rows[:, None] - 1 + np.arange(tile.ty - 2)) % self.rows
        near_xs = (xs[:, None] - 1 + np.arange(tile.tx - 2)) % self.nx // BLOCK
        in_rows: NDArray[np.bool_] = np.logical_or.reduce(there[near_rows], axis=1)
        return np.logical_or.reduce(in_rows[:, near_xs], axis=2)


def with_shares(shares: NDArray[np.uint8], grid: Grid, owned: tuple[int, int]) -> NDArray[np.bool_]:
    """Whether BLOCK cells of a row have a solid share, (planes, rows, segments).

    shares  of all cells of a slab, in memory as for populations on this grid
    owned   as in Surroundings

    All of a ghost plane may have some: its shares come later from a neighbour.
    """
    memory = byte_grid(SHARE, grid)
    values = shares.reshape(-1, memory.plane_stride)[:, : grid.rows * memory.row_stride]
    rows = values.reshape(-1, grid.rows, memory.row_stride)[..., : grid.nx] != 0
    found = np.logical_or.reduceat(rows, np.arange(0, grid.nx, BLOCK), axis=-1)
    found[: owned[0]] = found[sum(owned) :] = not grid.wraps
    return found
