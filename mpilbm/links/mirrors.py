"""Links of faces that slip, for the other boundaries in the cells beside them.

What comes from the mirror is known as if it streamed in: at the edge with an outlet a flow goes on
as in a box twice as wide. So these entries are staged before all others, which look there. Where a
boundary sets whole cells it sets these links too: they are staged for it, and not taken in.
"""

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class SlippingLinks:
    """Where what enters through faces that slip is staged.

    cells: int64 (n,), see `looked_at`. places: int64 (n + 1, Q), of each direction the place in the
    staging array, -1 where none is; the last row is of all other cells.
    """

    cells: np.ndarray
    places: np.ndarray

    @classmethod
    def find(cls, lists, start, Q: int) -> "SlippingLinks":
        """Those of entry lists; start: int64, where the links of each entry begin."""
        found = looked_at(lists)
        cells = np.concatenate([e.cells for e in lists])
        missing = np.concatenate([e.missing for e in lists])
        slips = np.repeat([e.boundary.slips for e in lists], [e.cells.size for e in lists])
        mine = np.flatnonzero(slips & np.isin(cells, found))
        bits = np.unpackbits(missing[mine].view(np.uint8), bitorder="little").reshape(-1, 32)[:, :Q]
        entry, i = np.nonzero(bits)
        places = np.full((found.size + 1, Q), -1, np.int64)
        before = (bits.cumsum(axis=1) - bits)[entry, i]
        places[np.searchsorted(found, cells[mine][entry]), i] = start[mine][entry] + before
        return cls(found, places)

    def of(self, cells) -> np.ndarray:
        """The rows of any cells, int32 (n,)."""
        place = np.searchsorted(self.cells, cells)
        known = np.append(self.cells, -1)[place] == cells
        return np.where(known, place, self.cells.size).astype(np.int32)


def looked_at(lists) -> np.ndarray:
    """The cells beside faces that slip whose links others look at, int64 (n,), ascending."""
    slipping, others = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for each in lists:
        if each.boundary.slips:
            slipping.append(each.cells)
        elif not each.boundary.plain:
            others += [each.cells, *(there for there, _ in each.inward)]
    if len(slipping) == 1:  # others are many at large bodies: not to be sorted for nothing
        return slipping[0]
    return np.intersect1d(np.concatenate(slipping), np.concatenate(others))


def overruled(lists, owners) -> tuple:
    """EntryLists with those first that slip in cells of a boundary that sets whole cells."""
    if not any(each.whole for each in owners):
        return tuple(lists)
    whole = np.concatenate([each.cells for each in lists if each.boundary.whole])
    first, others = [], []
    for each in lists:
        if each.boundary.slips:
            mine = np.isin(each.cells, whole)
            first.append(replace(each.only(np.flatnonzero(mine)), overruled=True))
            each = each.only(np.flatnonzero(~mine))
        others.append(each)
    return (*first, *others)
