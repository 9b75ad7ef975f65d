"""Memory of the fields of a coupling, including cells beyond walls."""

from dataclasses import dataclass
from typing import Any

from mpilbm.layouts.contracts import Offset
from mpilbm.layouts.grid import CACHE_SET, CELL, LINE, CellNames, Grid
from mpilbm.model.case import Case


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
        return cls("field", planes, rows, nx, slots, ghost, *strides, wraps=None, walled=walled)

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
