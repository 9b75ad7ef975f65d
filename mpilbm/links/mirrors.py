"""Links of free-slip faces, for the other boundaries in the cells beside them.

A population from the mirror image arrives like one that streams in: at an edge with an outlet the
flow is as in a box twice as wide. So the entries of mirrors are staged before all others, which
read what was staged. Where a boundary sets whole cells it sets these links too: they are staged for
it, and not taken in (see Ownership.overruled).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpilbm.links.boundary_links import EntryList
from mpilbm.links.link_set import joined
from mpilbm.physics.boundary_capabilities import Reads

Ints = NDArray[np.int64]
NOT_STAGED = -1  # kernels compare places with 0


@dataclass(frozen=True, eq=False)
class MirroredLinks:
    """Where the populations that enter through mirrors are staged.

    cells: int64 (n,), see `looked_at`. places: int64 (n + 1, Q), as kernels read it: the place of
    each direction in the staging array, NOT_STAGED for none; the last row is for all other cells.
    """

    cells: Ints
    places: Ints

    @classmethod
    def find(cls, lists: Sequence[EntryList], start: Ints, Q: int) -> "MirroredLinks":
        """The links of entry lists; start: int64, where the links of each entry begin."""
        found = looked_at(lists)
        cells = np.concatenate([e.cells for e in lists] or [np.empty(0, np.int64)])
        mirrors = np.repeat([e.boundary.mirrors for e in lists], [e.cells.size for e in lists])
        mine = np.flatnonzero(mirrors & np.isin(cells, found))
        entry, i, before = joined([e.links for e in lists])[mine].positions()
        places = np.full((found.size + 1, Q), NOT_STAGED, np.int64)
        places[np.searchsorted(found, cells[mine][entry]), i] = start[mine][entry] + before
        return cls(found, places)

    def rows_of(self, cells: Ints) -> NDArray[np.int32]:
        """The rows of any cells, int32 (n,)."""
        place = np.searchsorted(self.cells, cells)
        known = np.append(self.cells, -1)[place] == cells
        return np.where(known, place, self.cells.size).astype(np.int32)


def looked_at(lists: Sequence[EntryList]) -> Ints:
    """The cells beside mirrors whose links other boundaries read, int64 (n,), ascending."""
    mirrored, others = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for each in lists:
        if each.boundary.mirrors:
            mirrored.append(each.cells)
        elif each.boundary.capabilities.reads is Reads.CELL:
            others += each.looked_at
    if len(mirrored) == 1:  # others are many at large bodies: do not sort them in vain
        return mirrored[0]
    return np.intersect1d(np.concatenate(mirrored), np.concatenate(others))
