"""Memory of a field over a slab: allocation, strides and addresses of neighbours.

    f[plane, slot, row, x]      x fastest; plane = z, row = y in 3D; plane = y, one row in 2D

Planes have ghost layers; rows and x wrap around, and so do planes where one slab has all planes of
a periodic axis. Wrapping is correct at walls, too: each location is read by exactly one cell, and
for a link that crosses a wall, the boundary writes the incoming population to that location before
the step.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mpilbm.layouts.cells import (
    CELL,
    CellNames,
    FluidCells,
    Offset,
    PackedCells,
    Planes,
)
from mpilbm.layouts.formats import Tail
from mpilbm.model.case import Case
from mpilbm.physics.lattices import Lattice

LINE = 32  # values in a line; rows start at multiples of 128 bytes for 4-byte values
PACKED = 2**18  # cells that are packed at a time, to save memory
CACHE_SET = 32  # lines; slots at a multiple of this distance would share cache sets


Part = tuple[int, np.ndarray]  # the place of the first number, and the numbers


@dataclass(frozen=True)
class Grid:
    """A dense field of `len(slots)` values per cell; value k begins at slot `slots[k]` of a plane.

    `widths`: the number of adjacent slots of each value, see Formats; empty: one each. A value of
    w slots has w locations for each cell, one after another. Strides and indices count locations.

    `staggered`: rows with odd plane + row are shifted by one node along x, see Lattice. In even
    rows the neighbour at x - 1 has the index k - 1 and the neighbour at x + 1 the index k; in odd
    rows the indices are k and k + 1. The prelude of a kernel defines x_m and x_p accordingly, from
    `odd`, the parity of the array's first plane in the box.

    `returning`: if not empty, rows end in walls, and a population that would come from beyond an
    end is read from the cell itself: returning[k] is the value that holds the outgoing population
    in the direction opposite to value k. If empty, rows wrap around.

    `tails`: the values whose last bits are in other values, see Tail. `type`: the C type of the
    numbers, "store" for populations and moments, else "real".

    `wraps`: whether the slab has all planes of a periodic axis; then addresses beyond its first and
    last plane wrap around, and the ghost planes are not used. Kernels that use the field find this
    in their arguments, so one text serves all slabs. None: the ghost planes are always used, also
    by all slabs of an axis that is not periodic, and no kernel has these arguments.
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
    widths: tuple[int, ...] = ()
    tails: tuple[Tail, ...] = ()
    wraps: bool | None = False
    type: str = "store"

    over: ClassVar[str] = "cells"
    table_bytes: ClassVar[int] = 0
    turned: ClassVar[tuple] = ()

    @classmethod
    def dense(
        cls,
        name: str,
        planes: int,
        rows: int,
        nx: int,
        slots: tuple[int, ...],
        ghost: int,
        staggered: bool = False,
        widths: tuple[int, ...] = (),
        wraps: bool | None = False,
        tails: tuple[Tail, ...] = (),
    ) -> "Grid":
        """A grid with rows padded to whole lines and slots away from large powers of two."""
        lines_a_row = -(-nx // LINE)
        lines = rows * lines_a_row
        if lines >= CACHE_SET:
            lines += (10 - lines) % CACHE_SET
        strides = lines_a_row * LINE, lines * LINE
        sizes = planes, rows, nx, slots, ghost, *strides
        return cls(name, *sizes, staggered, widths=widths, wraps=wraps, tails=tails)

    def short_rows(self, unit: int) -> "Grid":
        """The grid with rows padded to a multiple of `unit` values, for rows shorter than a line.

        Neighbouring rows then share lines: threads that have a cell of each row read fewer.
        """
        row = -(-self.nx // unit) * unit
        lines = -(-self.rows * row // LINE)
        if lines >= CACHE_SET:
            lines += (10 - lines) % CACHE_SET
        return replace(self, row_stride=row, slot_stride=lines * LINE)

    def beside(self, name: str, count: int) -> "Grid":
        """The memory of another field, of `count` numbers for each cell of this one."""
        slots = tuple(range(count))
        numbers = replace(self, returning=(), widths=(), tails=(), type="real")
        return replace(numbers, name=name, slots=slots)

    def planes_of(
        self, values: np.ndarray, local: int, _geometry: FluidCells | None = None
    ) -> Iterator[Part]:
        """Yield (place in the array, numbers) for values (components, rows, nx) of a plane."""
        for k, rows in enumerate(values):
            start = (local + self.ghost) * self.plane_stride + self.slots[k] * self.slot_stride
            for row, numbers in enumerate(rows):
                yield start + row * self.row_stride, numbers

    def filled(self, planes: Iterable[np.ndarray]) -> np.ndarray:
        """The array of a field of one uint8 per cell, from the values (rows, nx) of each plane."""
        found = np.zeros(self.count, np.uint8)
        for local, values in enumerate(planes):
            for place, numbers in self.planes_of(values[None], local):
                found[place : place + numbers.size] = numbers
        return found

    def width(self, value: int) -> int:
        """The number of slots of a value."""
        return self.widths[value] if self.widths else 1

    def tail_of(self, value: int) -> Tail | None:
        """The tail of a value, if it has one."""
        return next((tail for tail in self.tails if tail.head == value), None)

    def tail_in(self, value: int) -> Tail | None:
        """The tail that a value carries in its last bits, if it carries one."""
        return next((tail for tail in self.tails if tail.carrier == value), None)

    def occupied(self, value: int) -> range:
        """The slots of a value."""
        return range(self.slots[value], self.slots[value] + self.width(value))

    @property
    def all_slots(self) -> int:
        """Number of slots of all values."""
        return sum(self.widths) or len(self.slots)

    @property
    def plane_stride(self) -> int:
        """Number of locations from one plane to the next."""
        return self.all_slots * self.slot_stride

    @property
    def count(self) -> int:
        """Number of locations to allocate, including ghost planes."""
        return (self.planes + 2 * self.ghost) * self.plane_stride

    @property
    def interior(self) -> tuple[int, int]:
        """First owned plane, and one past the last, as numbers in the array."""
        return self.ghost, self.ghost + self.planes

    @property
    def within(self) -> int:
        """The largest index within a plane."""
        return self.plane_stride

    def piece(self, plane: int, slot: int, count: int) -> tuple[int, int]:
        """Start and length in the array of `count` slots of a plane, beginning at `slot`."""
        return plane * self.plane_stride + slot * self.slot_stride, count * self.slot_stride

    def types(self) -> dict[str, str]:
        """Kernel arguments that addresses use, {name: type}."""
        within = {f"{self.name}_{way}" for way in ("row", "slot")}
        own = {name: "int" if name in within else "int64" for name in self.arguments()}
        return {"nx": "int", "rows": "int"} | own | ({"odd": "int"} if self.staggered else {})

    @property
    def table_sizes(self) -> dict[str, int]:
        """The number of values of each table of neighbours; a dense field has none."""
        return {}

    def table_parts(self, geometry: FluidCells) -> Iterator[tuple[str, int, np.ndarray]]:
        """Yield parts of the tables: name, index of the first value, values; none if dense."""
        return iter(())

    def table(self, offset: Offset) -> int | None:
        """The number of the table with the neighbours at this offset; None for a dense field."""
        return None

    def packed(self, cells: NDArray[np.int64], geometry: FluidCells) -> PackedCells:
        """Pack cells given as (plane * rows + row) * nx + x, see cells.py."""
        words = np.empty(cells.size, np.int64)
        for begin in range(0, cells.size, PACKED):
            planes, within = np.divmod(cells[begin : begin + PACKED], self.rows * self.nx)
            row, x = np.divmod(within, self.nx)
            words[begin : begin + PACKED] = PackedCells.of_rows(planes, row, x).words
        return PackedCells(words)

    def arguments(self) -> dict[str, int]:
        """Kernel arguments that addresses use, {name: value}."""
        strides = {"row": self.row_stride, "slot": self.slot_stride, "plane": self.plane_stride}
        return {f"{self.name}_{way}": stride for way, stride in strides.items()} | turns(self)

    def address(self, slot: int, offset: Offset, cell: CellNames = CELL) -> str:
        """C text of the index of a value of the cell, or of its neighbour at an offset."""
        row, x = cell.row_at(offset[1]), cell.x_at(offset[2])
        there = self._index(slot, offset[0], cell, row, x)
        if not self.returning or not offset[2]:
            return there
        returned = self._index(self.returning[slot], 0, cell, cell.row, cell.x)
        return f"({x} {_BEYOND[offset[2]]} {cell.x} ? {returned} : {there})"

    def address_if(
        self,
        slot: int,
        offset: Offset,
        cell: CellNames,
        condition: str,
        missing: Offset | None = None,
    ) -> str:
        """The `address` if a condition, 0 or 1 in C, is 1, else 0; computed without branches.

        `missing`: see NodeGrid; here also a missing neighbour has its place.
        """
        return f"({self.address(slot, offset, cell)}) * {condition}"

    def _index(self, slot: int, step: int, cell: CellNames, row: str, x: str) -> str:
        """C text of the index of a value in a row at x, `step` planes from the cell.

        The slot and the planes are separate terms, so the rest is shared by all values.
        """
        first, width = step * self.all_slots + self.slots[slot], self.width(slot)
        within = f"({row} * {self.name}_row + {x})"
        within = f"{within} * {width}" if width > 1 else within
        start = f"(int64)({first}) * {self.name}_slot"
        turn = cell.turn(step, self)
        start = f"({start} + {turn} * {self.name}_plane)" if turn else start
        return f"{start} + ({cell.plane} * {self.name}_plane + {within})"


def byte_grid(name: str, grid: Grid) -> Grid:
    """The memory of one number per cell that kernels read in their own cell: no planes wrap."""
    return replace(grid.beside(name, 1), wraps=None)


def velocity_grid(
    lattice: Lattice, ghost: int, planes: int, rows: int, nx: int, more: int = 0
) -> Grid:
    """The memory of the velocity field and of `more` further values per cell.

    `ghost`: number of ghost planes on each side, the same as for the populations.
    """
    sizes = planes, rows, nx, tuple(range(lattice.D + more)), ghost
    return replace(Grid.dense("u", *sizes, lattice.staggered, wraps=None), type="real")


def turns(grid: Planes) -> dict[str, int]:
    """Kernel arguments by which planes wrap around: the first and last owned plane, and the number.

    The number of planes is 0 if they do not wrap around. Empty if addresses do not depend on it.
    """
    if grid.wraps is None:
        return {}
    return own_planes(grid) | {f"{grid.name}_turn": grid.planes * grid.wraps}


def own_planes(grid: Planes) -> dict[str, int]:
    """Kernel arguments: the first and last owned plane."""
    first, end = grid.interior
    return {f"{grid.name}_first": first, f"{grid.name}_last": end - 1}


_BEYOND = {-1: ">=", 1: "<="}  # comparison with the x of the cell that is true after wrapping


@dataclass(frozen=True)
class FieldGrid(Grid):
    """A dense field whose cells are read by several neighbours.

    A value beyond a wall of the box is read by several cells, so the cells beyond walls are stored.
    (A population there is read by one cell only and needs no such storage.) `walled`: whether the
    box ends in walls along the row axis and along x; otherwise that axis wraps around. The first
    cell of a row is at position LINE; the cell before it is in the padding. Planes have ghost
    layers as in `Grid`.
    """

    walled: tuple[bool, bool] = (False, False)

    @classmethod
    def of(cls, case: Case, planes: int, rows: int, nx: int) -> "FieldGrid":
        """The memory of the fields of the coupling; fields that neighbours read come first."""
        rows_wrap = case.dimensions == 2 or case.domain.periodic[1]
        walled = not rows_wrap, not case.domain.periodic[0]
        lines_a_row = 1 - (-(nx + 1) // LINE)
        lines = (rows + 2 * walled[0]) * lines_a_row
        if lines >= CACHE_SET:
            lines += (10 - lines) % CACHE_SET
        assert case.coupling is not None  # only coupled fluids have these fields
        count = len(case.coupling.neighbour_fields(case)) + len(case.coupling.local_fields(case))
        strides = lines_a_row * LINE, lines * LINE
        slots, ghost = tuple(range(count)), case.ghost
        sizes = planes, rows, nx, slots, ghost, *strides
        return cls("field", *sizes, wraps=None, type="real", walled=walled)

    def address(self, slot: int, offset: Offset, cell: CellNames = CELL) -> str:
        """C text of the index of a value of the neighbour at an offset, also beyond the box."""
        row, x = cell.row_at(offset[1]), f"({cell.x_at(offset[2])} + {LINE})"
        if self.walled[0]:
            row = f"({cell.row} + {1 + offset[1]})"
        if self.walled[1]:
            x = f"({cell.x} + {LINE + offset[2]})"
        return self._index(slot, offset[0], cell, row, x)

    def index(self, plane: Any, row: Any, x: Any) -> Any:
        """The index of value 0 of cells; numbers or arrays.

        `plane` counts from the first plane of the array; the cells beyond walls have row or x = -1.
        """
        return plane * self.plane_stride + (row + self.walled[0]) * self.row_stride + x + LINE
