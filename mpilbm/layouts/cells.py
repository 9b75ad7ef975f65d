"""Cells in memory: what grids need of a slab, names of a cell in C text, and packed indices.

A packed index holds several numbers in 64 bits, for kernels over boundary entries:

    plane << 42 | row << 21 | x     in layouts that store all cells
    plane << 42 | node              in layouts that store fluid cells only

Planes count from the first owned plane; planes of the lower ghost layer are negative. A kernel
unpacks the parts without divisions.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Offset = tuple[int, int, int]  # of a cell: (plane, row, x)


class Planes(Protocol):
    """The planes of a field in memory, whatever its cells are."""

    @property
    def name(self) -> str:
        """The name of the array."""

    @property
    def planes(self) -> int:
        """Number of owned planes."""

    @property
    def interior(self) -> tuple[int, int]:
        """First owned plane, and one past the last, as numbers in the array."""

    @property
    def wraps(self) -> bool | None:
        """Whether planes wrap around; None: addresses do not depend on it."""


class FluidCells(Protocol):
    """The fluid cells of a slab and of the planes next to it."""

    @property
    def wraps(self) -> tuple[bool, bool]:
        """Whether rows are periodic, and whether x is."""

    def fluid(self, local: int, /) -> NDArray[np.bool_]:
        """The fluid cells (rows, nx) of a local plane."""


ROW, PLANE = 21, 42  # lowest bit of the row and of the plane
LONGEST_SIDE = 2**ROW  # cells along x and y
_PART, _NODE = 2**ROW - 1, 2**PLANE - 1


@dataclass(frozen=True, eq=False)
class PackedCells:
    """Packed indices of n cells; words: int64 (n,)."""

    words: NDArray[np.int64]

    @classmethod
    def of_rows(cls, plane: NDArray[Any], row: NDArray[Any], x: NDArray[Any]) -> "PackedCells":
        """Pack cells given by plane, row and index in the row."""
        return cls(plane << PLANE | row << ROW | x)

    @classmethod
    def of_nodes(cls, plane: NDArray[Any], node: NDArray[Any]) -> "PackedCells":
        """Pack fluid cells given by plane and index in the plane."""
        return cls(plane << PLANE | node)

    def __getitem__(self, mine: Any) -> "PackedCells":
        return PackedCells(self.words[mine])

    @property
    def plane(self) -> NDArray[np.int64]:
        """The plane of each cell."""
        return self.words >> PLANE

    @property
    def node(self) -> NDArray[np.int64]:
        """The number of each cell in its plane."""
        return self.words & _NODE


def packed_plane(cell: str) -> str:
    """C text of the plane of a packed cell, counted from the first plane of the array."""
    return f"({cell} >> {PLANE}) + first"


def packed_row(cell: str) -> str:
    """C text of the row of a packed cell."""
    return f"(int)({cell} >> {ROW} & {_PART:#x})"


def packed_x(cell: str) -> str:
    """C text of the number of a packed cell in its row."""
    return f"(int)({cell} & {_PART:#x})"


def packed_node(cell: str) -> str:
    """C text of the number of a packed fluid cell in its plane."""
    return f"(int)({cell} & {_NODE:#x})"


@dataclass(frozen=True)
class CellNames:
    """C expressions for the position of a cell, from which addresses are built.

    `row_m`, `row_p`, `x_m` and `x_p` are the positions of the neighbours at -1 and +1, wrapped
    around. `cell` is the packed cell index of a boundary list, see `packed`. `owned`: the plane is
    one of the slab's own; if false, it may be a ghost plane.
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
    owned: bool = True

    @classmethod
    def suffixed(cls, end: str) -> "CellNames":
        """Names of another cell's variables in the same kernel: plane_in1, row_in1_m, …"""
        places = {name: name + end for name in ("plane", "row", "x", "node", "cell")}
        sides = {f"{name}_{side}": f"{name}{end}_{side}" for name in ("row", "x") for side in "mp"}
        return cls(**places, **sides, owned=False)

    @classmethod
    def packed(cls, cell: str) -> "CellNames":
        """Expressions for the position of a packed cell index, without neighbours."""
        return cls(
            plane=f"({packed_plane(cell)})",
            row=packed_row(cell),
            x=packed_x(cell),
            node=packed_node(cell),
            cell=cell,
            owned=False,
        )

    def row_at(self, step: int) -> str:
        """The row at step -1, 0 or +1."""
        return (self.row, self.row_p, self.row_m)[step]

    def x_at(self, step: int) -> str:
        """The index in the row at step -1, 0 or +1."""
        return (self.x, self.x_p, self.x_m)[step]

    def turn(self, step: int, grid: Planes) -> str:
        """The number of planes to add to that at `step` where planes wrap around; "" if it is 0."""
        if grid.wraps is None or (self.owned and not step):
            return ""
        ends = ("", "_LAST", "_FIRST")[(step > 0) - (step < 0)] if self.owned else ""
        return f"TURN{ends}({grid.name}, {self.plane} + ({step}))"


CELL = CellNames()  # the cell for which a kernel is called
LISTED = CellNames(owned=False)  # the cell of an entry of a boundary list
