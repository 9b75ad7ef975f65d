"""Packed indices of cells for kernels over boundary entries: several numbers in 64 bits.

    plane << 42 | row << 21 | x     in layouts that store all cells
    plane << 42 | node              in layouts that store fluid cells only

Planes count from the first owned plane; planes of the lower ghost layer are negative. A kernel
unpacks the parts without divisions.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
