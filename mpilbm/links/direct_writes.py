"""Links at which what enters is written at once, without waiting for what other entries read.

Rows and x wrap around. So a link that leaves the box there leads to a cell y behind the opposite
wall, whose own link leads back to x, and both share two places, whatever the layout:

    | x ......................... y |       what left x lies where what enters y has to be written,
    |                               |       what left y where what enters x has to be

An entry that reads and writes must not run beside the one at the other end. Where what left comes
back as it is, one entry can handle both ends: it exchanges two values. Along planes nothing wraps,
and behind a body no link starts: there a link has its places alone. Nor does anything wrap along x
where steps take what walls at rest return there by themselves (see row_ends): such walls have no
links left beyond the ends of rows, and those of others have their places alone.
"""

from dataclasses import replace

import numpy as np

from mpilbm.links.boundary_links import EntryList
from mpilbm.links.row_ends import beyond, rows_end_in_walls


def parted(case, slab, lists) -> list[EntryList]:
    """All lists without, and then those with the links that need not be staged.

    The latter, `_at_once` and the exchanges, are to be launched after all others have read and
    before these write. Walls at rest go first; what stands at the other ends of their links, but
    for such walls, is staged.
    """
    if rows_end_in_walls(case):
        lists = [_not_at_home(case, slab, each) for each in lists]
    staged, found = list(lists), []
    known: list[list] = [[np.empty(0, np.int64)] for _ in range(case.lattice.Q)]
    turning = (k for k, each in enumerate(lists) if each.boundary.turns_back)
    for k in sorted(turning, key=lambda k: not lists[k].boundary.returns):
        waiting, exchanged, second = _shared(case, slab, lists[k], known)
        alone = lists[k].missing & ~(waiting | exchanged | second)
        staged[k] = _only(lists[k], waiting)
        found.append(_only(lists[k], alone, "_at_once"))
        if lists[k].boundary.returns:
            found.append(_only(lists[k], exchanged, "_exchange"))
    return staged + [each for each in found if each.cells.size]


def _not_at_home(case, slab, entries: EntryList) -> EntryList:
    """Without the links whose populations come back by themselves."""
    if not entries.boundary.returns:
        return entries
    return _only(entries, entries.missing & ~beyond(case, slab, entries.cells))


def _shared(case, slab, entries: EntryList, known) -> np.ndarray:
    """uint32 (3, n): bits of the links that must be staged, that are exchanged, their other ends.

    known: for each direction the cells whose links along it may lie at other ends, of lists before
    this one; its own are added.
    """
    lattice, shape = case.lattice, (slab.planes, *slab.shape[1:])
    _, row, k = np.unravel_index(entries.cells, shape)
    outer = np.flatnonzero((row == 0) | (row == shape[1] - 1) | (k == 0) | (k == shape[2] - 1))
    missing, bits = entries.missing[outer], [np.uint32(1 << i) for i in range(lattice.Q)]
    if rows_end_in_walls(case):
        missing = missing & ~beyond(case, slab, entries.cells[outer])
    at = [outer[missing & bit > 0] for bit in bits]
    bits_of = np.zeros((3, entries.cells.size), np.uint32)
    for i in range(1, lattice.Q):
        opp, here = lattice.opp[i], entries.cells[at[i]]
        there, side = _end(lattice, slab, shape, i, here)
        back, _ = _end(lattice, slab, shape, opp, there.clip(0))
        own = _among(there, entries.cells[at[opp]]) & (side != 0)
        both = own & (back == here) & entries.boundary.returns
        other = _among(there, np.sort(np.concatenate(known[opp]))) & (side != 0)
        for number, mine in enumerate((own & ~both | other, both & (side < 0), both & (side > 0))):
            bits_of[number, at[i][mine]] |= bits[i]
    for cells, mine in zip(known, at, strict=True):
        cells.append(entries.cells[mine])
    return bits_of


def _end(lattice, slab, shape, i: int, cells):
    """The cells x - c_i, wrapped around as addresses are; -1 in planes of other slabs.

    And where the link leaves the box: < 0 at its lower side, > 0 at its upper, 0 nowhere; of x if
    it leaves it along x, else of the rows.
    """
    steps, nx = lattice.offset(i), shape[2] * lattice.volume
    plane, row, k = np.unravel_index(cells, shape)
    x = lattice.x(plane + slab.begin, row, k) - steps[2]
    plane, row = plane - steps[0], row - steps[1]
    side = 2 * (x >= nx) - 2 * (x < 0) + (row >= shape[1]) - 1 * (row < 0)
    there = (plane * shape[1] + row % shape[1]) * shape[2] + x % nx // lattice.volume
    return np.where((plane >= 0) & (plane < shape[0]), there, -1), side


def _among(cells, some) -> np.ndarray:
    """Whether each cell is one of some, which ascend."""
    place = np.searchsorted(some, cells)
    return np.append(some, -2)[place] == cells


def _only(entries: EntryList, missing, ending: str = "") -> EntryList:
    """The entries that have any of these links, for the kernel of this ending."""
    left = np.flatnonzero(missing)
    return replace(entries.only(left), missing=missing[left], ending=ending)
