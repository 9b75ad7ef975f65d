"""Boundary links whose incoming populations can be written directly, without staging.

Rows and x wrap around. So a link that leaves the box there leads to a cell y behind the opposite
wall, whose own link leads back to x, and both share two places, whatever the layout:

    | x ......................... y |       the outgoing population of x lies where the incoming one
    |                               |       of y has to be written, and vice versa

An entry that reads and writes must not run beside the one at the other end. Where the outgoing
population returns unchanged, one entry can handle both ends: it exchanges two values. Nothing wraps
along planes, and no link starts behind a body: there a link has its places to itself. Nor does
anything wrap along x where the step itself applies walls at rest there (see row_ends): such walls
have no links beyond the ends of rows, and the links of other walls have their places to themselves.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.links.boundary_links import EntryList, Writes
from mpilbm.links.link_set import LinkSet
from mpilbm.links.row_ends import beyond, rows_end_in_walls
from mpilbm.physics.boundary_capabilities import Reads

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


def split_by_writes(case, slab, lists: Sequence[EntryList]) -> list[EntryList]:
    """The lists with the links that must be staged, and then those with all others.

    The latter, direct and exchanged, are to be launched after all staged ones have read and before
    these are written. Walls at rest go first; entries at the other ends of their links that are not
    such walls are staged.
    """
    if rows_end_in_walls(case):
        lists = [_without_row_ends(case, slab, each) for each in lists]
    staged, found = list(lists), []
    known: list[list[Ints]] = [[np.empty(0, np.int64)] for _ in range(case.lattice.Q)]
    direct = [k for k, each in enumerate(lists) if _can_be_direct(each)]
    for k in sorted(direct, key=lambda k: not lists[k].boundary.reflects):
        waiting, exchanged, other_ends = _shared(case, slab, lists[k], known)
        alone = lists[k].links.without(waiting | exchanged | other_ends)
        staged[k] = lists[k].with_links(waiting)
        found.append(lists[k].with_links(alone, Writes.DIRECT))
        if lists[k].boundary.reflects:
            found.append(lists[k].with_links(exchanged, Writes.EXCHANGED))
    return staged + [each for each in found if each.cells.size]


def _can_be_direct(entries: EntryList) -> bool:
    return entries.boundary.capabilities.reads is Reads.SAME_LINK


def _without_row_ends(case, slab, entries: EntryList) -> EntryList:
    """Without the links whose populations the step returns by itself."""
    if not entries.boundary.reflects:
        return entries
    return entries.with_links(entries.links.without(beyond(case, slab, entries.cells)))


def _shared(
    case, slab, entries: EntryList, known: list[list[Ints]]
) -> tuple[LinkSet, LinkSet, LinkSet]:
    """The links that must be staged, those that are exchanged, and the other ends of these.

    known: for each direction the cells of previous lists whose links along it may be other ends;
    this list's own are added.
    """
    lattice, shape = case.lattice, (slab.planes, *slab.shape[1:])
    _, row, k = np.unravel_index(entries.cells, shape)
    outer = np.flatnonzero((row == 0) | (row == shape[1] - 1) | (k == 0) | (k == shape[2] - 1))
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
        own = wraps & np.isin(there, entries.cells[at[opp]])
        both = own & returns & (back == here) & entries.boundary.reflects
        other = wraps & np.isin(there, np.concatenate(known[opp]))
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


def _end(lattice, slab, shape, i: int, cells: Ints) -> tuple[Ints, Flags, Ints]:
    """The cells x - c_i, wrapped around like addresses, and whether they lie in the slab.

    Where they do not, x itself. And the side on which the link leaves the box: < 0 lower, > 0
    upper, 0 none; that of x if it leaves along x, else that of the rows.
    """
    steps, nx = lattice.offset(i), shape[2] * lattice.volume
    plane, row, k = np.unravel_index(cells, shape)
    x = lattice.x(plane + slab.begin, row, k) - steps[2]
    plane, row = plane - steps[0], row - steps[1]
    side = 2 * (x >= nx) - 2 * (x < 0) + (row >= shape[1]) - 1 * (row < 0)
    there = (plane * shape[1] + row % shape[1]) * shape[2] + x % nx // lattice.volume
    inside = (plane >= 0) & (plane < shape[0])
    return np.where(inside, there, cells), inside, side
