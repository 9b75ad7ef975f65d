"""The number of cells that have a property, and the first of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.model.case import Case
from mpilbm.parallel.slabs import Slab

CELLS = 2**20  # examined together, or one plane


@dataclass(frozen=True)
class CellCount:
    """A number of cells and the first of these cells; counts of planes and slabs can be added.

    first: (plane * rows + row) * nx + x in the whole box; None if there are no cells.
    """

    cells: int = 0
    first: int | None = None

    @classmethod
    def of_planes(cls, mask: NDArray[Any], plane: int) -> "CellCount":
        """Count the cells where a mask (planes, rows, nx) is True; plane: that of mask[0]."""
        cells = int(np.count_nonzero(mask))
        return cls(cells, int(mask.argmax()) + plane * mask[0].size if cells else None)

    def __add__(self, other: "CellCount") -> "CellCount":
        known = [first for first in (self.first, other.first) if first is not None]
        return CellCount(self.cells + other.cells, min(known, default=None))


NO_CELLS = CellCount()


def cells_of_bodies(case: Case, slab: Slab, solid: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of cells of each body, int64 (bodies,); solid: ids (planes, rows, nx)."""
    found = np.zeros(1 + len(case.bodies), np.int64)
    for begin, end in slab.blocks(CELLS):
        block = solid[begin:end]
        ids = block[block != 0]
        if ids.size and ids.min() == ids.max():
            found[ids[0]] += ids.size
        else:
            found += np.bincount(ids, minlength=found.size)
    return found[1:]
