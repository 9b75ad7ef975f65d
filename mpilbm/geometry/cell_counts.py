"""The number of cells that have a property, and the first of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class CellCount:
    """A number of cells and the first of these cells; counts of planes and slabs can be added.

    first: (plane * rows + row) * nx + x in the whole box; None if there are no cells.
    """

    cells: int = 0
    first: int | None = None

    @classmethod
    def of_plane(cls, mask: NDArray[Any], plane: int) -> "CellCount":
        """Count the cells of a plane of the box where a mask (rows, nx) is True."""
        cells = np.flatnonzero(mask)
        return cls(cells.size, int(cells[0]) + plane * mask.size if cells.size else None)

    def __add__(self, other: "CellCount") -> "CellCount":
        known = [first for first in (self.first, other.first) if first is not None]
        return CellCount(self.cells + other.cells, min(known, default=None))


NO_CELLS = CellCount()
