"""Boundary lists of conditions that act in fluid cells above the walls of bodies."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from mpilbm.model.case import BoundedLattice
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.boundary_capabilities import LAYER_FALLBACK
from mpilbm.solids import Flags, Floats, Ints
from mpilbm.solids.entry_list import EntryList, entry_lists, given_values
from mpilbm.solids.link_set import LinkSet
from mpilbm.solids.missing_links import owned_links, sheets_of
from mpilbm.solids.owners import Owner, Ownership, Why, owners_of
from mpilbm.solids.solid_cells import coordinates, fluid_planes, padded_ids, solids
from mpilbm.solids.wall_distance import FluidPlane
from mpilbm.solids.wall_layer import REACH, CurvedWalls, beyond, layer_of, needed
from mpilbm.solids.wall_samples import free_steps


def all_lists(case: BoundedLattice, slab: Slab, ids: NDArray[np.integer]) -> tuple[EntryList, ...]:
    """Return all entries of a slab: those of missing links, then those above walls.

    ids: see solid_cells.padded_ids. The result does not depend on the partition.
    """
    there = solids(case, ids)
    return with_layers(case, slab, there, owned_links(case, slab, there))


def with_layers(
    case: BoundedLattice, slab: Slab, ids: NDArray[np.integer], ownership: Ownership
) -> tuple[EntryList, ...]:
    """As `all_lists`, from the missing links; ids: without those of bodies that conduct."""
    fluid = fluid_planes(case, slab, ids)
    lists = entry_lists(case, slab, fluid, ownership)
    owners = _layer_owners(case)
    if not owners:
        return lists
    own = [_curved(case, slab, fluid, each) for each in lists]
    outside = list(_beyond(case, slab, owners))
    walls = CurvedWalls.joined([*own, *(walls for _, curved in outside for walls in curved)])
    if not walls.body.size:
        return lists
    taken = np.sort(np.concatenate([ownership.cells, *(cells for cells, _ in outside)]))
    cells, body, layer, served = layer_of(case, slab, fluid, taken, walls)
    lists = tuple(_counted(lists, own, served))
    groups: dict[str, list[Owner]] = {}
    for owner in owners:
        groups.setdefault(json.dumps(owner.boundary.structure(), sort_keys=True), []).append(owner)
    found = []
    for group in map(tuple, groups.values()):
        numbers = np.array([owner.body for owner in group])
        mine = np.flatnonzero(np.isin(body, numbers))
        if mine.size:
            member = np.searchsorted(numbers, body[mine]).astype(np.int32)
            each = _list(case, slab, group, cells[mine], member)
            found.append(replace(each, layer=layer.only(mine)))
    return (*lists, *found)


def _layer_owners(case: BoundedLattice) -> list[Owner]:
    """The owners of the cells above walls; their places follow those of all other owners."""
    owners = owners_of(case)
    bodies = ((owner.boundary.layer, owner.body) for owner in owners if owner.body is not None)
    layers = ((layer, body) for layer, body in bodies if layer)
    return [
        Owner(k, *each) for k, each in enumerate(((b, Why.BODY, n) for b, n in layers), len(owners))
    ]


def _curved(case: BoundedLattice, slab: Slab, fluid: FluidPlane, entries: EntryList) -> CurvedWalls:
    """The curved walls of bodies in a list."""
    walls = entries.samples
    if walls is None:
        return CurvedWalls.none(case.dimensions)
    mine = np.flatnonzero(walls.curved)
    numbers = np.array([-1 if owner.body is None else owner.body for owner in entries.owners])
    body, normal = numbers[entries.member[mine]], walls.normal[mine]
    at = coordinates(case, slab, entries.cells[mine]).T
    sheets = [sheet for _, sheet in sheets_of(case, owners_of(case))]
    free = free_steps(case, slab, fluid, at, normal, REACH, sheets)
    at[:, -1] -= slab.begin
    area = _area(case, entries, mine, normal)
    return CurvedWalls(at, body, normal, walls.distance[mine], area, free)


def _area(case: BoundedLattice, entries: EntryList, mine: Ints, normal: Floats) -> Floats:
    """The areas of the wall next to cells: 2 w_i c_i . n / cs2, added over their links."""
    lattice, found = case.lattice, np.zeros(mine.size)
    links = (entries.links & (entries.blocked | entries.cut))[mine]
    for i in range(1, lattice.Q):
        along = sum(float(c) * n for c, n in zip(lattice.c[i], normal.T, strict=True))
        found += links.has(i) * (2 * float(lattice.w[i] / lattice.cs2) * along)
    return np.maximum(found, 0)


def _counted(
    lists: tuple[EntryList, ...], own: list[CurvedWalls], served: Flags
) -> Iterator[EntryList]:
    """The lists with the number of cells whose friction is lost."""
    begin = 0
    for entries, walls in zip(lists, own, strict=True):
        lost = int(np.count_nonzero(~served[begin : begin + walls.body.size]))
        begin += walls.body.size
        more = {LAYER_FALLBACK: lost} if walls.body.size else {}
        yield replace(entries, fallbacks=entries.fallbacks | more)


def _beyond(
    case: BoundedLattice, slab: Slab, owners: list[Owner]
) -> Iterator[tuple[Ints, list[CurvedWalls]]]:
    """The cells with missing links, and the curved walls, in the planes `needed` by a slab."""
    bodies = {owner.body for owner in owners}
    plane = slab.shape[1] * slab.shape[2]
    for first, there in beyond(slab, needed(len(bodies))):
        ids = solids(case, padded_ids(case, there))
        owned = owned_links(case, there, ids)
        taken = owned.cells + first * plane
        mine = np.flatnonzero(owned.owned_by(lambda owner: owner.body in bodies))
        owned = owned.only(mine)
        fluid = cache(fluid_planes(case, there, ids))
        walls = (_curved(case, there, fluid, e) for e in entry_lists(case, there, fluid, owned))
        yield taken, [each.moved(first) for each in walls]


def _list(
    case: BoundedLattice,
    slab: Slab,
    owners: tuple[Owner, ...],
    cells: Ints,
    member: NDArray[np.int32],
) -> EntryList:
    """The list of cells that supplies all populations."""
    none, all_links = LinkSet.empty(cells.size), LinkSet.all_of(case.lattice.Q)
    return EntryList(
        structure=owners[0].boundary.structure(),
        owners=owners,
        cells=cells,
        member=member,
        links=none | all_links,
        cut=none,
        blocked=none,
        meeting=np.zeros(cells.size, bool),
        given=given_values(case, slab, cells, owners, member),
    ).at_start(case)
