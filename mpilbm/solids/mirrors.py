"""Links of free-slip faces (mirrors), for the other boundaries in the same cells.

For other boundaries a population from the mirror image counts as one that streams in, so that the
flow at an edge with an outlet equals that in a box of twice the width. Entries of mirrors are
therefore staged before all others, which read the staged populations. A boundary that sets the
whole cell sets these links too: it reads the staged populations, but they are not written to the
field (see Ownership.overruled).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpilbm.physics.boundary_capabilities import Reads
from mpilbm.solids.entry_list import EntryList
from mpilbm.solids.link_set import joined

Ints = NDArray[np.int64]
NOT_STAGED = -1  # kernels compare places with 0


@dataclass(frozen=True, eq=False)
class MirroredLinks:
    """The places of mirrored populations in the staging array.

    cells   int64 (n,), see `looked_at`
    places  int64 (n + 1, Q), as kernels read it: the place of each direction in the staging array,
            or NOT_STAGED; the last row belongs to all other cells
    """

    cells: Ints
    places: Ints

    @classmethod
    def find(
        cls, lists: Sequence[EntryList], start: Ints, Q: int, more: Sequence[EntryList] = ()
    ) -> "MirroredLinks":
        """Find the mirrored links of entry lists; start: int64, first place of each entry.

        `more`: lists that read them, but are not staged.
        """
        found = looked_at([*lists, *more])
        places = np.full((found.size + 1, Q), NOT_STAGED, np.int64)
        if not found.size:
            return cls(found, places)
        cells = np.concatenate([e.cells for e in lists] or [np.empty(0, np.int64)])
        sizes = np.array([e.cells.size for e in lists], np.int64)
        mirrors = np.repeat(np.array([e.boundary.mirrors for e in lists], bool), sizes)
        mine = np.flatnonzero(mirrors & np.isin(cells, found))
        entry, i, before = joined([e.links for e in lists])[mine].positions()
        places[np.searchsorted(found, cells[mine][entry]), i] = start[mine][entry] + before
        return cls(found, places)

    def rows_of(self, cells: Ints) -> NDArray[np.int32]:
        """The rows in `places` of these cells, int32 (n,)."""
        place = np.searchsorted(self.cells, cells)
        known = np.append(self.cells, -1)[place] == cells
        return np.where(known, place, self.cells.size).astype(np.int32)


def looked_at(lists: Sequence[EntryList]) -> Ints:
    """The cells with mirrored links that other boundaries read, int64 (n,), ascending."""
    mirrored, others = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for each in lists:
        if each.boundary.mirrors:
            mirrored.append(each.cells)
        elif each.boundary.capabilities.reads is Reads.CELL:
            others += each.looked_at
    if len(mirrored) == 1:  # no mirrors: avoid sorting the cells of large bodies
        return mirrored[0]
    return np.intersect1d(np.concatenate(mirrored), np.concatenate(others))
