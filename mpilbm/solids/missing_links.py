"""Finds the missing links of a slab and their owners, in blocks of planes.

Whether the link from x - c_i to x is missing, and who owns it, follows from the position x - c_i
alone (see owners.py). A block therefore has a code for each position in it and next to it: 0 for
fluid, otherwise the owner's place + 1. The codes are one array, in which the sources of all links
along c_i are the same array shifted by a number of positions:

    link i of position n is missing if code[n] == 0 and code[n - shift_i] != 0

A link between two fluid cells that crosses a sheet thinner than a cell is missing on both sides:
it is cut, and the body of the sheet owns it. Both sides find it from the same numbers, so a slab
needs no other slab.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpilbm.model.case import BoundedLattice, Surface
from mpilbm.parallel.slabs import Slab
from mpilbm.solids import Flags, Ints
from mpilbm.solids.link_set import LinkBytes, LinkSet, joined
from mpilbm.solids.owners import NOBODY, Owner, Ownership, Why, beyond, face_owners, owners_of
from mpilbm.solids.solid_cells import coordinates

Codes = NDArray[Any]  # uint8 or uint16, (planes, rows, nx)
SHEET_CELLS = 2**16  # that are compared with sheets at a time
REACH = 1.001  # the length of a link along an axis, and rounding errors
CELLS = 2**19  # in a block, or one plane; its arrays then fit the cache of a CPU core


class Entries(NamedTuple):
    """Cells, places of their owners, and missing links; of a block, counted from its first cell."""

    cells: NDArray[Any]
    owner: NDArray[Any]
    missing: LinkSet


def owned_links(case: BoundedLattice, slab: Slab, ids: NDArray[Any]) -> Ownership:
    """Return the missing links of a slab and their owners.

    ids: (planes + 2, rows, nx), 0 for fluid and k + 1 for body k, of the slab's planes and one
    plane on either side. The result depends on global coordinates only, not on the partition.
    """
    finder, size = _Finder(case), ids[0].size
    solid = ids.reshape(len(ids), -1).max(axis=1) > 0
    templates: dict[tuple, Entries] = {}  # of blocks without solids in or next to them
    found: list[Entries] = []
    for local, end in slab.blocks(CELLS):
        begin, near = slab.begin + local, ids[local : end + 2]
        faces = begin == 0, slab.begin + end == slab.shape[0]
        key = *faces, begin % case.lattice.volume, end - local
        if solid[local : end + 2].any():
            found.append(finder.block(begin, near))
        else:
            if key not in templates:
                templates[key] = finder.block(begin, near)
            found.append(templates[key])
    cells = np.empty(sum(each.cells.size for each in found), np.int64)
    ends = np.cumsum([0, *(each.cells.size for each in found)])
    for each, block, (begin, end) in zip(found, slab.blocks(CELLS), pairwise(ends), strict=True):
        np.add(each.cells, block[0] * size, out=cells[begin:end])
    owner = np.concatenate([each.owner for each in found])
    missing = joined([each.missing for each in found])
    cut = LinkSet.empty(cells.size)
    ownership = Ownership(finder.owners, cells, owner, missing, cut, case.lattice.Q)
    return _with_cut_links(case, slab, ids, ownership)


class _Finder:
    """Finds the missing links and their owners in blocks of planes.

    shifts: (volume, Q), positions from x - c_i to x in rows whose first node has this x.
    """

    def __init__(self, case: BoundedLattice):
        self.case, self.owners = case, owners_of(case)
        self.faces = face_owners(case, self.owners)
        self.joined = face_owners(case, self.owners, joined=True)
        self.first_body = len(self.owners) - len(case.bodies)
        self.mirrors = sum(owner.why is Why.MIRROR for owner in self.owners)
        self.pads = 1, int(case.dimensions == 3), 1  # in 2D no link leads to another row
        rows, nx = (n + 2 * pad for n, pad in zip(case.shape[1:], self.pads[1:], strict=True))
        self.strides = rows * nx, nx, 1
        volume = case.lattice.volume
        offsets = np.array([case.lattice.offset(i) for i in range(case.lattice.Q)])
        before = (np.arange(volume)[:, None] - offsets[:, 2]) // volume  # from the cell to x - c_i
        self.shifts = offsets[:, :2] @ self.strides[:2] - before

    def block(self, begin: int, ids: NDArray[Any]) -> Entries:
        """Return the entries of the planes begin, begin + 1, …

        ids: (planes + 2, rows, nx), those of the planes and of the planes next to them.
        """
        codes = self._codes(begin, ids)
        sources = np.negative((codes != 0).view(np.uint8)).reshape(-1)  # 255 if a link is missing
        fluid = np.zeros(codes.shape, bool)
        fluid[self._inside(codes)] = ids[1:-1] == 0
        first = int(np.dot(self.pads, self.strides))  # the position of the first cell
        end = codes.size - first
        links = LinkBytes(end - first, self.case.lattice.Q)
        for parity, shifts in enumerate(self.shifts.tolist()):
            mine = self._rows_with(parity, begin, codes)[first:end]
            for i, shift in enumerate(shifts):
                links.add(i, sources[first - shift : end - shift] & mine)
        found = np.flatnonzero(links.any() & fluid.reshape(-1)[first:end])
        return self._entries(begin, ids.shape, codes, found + first, links.of(found))

    def _inside(self, codes: Codes) -> tuple[slice, ...]:
        """The part of the codes that belongs to the cells of a block."""
        return tuple(slice(pad, n - pad) for pad, n in zip(self.pads, codes.shape, strict=True))

    def _rows_with(self, parity: int, begin: int, codes: Codes) -> NDArray[np.uint8]:
        """255 at all positions of the rows whose first node has x = parity, 0 elsewhere."""
        volume = self.case.lattice.volume
        if volume == 1:
            return np.broadcast_to(np.uint8(255), codes.size)
        plane, row, _ = np.ogrid[tuple(slice(n) for n in codes.shape)]
        rows = (begin - 1 + plane + row - self.pads[1]) % volume == parity
        return np.broadcast_to(np.where(rows, np.uint8(255), np.uint8(0)), codes.shape).reshape(-1)

    def _codes(self, begin: int, ids: NDArray[Any]) -> Codes:
        """The codes of a block and of one position beyond each of its sides; in 2D not of rows."""
        dtype = np.uint8 if len(self.owners) < 2**8 else np.uint16
        sizes = [n + 2 * pad for n, pad in zip(ids[1:-1].shape, self.pads, strict=True)]
        codes = np.empty(sizes, dtype)
        body = ids.astype(dtype)
        np.add(body, self.first_body, out=body, where=ids > 0)
        codes[:, *self._inside(codes)[1:]] = body
        at = [np.arange(n) - pad for n, pad in zip(sizes, self.pads, strict=True)]
        at[0] += begin
        for axis, size in enumerate(self.case.shape):
            beyond_box = np.flatnonzero((at[axis] < 0) | (at[axis] >= size))
            part = [np.arange(n) for n in sizes]
            part[axis] = beyond_box
            if beyond_box.size:
                mine = [positions[k] for positions, k in zip(at, part, strict=True)]
                codes[np.ix_(*part)] = self._outside(begin, ids, mine)
        return codes

    def _outside(self, begin: int, ids: NDArray[Any], at: list[Ints]) -> Ints:
        """The codes of all positions with the coordinates `at` (planes, rows, x), by the rules."""
        face, joint, places = np.array(NOBODY), np.array(NOBODY), []
        for axis, (here, size) in enumerate(zip(np.ix_(*at), self.case.shape, strict=True)):
            side = beyond(here, size, self.faces[axis])
            face = np.maximum(face, side)
            joint = np.maximum(joint, beyond(here, size, self.joined[axis]))
            # beyond a mirror lies the mirror image of the cells before it
            wrapped = here - begin + 1 if axis == 0 else here % size
            mirrored = here.clip(0, size - 1) - (begin - 1 if axis == 0 else 0)
            places.append(np.where(side == NOBODY, wrapped, mirrored))
        body = ids[tuple(places)].astype(np.int64)
        inside = np.where(body > 0, body - 1 + self.first_body, joint)
        of_face = (face >= self.mirrors) | (face != NOBODY) & (body == 0)
        return np.where(of_face, face, inside) + 1

    def _entries(
        self, begin: int, shape: tuple[int, ...], codes: Codes, at: Ints, links: LinkSet
    ) -> Entries:
        """The entries of cells at positions `at` of the codes, from all their missing links."""
        plane, rest = np.divmod(at, self.strides[0])
        row, x = np.divmod(rest, self.strides[1])
        row = row - self.pads[1]
        cells = (((plane - 1) * shape[1] + row) * shape[2] + x - 1).astype(np.int32)
        sample = np.bincount(codes.reshape(-1)[:: self.strides[1] + 1], minlength=2)
        common = 1 + int(sample[1:].argmax())  # of most links
        owner = np.full(at.size, common - 1, np.int32)
        near = np.flatnonzero(self._near((codes != 0) & (codes != common))[at])
        if not near.size:
            return Entries(cells, owner, links)
        shifts = self.shifts[(begin - 1 + plane + row)[near] % len(self.shifts)]
        number, places, divided = self._divided(codes.reshape(-1), at[near], shifts, links[near])
        far = np.delete(np.arange(at.size), near)
        number = np.append(far, near[number])
        order = np.argsort(number, kind="stable")  # fast: two parts in order
        owner = np.append(owner[far], places.astype(np.int32))[order]
        return Entries(cells[number[order]], owner, joined([links[far], divided])[order])

    def _near(self, mask: Flags) -> Flags:
        """Whether the mask is True at a position or next to it, for all positions (flat)."""
        found = mask.reshape(-1)
        for stride in self.strides:
            near = found.copy()
            near[stride:] |= found[:-stride]
            near[:-stride] |= found[stride:]
            found = near
        return found

    def _divided(
        self, codes: Codes, at: Ints, shifts: Ints, links: LinkSet
    ) -> tuple[Ints, Ints, LinkSet]:
        """Divide links by owner: the index of the cell, owner and links of each entry.

        at: (n,), positions of the cells; shifts: (n, Q), those of each cell.
        """
        one = codes.dtype.type(1)
        highest, lowest = codes[at], codes[at] - one
        for shift in shifts.T:
            code = codes[at - shift]
            highest = np.maximum(highest, code)
            lowest = np.minimum(lowest, code - one)  # the code of fluid becomes the largest number
        alone = np.flatnonzero(highest - one == lowest)
        several = np.flatnonzero(highest - one != lowest)
        cell, direction = links[several].unpack()
        cell = several[cell]
        source = codes[at[cell] - shifts[cell, direction]].astype(np.int64)
        keys, group = np.unique(cell * len(self.owners) + source - 1, return_inverse=True)
        divided = LinkSet.summed(group.reshape(-1), direction, keys.size)
        keys = np.append(alone * len(self.owners) + lowest[alone], keys)
        order = np.argsort(keys, kind="stable")
        number, owner = np.divmod(keys[order], len(self.owners))
        return number, owner, joined([links[alone], divided])[order]


def sheets_of(case: BoundedLattice, owners: Sequence[Owner]) -> list[tuple[int, Surface]]:
    """The places of the owners that are bodies with sheets, and their shapes in the box."""
    bodies = [(o.place, case.bodies[o.body].shape) for o in owners if o.body is not None]
    return [(k, shape.in_box(case.domain)) for k, shape in bodies if shape and shape.cuts]


def _with_cut_links(
    case: BoundedLattice, slab: Slab, ids: NDArray[Any], ownership: Ownership
) -> Ownership:
    """Add the links that sheets cut; if several bodies cut a link, the last one owns it."""
    sheets, found = sheets_of(case, ownership.owners[::-1]), []
    for begin, end in slab.blocks(SHEET_CELLS) if sheets else ():
        first = begin * ids[0].size
        fluid = first + np.flatnonzero(ids[begin + 1 : end + 1] == 0)
        taken = LinkSet.empty((end - begin) * ids[0].size)
        for place, sheet in sheets:
            cells = _beside(case, slab, fluid, sheet)
            links = _cut(case, slab, ids, sheet, cells).without(taken[cells - first])
            mine = np.flatnonzero(links.any())
            taken = taken.with_more(cells[mine] - first, links[mine])
            found.append(Entries(cells[mine], np.full(mine.size, place), links[mine]))
    return _merged(ownership, found) if found else ownership


def _beside(case: BoundedLattice, slab: Slab, cells: Ints, sheet: Surface) -> Ints:
    """The cells, of those given, that are at most one cell outside the bounds of a shape."""
    near, domain = np.ones(cells.size, bool), case.domain
    at = coordinates(case, slab, cells) + 0.5
    for x, low, high, n, periodic in zip(
        at, *sheet.bounds(), domain.size, domain.periodic, strict=True
    ):
        images = [x + k for k in ((-n, 0, n) if periodic else (0,))]
        near &= np.any([(c > low - REACH) & (c < high + REACH) for c in images], axis=0)
    return cells[near]


def _cut(
    case: BoundedLattice, slab: Slab, ids: NDArray[Any], sheet: Surface, cells: Ints
) -> LinkSet:
    """The links of fluid cells that come from a fluid cell and cross a sheet."""
    lattice, at, found = case.lattice, coordinates(case, slab, cells), {}
    size, periodic = np.array(case.domain.size)[:, None], np.array(case.domain.periodic)[:, None]
    for i in range(1, lattice.Q):
        step = -np.array(lattice.c[i])[:, None]
        there = at + step
        inside = np.flatnonzero((((there >= 0) & (there < size)) | periodic).all(axis=0))
        wrapped = (there % size)[:, inside]
        plane = there[-1, inside] - slab.begin + 1
        row = wrapped[1] if lattice.D == 3 else 0
        open_ends = inside[ids[plane, row, wrapped[0] // lattice.volume] == 0]
        q = sheet.first(at[:, open_ends] + 0.5, np.repeat(step, open_ends.size, 1).astype(float))
        found[i] = open_ends[~np.isnan(q)]
    return LinkSet.collect(cells.size, found)


def _merged(ownership: Ownership, found: list[Entries]) -> Ownership:
    """The ownership with further entries; they take links from joined faces."""
    cells, places = (np.concatenate([each[k] for each in found]) for k in (0, 1))
    cut = joined([each[2] for each in found])
    at = np.concatenate([ownership.cells, cells])
    owner = np.concatenate([ownership.owner, places])
    none = LinkSet.empty(ownership.cells.size)
    missing, cut = joined([_left(ownership, cells, cut), cut]), joined([none, cut])
    key = at * len(ownership.owners) + owner
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.append(True, np.diff(key[order]) > 0)[: key.size])
    missing, cut = (each[order].united(first) for each in (missing, cut))
    mine = np.flatnonzero(missing.any())
    at, owner = at[order][first][mine], owner[order][first][mine].astype(np.int32)
    return replace(ownership, cells=at, owner=owner, missing=missing[mine], cut=cut[mine])


def _left(ownership: Ownership, cells: Ints, cut: LinkSet) -> LinkSet:
    """The missing links of the entries, of joined faces without those that are cut."""
    links = ownership.missing
    joint = ownership.owned_by(lambda owner: owner.why is Why.OPPOSITE_FACE)
    order = np.argsort(cells, kind="stable")
    known, first = np.unique(cells[order], return_index=True)
    united = cut[order].united(first)
    mine = np.flatnonzero(joint & np.isin(ownership.cells, known))
    rest = links[mine].without(united[np.searchsorted(known, ownership.cells[mine])])
    return links.with_all_of(mine, rest)
