"""Finds the boundary entries of a slab and sorts them by kernel."""

import json
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.formulas.given_functions import PointValue
from mpilbm.core.formulas.values import Plane
from mpilbm.model.case import Case
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.boundaries import Boundary
from mpilbm.physics.boundary_capabilities import INWARD_FALLBACK, Reads
from mpilbm.physics.lattices import Lattice
from mpilbm.solids.cut_links import centres, values_from_file
from mpilbm.solids.entry_list import EntryList, GivenValues, Ints, InwardCells
from mpilbm.solids.moving_walls import MovingLinks, WallMotion
from mpilbm.solids.owners import Owner, Ownership, Why
from mpilbm.solids.planes_read import inward_step
from mpilbm.solids.wall_distance import FluidPlane, fluid_at, link_data, links_of


def entry_lists(
    case: Case, slab: Slab, fluid: FluidPlane, ownership: Ownership
) -> tuple[EntryList, ...]:
    """Return the entries of a slab, one list per boundary structure, in the order of the
    owners.

    fluid: a function that returns where a local plane is fluid, see FluidPlane.
    """
    lists = [_entries(case, slab, fluid, ownership, owners) for owners in _groups(ownership.owners)]
    return _overruled_first(_with_motion(case, slab, lists, ownership), ownership)


def _entries(
    case: Case, slab: Slab, fluid: FluidPlane, ownership: Ownership, owners: tuple[Owner, ...]
) -> EntryList:
    """Return the entries of owners with equal structure, without the motion of walls."""
    boundary = owners[0].boundary
    row_of = np.full(len(ownership.owners), -1, np.int32)
    row_of[[owner.place for owner in owners]] = np.arange(len(owners))
    belongs = ownership.owned_by(lambda owner: row_of[owner.place] >= 0)
    mine = slice(None) if belongs.all() else np.flatnonzero(belongs)
    cells, member = ownership.cells[mine], row_of[ownership.owner[mine]]
    inward, fallbacks = _inward(case.lattice, slab, fluid, cells, boundary)
    varying = _of_cells(case, slab, cells, owners, member)
    places = centres(case, slab, cells) if _by_function(owners) else None
    varies = varying or places is not None
    row = np.arange(cells.size, dtype=np.int32) if varies else member
    links, blocked = ownership.supplied[mine], ownership.blocked(cells)
    data, per_link = None, boundary.capabilities.per_link
    if per_link:
        found = links_of(
            case, slab, fluid, ownership.owners, cells, ownership.owner[mine], links, blocked
        )
        data = link_data(case, slab, per_link, owners, found, case.layout.listed)
        fallbacks |= data.fallbacks
    each = EntryList(
        structure=boundary.structure(),
        owners=owners,
        cells=cells,
        member=member,
        links=links,
        cut=ownership.cut[mine],
        blocked=blocked,
        meeting=ownership.meeting[mine],
        given=GivenValues(np.empty(0), row, varying, places),
        inward=tuple(InwardCells(there, ownership.blocked(there)) for there in inward),
        per_link=data,
        fallbacks=fallbacks,
    )
    return replace(each, given=replace(each.given, rows=each.rows(case.domain.size, 0)))


def _groups(owners: tuple[Owner, ...]) -> list[tuple[Owner, ...]]:
    """Group the owners by the structure of their boundaries; without bodies that conduct."""
    groups: dict[str, list[Owner]] = {}
    for owner in (each for each in owners if not each.boundary.conducts):
        key = json.dumps(owner.boundary.structure(), sort_keys=True)
        groups.setdefault(key, []).append(owner)
    return [tuple(group) for group in groups.values()]


def _of_cells(
    case: Case, slab: Slab, cells: Ints, owners: tuple[Owner, ...], member: NDArray[np.int32]
) -> dict[int, NDArray[np.float64]]:
    """Return the values of cells from files, {column: (n,)}; nan for entries without a file."""
    found: dict[int, NDArray[np.float64]] = {}
    for number, owner in enumerate(owners):
        for column, plane in enumerate(owner.boundary.values().values()):
            if isinstance(plane, Plane):
                mine = np.flatnonzero(member == number)
                values = found.setdefault(column, np.full(cells.size, np.nan))
                face = owner.boundary.where[0]
                values[mine] = values_from_file(plane, face, case, slab, cells[mine])
    return found


def _by_function(owners: tuple[Owner, ...]) -> bool:
    """Whether some value is a function that is evaluated at the cells."""
    values = (value for owner in owners for value in owner.boundary.values().values())
    return any(isinstance(value, PointValue) for value in values)


def _inward(
    lattice: Lattice, slab: Slab, fluid: FluidPlane, cells: Ints, boundary: Boundary
) -> tuple[list[Ints], dict[str, int]]:
    """Return the cells inwards along the normal for each step, and the number of replacements."""
    steps = boundary.capabilities.inward
    if not steps:
        return [], {}
    shape = (slab.planes, *slab.shape[1:])
    place = np.array(np.unravel_index(cells, shape)).reshape(3, -1)
    step = np.reshape(inward_step(lattice, boundary), (3, 1))
    found, before, replaced = [], cells, 0
    for k in range(1, steps + 1):
        there = place + k * step
        inside = (there >= 0).all(axis=0) & (there < np.reshape(shape, (3, 1))).all(axis=0)
        at = np.ravel_multi_index(tuple(np.where(inside, there, place)), shape)
        usable = inside & fluid_at(fluid, *np.divmod(at, shape[1] * shape[2]))
        before = np.where(usable, at, before)
        replaced += int(np.count_nonzero(~usable))
        found.append(before)
    return found, {INWARD_FALLBACK: replaced}


def _with_motion(
    case: Case, slab: Slab, lists: list[EntryList], ownership: Ownership
) -> list[EntryList]:
    """Add the motion of walls at the cells that the boundaries read; return the lists."""
    if not any(owner.boundary.wall_velocity is not None for owner in ownership.owners):
        return lists
    reads = [each.boundary.capabilities.reads is Reads.CELL for each in lists]
    cells = ownership.cells
    shared = cells[1:][cells[1:] == cells[:-1]]  # cells with several owners
    inwards = (at.cells for each, of in zip(lists, reads, strict=True) if of for at in each.inward)
    moving = MovingLinks.find(case, slab, ownership, np.concatenate([shared, *inwards]))
    return [
        replace(each, motion=WallMotion.of(moving, each.looked_at)) if of else each
        for each, of in zip(lists, reads, strict=True)
    ]


def _overruled_first(lists: list[EntryList], ownership: Ownership) -> tuple[EntryList, ...]:
    """Return the lists; overruled entries of mirrors form lists of their own, which come first."""
    if not any(owner.boundary.capabilities.whole_cell for owner in ownership.owners):
        return tuple(lists)
    overruled = np.unique(ownership.cells[ownership.overruled])
    first, others = [], []
    for each in lists:
        if each.owners[0].why is Why.MIRROR:
            mine = np.isin(each.cells, overruled)
            first.append(replace(each.only(np.flatnonzero(mine)), overruled=True))
            each = each.only(np.flatnonzero(~mine))
        others.append(each)
    return (*first, *others)
