"""Finds cut links: links between two fluid cells that cross a sheet thinner than a cell.

A cut link is missing on both sides, and the body of the sheet owns it. Both sides find it from the
same numbers, so a slab needs no other slab.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.formulas.values import Plane
from mpilbm.model.case import Case, Surface
from mpilbm.parallel.slabs import Slab
from mpilbm.solids.link_set import LinkSet, joined
from mpilbm.solids.owners import Owner, Ownership, Why

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Entries = tuple[Ints, Ints, LinkSet]  # cells, places of the owners, links

CELLS = 2**16  # that are examined at a time
REACH = 1.001  # the length of a link along an axis, and rounding errors


def with_cut_links(case: Case, slab: Slab, ids: NDArray[Any], ownership: Ownership) -> Ownership:
    """Return the ownership with the links that sheets cut.

    ids: see missing_links.owned_links. If several bodies cut a link, the last one owns it.
    """
    sheets = [
        (owner.place, sheet)
        for owner in reversed(ownership.owners)
        if (sheet := sheet_of(case, owner)) is not None
    ]
    found = [
        each
        for block in (slab.blocks(CELLS) if sheets else ())
        for each in _of_block(case, slab, ids, sheets, block)
    ]
    return _merged(ownership, found) if found else ownership


def sheet_of(case: Case, owner: Owner) -> Surface | None:
    """The shape of an owner that is a body and cuts links; otherwise None."""
    shape = None if owner.body is None else case.bodies[owner.body].shape
    return shape.in_box(case.domain) if shape is not None and shape.cuts else None


def crossed(case: Case, owners: tuple[Owner, ...], points: Any, step: Any) -> Flags:
    """Bool (n,): whether a sheet lies between points and points + step, (D, n) each."""
    found = np.zeros(points.shape[1], bool)
    for owner in owners:
        sheet = sheet_of(case, owner)
        if sheet is not None:
            found |= ~np.isnan(sheet.first(points, step))
    return found


def _of_block(
    case: Case,
    slab: Slab,
    ids: NDArray[Any],
    sheets: list[tuple[int, Surface]],
    block: tuple[int, int],
) -> list[Entries]:
    """The entries of each body in the planes begin..end of a slab."""
    begin, end = block
    first, found = begin * ids[0].size, []
    taken = LinkSet.empty((end - begin) * ids[0].size)
    for place, sheet in sheets:
        cells = _beside(case, slab, ids, sheet.bounds(), block)
        links = _cut(case, slab, ids, sheet, cells).without(taken[cells - first])
        mine = np.flatnonzero(links.any())
        taken = taken.with_more(cells[mine] - first, links[mine])
        found.append((cells[mine], np.full(mine.size, place), links[mine]))
    return found


def _beside(case: Case, slab: Slab, ids: NDArray[Any], bounds: Any, block: tuple[int, int]) -> Ints:
    """The fluid cells of a block that are at most one cell outside the bounds of a shape."""
    begin, end = block
    cells = begin * ids[0].size + np.flatnonzero(ids[begin + 1 : end + 1] == 0)
    near = np.ones(cells.size, bool)
    sides = zip(coordinates(case, slab, cells), *bounds, strict=True)
    for at, low, high, n, periodic in (
        (*side, *of) for side, of in zip(sides, _axes(case), strict=True)
    ):
        shifts = (-n, 0, n) if periodic else (0,)
        centres = [at + 0.5 + k for k in shifts]
        near &= np.any([(c > low - REACH) & (c < high + REACH) for c in centres], axis=0)
    return cells[near]


def _axes(case: Case) -> Any:
    return zip(case.domain.size, case.domain.periodic, strict=True)


def coordinates(case: Case, slab: Slab, cells: Ints) -> Ints:
    """The coordinates of cells of a slab in the full lattice, int64 (D, n)."""
    plane, row, k = np.unravel_index(cells, (slab.planes, *slab.shape[1:]))
    x = case.lattice.x(plane + slab.begin, row, k)
    return np.stack(
        [x, row, plane + slab.begin] if case.dimensions == 3 else [x, plane + slab.begin]
    )


def centres(case: Case, slab: Slab, cells: Ints) -> NDArray[np.float64]:
    """The centres of cells of a slab in the box, float64 (n, D)."""
    return np.add(coordinates(case, slab, cells).T, 0.5, dtype=np.float64)


def values_from_file(
    plane: Plane, face: str, case: Case, slab: Slab, cells: Ints
) -> NDArray[np.float64]:
    """The values of a Plane for cells of a slab next to a face, float64 (n,)."""
    at = zip("xyz", coordinates(case, slab, cells), strict=False)
    return plane.values[tuple(place for axis, place in at if axis != face[0])[::-1]]


def _cut(case: Case, slab: Slab, ids: NDArray[Any], sheet: Surface, cells: Ints) -> LinkSet:
    """The links of fluid cells that come from a fluid cell and cross a sheet."""
    lattice, at, found = case.lattice, coordinates(case, slab, cells), {}
    size, periodic = (np.array(each)[:, None] for each in zip(*_axes(case), strict=True))
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
