"""How incoming populations are written: at once, exchanged between two links, or staged.

Entries of mirrors and wall models are staged before all others, which read these populations.

In memory, rows and x wrap around, and planes if one slab has all planes of a periodic axis. A link
of a cell x that leaves the box along rows or x leads to a cell y at the opposite wall, and a link
of y leads back to x. In any layout the two links share two places:

    | x ......................... y |       the outgoing population of x is stored where the
    |                               |       incoming population of y must be written, and vice versa

Two threads must not read and write these places at the same time. If the outgoing population
returns unchanged, one entry handles both ends of the link by exchanging the two values. Links that
leave the box along planes, and links to solid cells, do not share their places. Links that a sheet
cuts do, in the same way, and are staged. Links that leave along x do not share them either if the
step itself applies walls at rest at the ends of rows (see box_walls.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.model.case import BoundedLattice
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.boundaries import Condition
from mpilbm.physics.boundary_capabilities import Reads
from mpilbm.physics.lattices import Lattice
from mpilbm.solids import Flags, Ints
from mpilbm.solids.box_walls import beyond, rows_end_in_walls
from mpilbm.solids.entry_list import EntryList, Writes
from mpilbm.solids.link_set import LinkSet, joined

NOT_STAGED = -1  # kernels compare places with 0


def split_by_writes(
    case: BoundedLattice, slab: Slab, lists: Sequence[EntryList]
) -> list[EntryList]:
    """Split each list into staged, direct and exchanged links; return all lists, staged ones first.

    The direct and exchanged lists must run after the staged lists have read and before the staged
    populations are written. Lists of walls at rest are split first; a link whose other end belongs
    to a previously split list is staged.
    """
    staged, found = list(lists), []
    if rows_end_in_walls(case):  # for which the step performs bounce-back
        for k, each in enumerate(staged):
            if each.boundary.reflects:
                links = each.links.without(beyond(case, slab, each.cells))
                staged[k] = each.with_links(links)
        lists = tuple(staged)
    known: list[list[Ints]] = [[np.empty(0, np.int64)] for _ in range(case.lattice.Q)]
    direct = [k for k, e in enumerate(lists) if e.boundary.capabilities.reads is Reads.SAME_LINK]
    for k in sorted(direct, key=lambda k: not lists[k].boundary.reflects):
        waiting, exchanged, other_ends = _shared(case, slab, lists[k], known)
        cut = lists[k].links & lists[k].cut
        waiting, exchanged = waiting | cut, exchanged.without(cut)
        alone = lists[k].links.without(waiting | exchanged | other_ends)
        staged[k] = lists[k].with_links(waiting)
        found.append(lists[k].with_links(alone, Writes.DIRECT))
        if lists[k].boundary.reflects:
            found.append(lists[k].with_links(exchanged, Writes.EXCHANGED))
    return staged + [each for each in found if each.cells.size]


def _shared(
    case: BoundedLattice, slab: Slab, entries: EntryList, known: list[list[Ints]]
) -> tuple[LinkSet, LinkSet, LinkSet]:
    """Return the links to be staged, the exchanged links, and the other ends of the exchanged ones.

    known: for each direction i, the cells of previous lists that have a link along c_i at a side of
    the box. The cells of this list are added.
    """
    lattice, shape = case.lattice, (slab.planes, *slab.shape[1:])
    outer = _at_sides(shape, entries.cells)
    links = entries.links[outer]
    if rows_end_in_walls(case):
        links = links.without(beyond(case, slab, entries.cells[outer]))
    at = [outer[links.has(i)] for i in range(lattice.Q)]
    waiting: dict[int, Any] = {}
    exchanged: dict[int, Any] = {}
    other_ends: dict[int, Any] = {}
    for i in range(1, lattice.Q):
        opp, here = lattice.opp[i], entries.cells[at[i]]
        there, inside, side = _end(lattice, slab, shape, i, here)
        back, returns, _ = _end(lattice, slab, shape, opp, there)
        wraps = inside & (side != 0)
        own = _among(there, wraps, entries.cells[at[opp]])
        both = own & returns & (back == here) & entries.boundary.reflects
        other = _among(there, wraps, np.sort(np.concatenate(known[opp])))
        waiting[i] = at[i][own & ~both | other]
        exchanged[i] = at[i][both & (side < 0)]
        other_ends[i] = at[i][both & (side > 0)]
    for cells, mine in zip(known, at, strict=True):
        cells.append(entries.cells[mine])
    count = entries.cells.size
    return (
        LinkSet.collect(count, waiting),
        LinkSet.collect(count, exchanged),
        LinkSet.collect(count, other_ends),
    )


def _among(cells: Ints, chosen: Flags, known: Ints) -> Flags:
    """Return which of the chosen cells occur in `known`, whose cells ascend."""
    found = np.zeros(cells.size, bool)
    if known.size:
        wanted = cells[chosen]
        places = np.searchsorted(known, wanted).clip(max=known.size - 1)
        found[chosen] = known[places] == wanted
    return found


def _at_sides(shape: tuple[int, int, int], cells: Ints) -> Ints:
    """Return the numbers of the cells at the ends of rows and in the outermost rows."""
    outer = np.ones(shape[1:], bool)
    outer[1:-1, 1:-1] = False
    return np.flatnonzero(outer.reshape(-1)[cells % outer.size])


def _end(
    lattice: Lattice, slab: Slab, shape: tuple[int, int, int], i: int, cells: Ints
) -> tuple[Ints, Flags, Ints]:
    """Return the cells x - c_i, whether they lie in the slab, and the side of the box.

    The cells are wrapped around like addresses; a cell outside the slab is replaced by x itself.
    The side at which the link leaves the box is < 0 for lower, > 0 for upper and 0 for none; a link
    that leaves along x and along rows has the side of x.
    """
    steps, nx = lattice.offset(i), shape[2] * lattice.volume
    plane, row, k = np.unravel_index(cells, shape)
    x = lattice.x(plane + slab.begin, row, k) - steps[2]
    plane, row = plane - steps[0], row - steps[1]
    side = 2 * (x >= nx) - 2 * (x < 0) + (row >= shape[1]) - 1 * (row < 0)
    plane = plane % shape[0] if slab.wraps else plane
    there = (plane * shape[1] + row % shape[1]) * shape[2] + x % nx // lattice.volume
    inside = (plane >= 0) & (plane < shape[0])
    return np.where(inside, there, cells), inside, side


@dataclass(frozen=True, eq=False)
class MirroredLinks:
    """The places in the staging array of populations that other boundaries read.

    For other boundaries in the same cells a population from the mirror image at a free-slip face
    counts as one that streams in, so that the flow at an edge with an outlet equals that in a box
    of twice the width. So does one from a wall model, whose wall returns neither the momentum along
    it nor that of a half-way wall, see Capabilities.read_by_others. Entries of mirrors are staged
    first, then those of the other boundaries that are read, which read mirrors alone, and then the
    rest. A boundary that sets the whole cell sets the links of mirrors too: it reads the staged
    populations, but they are not written to the field (see Ownership.overruled).

    cells   int64 (n,), see `looked_at`
    places  int64 (2 n + 1, Q), as kernels read it: the place of each direction in the staging
            array, or NOT_STAGED. The first n rows have the links of all boundaries that are read,
            the next n those of mirrors; the last row belongs to all other cells
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
        places = np.full((2 * found.size + 1, Q), NOT_STAGED, np.int64)
        if not found.size:
            return cls(found, places)
        cells = np.concatenate([e.cells for e in lists] or [np.empty(0, np.int64)])
        sizes = [e.cells.size for e in lists]
        read = np.repeat(np.array([e.boundary.read_by_others for e in lists], bool), sizes)
        mirrors = np.repeat(np.array([e.boundary.mirrors for e in lists], bool), sizes)
        mine = np.flatnonzero(read & np.isin(cells, found))
        entry, i, before = joined([e.links for e in lists])[mine].positions()
        row, place = np.searchsorted(found, cells[mine][entry]), start[mine][entry] + before
        places[row, i] = place
        mirrored = mirrors[mine][entry]
        places[found.size + row[mirrored], i[mirrored]] = place[mirrored]
        return cls(found, places)

    def rows_of(self, cells: Ints, reader: Condition) -> NDArray[np.int32]:
        """The rows in `places` of these cells for a boundary that reads them, int32 (n,)."""
        row, count = np.searchsorted(self.cells, cells), self.cells.size
        known = np.append(self.cells, -1)[row] == cells
        return np.where(known, row + count * reader.read_by_others, 2 * count).astype(np.int32)


def looked_at(lists: Sequence[EntryList]) -> Ints:
    """The cells with links of which other boundaries read what is staged, int64 (n,), ascending."""
    reading = [each for each in lists if each.boundary.capabilities.reads is Reads.CELL]
    mirrors = [each for each in lists if each.boundary.mirrors]
    others = [e for e in lists if e.boundary.read_by_others and not e.boundary.mirrors]
    after_mirrors = [each for each in reading if not each.boundary.mirrors]
    last = [each for each in reading if not each.boundary.read_by_others]
    return np.union1d(_shared_cells(mirrors, after_mirrors), _shared_cells(others, last))


def _shared_cells(read: Sequence[EntryList], readers: Sequence[EntryList]) -> Ints:
    """The cells of lists at which others look, int64 (n,), ascending."""
    if not read or not readers:  # avoids sorting the cells of large bodies
        return np.empty(0, np.int64)
    at = np.concatenate([there for each in readers for there in each.looked_at])
    return np.intersect1d(np.concatenate([each.cells for each in read]), at)
