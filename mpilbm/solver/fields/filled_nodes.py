"""Listed nodes of a staggered lattice, of which some are means of stored cells."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mpilbm.physics.lattices import Lattice


class FilledNodes:
    """Listed nodes: the stored cells that they need, and their values.

    The values are those of outputs/core/fields.py, which explains them.

    nodes   int (n, 3): plane, row and x; plane 0 is plane `first` of the box
    size    rows and stored cells of a row
    cells   int (m, 3): plane, row and index in the row of the stored cells whose values are needed
    """

    SIDES = 4  # the largest number of cells that a node needs
    _STEPS = ((0, -1), (0, 1), (-1, 0), (1, 0))  # along y and x: before and after along x, then y

    def __init__(
        self,
        lattice: "Lattice",
        nodes: np.ndarray,
        first: int,
        size: tuple[int, int],
        wraps: tuple[bool, bool],
    ):
        rows, nx = size
        plane, row, x = nodes.T
        self.stored = lattice.x(first + plane, row, x // 2) == x
        self.count = len(nodes)
        sides, there = [], []
        for dy, dx in self._STEPS:
            y, k = row + dy, x + dx
            inside = ((y >= 0) & (y < rows)) | wraps[1]
            there.append(inside & (((k >= 0) & (k < 2 * nx)) | wraps[0]))
            sides.append(np.stack([plane, y % rows, (k % (2 * nx)) // 2], axis=1))
        self._there = np.array(there).reshape(self.SIDES, -1)[:, ~self.stored]
        own = np.stack([plane, row, x // 2], axis=1)[self.stored]
        around = np.stack(sides)[:, ~self.stored].reshape(-1, 3)
        self.cells = np.concatenate([own, around])

    def values(
        self, cells: np.ndarray, solid: np.ndarray, rest: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Values (n[, k]) of the nodes, and which are solid, from those of `cells`, (m[, k])."""
        own, components = int(self.stored.sum()), cells.shape[1:]
        kind = np.result_type(cells, np.float32)
        found = np.full((self.count, *components), rest, kind)
        mask = np.ones(self.count, bool)
        found[self.stored], mask[self.stored] = cells[:own], solid[:own]
        shape = (self.SIDES, self.count - own)
        around = cells[own:].astype(kind).reshape(*shape, -1)
        fluid = (~solid[own:].reshape(shape) & self._there)[..., None]
        count = fluid[0].astype(kind) + fluid[1] + (fluid[2].astype(kind) + fluid[3])
        total = around[0] * fluid[0] + around[1] * fluid[1]
        total = total + (around[2] * fluid[2] + around[3] * fluid[3])
        inside = self._there.sum(axis=0)[:, None].astype(kind)
        mean = total / np.maximum(count, 1)
        known = (count > 0) & (2 * count >= inside)
        for k in (2, 0):  # the mean along x has precedence
            both = fluid[k] & fluid[k + 1]
            mean = np.where(both, (around[k] + around[k + 1]) / 2, mean)
            known = known | both
        mean = np.where(known, mean, np.asarray(rest, kind))
        found[~self.stored] = mean.reshape(-1, *components)
        mask[~self.stored] = ~known[:, 0]
        return found, mask
