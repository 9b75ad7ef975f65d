"""How many cells have a property, and the first of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class CellCount:
    """A number of cells and the first one, (plane * rows + row) * nx + x in the whole box.

    first: None if there are no cells. Counts add up over planes, slabs and pieces.
    """

    cells: int = 0
    first: int | None = None

    @classmethod
    def of_plane(cls, mask: NDArray[Any], plane: int) -> "CellCount":
        """The cells of a plane of the box, given by a mask (rows, nx)."""
        cells = np.flatnonzero(mask)
        return cls(cells.size, int(cells[0]) + plane * mask.size if cells.size else None)

    def __add__(self, other: "CellCount") -> "CellCount":
        known = [first for first in (self.first, other.first) if first is not None]
        return CellCount(self.cells + other.cells, min(known, default=None))


NO_CELLS = CellCount()
