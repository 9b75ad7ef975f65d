"""Memory of a field over a slab: allocation, strides, and the address of a neighbour.

    f[plane, slot, row, x]      x fastest; plane = z, row = y in 3D; plane = y, one row in 2D

Planes have ghosts, rows and x wrap around. Wrapping loses nothing at walls: each location is read
by exactly one cell, and where a link crosses a wall its boundary writes it before the step.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mpilbm.layouts.packed_cells import (
    PackedCells,
    packed_node,
    packed_plane,
    packed_row,
    packed_x,
)

LINE = 32  # values; a row's first cell starts at a multiple of 128 bytes for 4-byte values
CACHE_SET = 32  # lines; slots a multiple of this apart would fall on the same cache sets


@dataclass(frozen=True)
class CellNames:
    """C expressions of the place of a cell, from which addresses are built.

    `row_m`, `row_p`, `x_m`, `x_p`: the neighbours at -1 and +1, wrapped around. `cell` is a packed
    cell index of a boundary list, see `packed`.
    """

    plane: str = "plane"
    row: str = "row"
    row_m: str = "row_m"
    row_p: str = "row_p"
    x: str = "x"
    x_m: str = "x_m"
    x_p: str = "x_p"
    node: str = "node"
    cell: str = "cell"

    @classmethod
    def suffixed(cls, end: str) -> "CellNames":
        """Variables of another cell of the same kernel: plane_in1, row_in1, row_in1_m, …"""
        places = {name: name + end for name in ("plane", "row", "x", "node", "cell")}
        sides = {f"{name}_{side}": f"{name}{end}_{side}" for name in ("row", "x") for side in "mp"}
        return cls(**places, **sides)

    @classmethod
    def packed(cls, cell: str) -> "CellNames":
        """The place of a packed cell index; its neighbours have none."""
        return cls(
            plane=f"({packed_plane(cell)})",
            row=packed_row(cell),
            x=packed_x(cell),
            node=packed_node(cell),
            cell=cell,
        )

    def row_at(self, step: int) -> str:
        """The row at -1, 0 or +1."""
        return (self.row, self.row_p, self.row_m)[step]

    def x_at(self, step: int) -> str:
        """The number within the row at -1, 0 or +1."""
        return (self.x, self.x_p, self.x_m)[step]


CELL = CellNames()  # the cell that a kernel is called for


@dataclass(frozen=True)
class Grid:
    """A dense field of `len(slots)` values a cell; `slots[k]` is where value k lies in a plane.

    `staggered`: rows whose plane + row is odd lie a node further along x (see Lattice). The
    neighbour at x - 1 then is, in even rows, the cell before, in odd ones the one with the same
    number; that at x + 1 has the same number in even rows, in odd ones it is the cell after. The
    prelude's x_m and x_p are these, by `odd`, the parity of the array's first plane in the box.

    `returning`: rows end in walls, and what a cell would read from beyond an end lies at home:
    returning[k] is the value that left the cell against value k. Empty: rows wrap around.
    """

    name: str
    planes: int
    rows: int
    nx: int
    slots: tuple[int, ...]
    ghost: int
    row_stride: int
    slot_stride: int
    staggered: bool = False
    returning: tuple[int, ...] = ()

    over: ClassVar[str] = "cells"
    table_bytes: ClassVar[int] = 0
    turned: ClassVar[tuple] = ()

    @classmethod
    def dense(cls, name, planes, rows, nx, slots, ghost, staggered=False) -> "Grid":
        """Rows padded to whole lines, slots kept off large powers of two."""
        lines_a_row = -(-nx // LINE)
        lines = rows * lines_a_row
        if lines >= CACHE_SET:
            lines += (10 - lines) % CACHE_SET
        strides = lines_a_row * LINE, lines * LINE
        return cls(name, planes, rows, nx, slots, ghost, *strides, staggered)

    @property
    def plane_stride(self) -> int:
        """Values from a plane to the next."""
        return len(self.slots) * self.slot_stride

    @property
    def count(self) -> int:
        """Values to allocate, ghost planes included."""
        return (self.planes + 2 * self.ghost) * self.plane_stride

    @property
    def interior(self) -> tuple[int, int]:
        """First owned plane, and one past the last, in planes of the array."""
        return self.ghost, self.ghost + self.planes

    @property
    def within(self) -> int:
        """The largest number that an address within a plane holds."""
        return self.plane_stride

    def piece(self, plane: int, slot: int, count: int) -> tuple[int, int]:
        """Start and length in the array of `count` slots of a plane, from `slot` on."""
        return plane * self.plane_stride + slot * self.slot_stride, count * self.slot_stride

    def types(self) -> dict[str, str]:
        """What a kernel needs to find a value, with its type."""
        strides = {name: "int64" if name.endswith("_plane") else "int" for name in self.arguments()}
        return {"nx": "int", "rows": "int"} | strides | ({"odd": "int"} if self.staggered else {})

    def tables(self, geometry) -> dict:
        """Arrays that addresses read, once the solids are known: none."""
        return {}

    def table(self, offset) -> int | None:
        """Number of the table in which the neighbour at this offset is found: none."""
        return None

    def unlisted(self, entries, lattice) -> list:
        """Entry lists without the links that need none: all are needed."""
        return list(entries)

    def packed(self, cells, geometry) -> PackedCells:
        """Cells (plane * rows + row) * nx + x, packed as rows."""
        planes, within = np.divmod(cells, self.rows * self.nx)
        row, x = np.divmod(within, self.nx)
        return PackedCells.of_rows(planes, row, x)

    def arguments(self) -> dict[str, int]:
        """Numbers that a kernel needs to find a value."""
        strides = {"row": self.row_stride, "slot": self.slot_stride, "plane": self.plane_stride}
        return {f"{self.name}_{way}": stride for way, stride in strides.items()}

    def address(self, slot: int, offset: tuple[int, int, int], cell: CellNames = CELL) -> str:
        """C text of the index of a value of the cell, or of its neighbour at an offset."""
        row, x = cell.row_at(offset[1]), cell.x_at(offset[2])
        there = self._index(offset[0] * len(self.slots) + self.slots[slot], cell.plane, row, x)
        if not self.returning or not offset[2]:
            return there
        returned = self._index(self.slots[self.returning[slot]], cell.plane, cell.row, cell.x)
        return f"({x} {_BEYOND[offset[2]]} {cell.x} ? {returned} : {there})"

    def _index(self, slot: int, plane: str, row: str, x: str) -> str:
        """The slot is a separate term: the rest is the same for all slots."""
        cell = f"({plane} * {self.name}_plane + ({row} * {self.name}_row + {x}))"
        return f"(int64)({slot}) * {self.name}_slot + {cell}"


def velocity_grid(lattice, ghost: int, planes: int, rows: int, nx: int, more: int = 0) -> Grid:
    """Memory of the velocity field, and of `more` values a cell; ghost planes as of populations."""
    slots = tuple(range(lattice.D + more))
    return Grid.dense("u", planes, rows, nx, slots, ghost, lattice.staggered)


_BEYOND = {-1: ">=", 1: "<="}  # than its cell's, once it has wrapped
