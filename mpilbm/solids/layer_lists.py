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
from mpilbm.solids import Floats, Ints
from mpilbm.solids.entry_list import EntryList, entry_lists, given_values
from mpilbm.solids.link_set import LinkSet
from mpilbm.solids.missing_links import owned_links, sheets_of
from mpilbm.solids.owners import Owner, Ownership, Why, owners_of
from mpilbm.solids.solid_cells import coordinates, fluid_planes, padded_ids, solids
from mpilbm.solids.wall_distance import FluidPlane
from mpilbm.solids.wall_layer import REACH, CurvedWalls, beyond, layer_of
from mpilbm.solids.wall_samples import free_steps

LEAST = 2  # free steps above a wall cell, with which most of its friction acts


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
    lists = tuple(map(_counted, lists, own))
    parts = [each for each in (*own, *_walls_beyond(case, slab, owners)) if each]
    if not parts:
        return lists
    walls = CurvedWalls.joined(parts)
    cells, body, layer = layer_of(case, slab, fluid, ownership.cells, walls)
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


def _curved(
    case: BoundedLattice, slab: Slab, fluid: FluidPlane, entries: EntryList
) -> CurvedWalls | None:
    """The curved walls of bodies in a list, None without any."""
    walls = entries.samples
    if walls is None or not walls.curved.any():
        return None
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


def _counted(entries: EntryList, walls: CurvedWalls | None) -> EntryList:
    """The list with the number of cells whose friction is lost."""
    if walls is None:
        return entries
    lost = {LAYER_FALLBACK: int(np.count_nonzero(walls.free < LEAST))}
    return replace(entries, fallbacks=entries.fallbacks | lost)


def _walls_beyond(
    case: BoundedLattice, slab: Slab, owners: list[Owner]
) -> Iterator[CurvedWalls | None]:
    """The curved walls in the planes within REACH of a slab."""
    bodies = {owner.body for owner in owners}
    for first, there in beyond(slab):
        ids = solids(case, padded_ids(case, there))
        if not ids.any():
            continue
        owned = owned_links(case, there, ids)
        mine = np.flatnonzero(owned.owned_by(lambda owner: owner.body in bodies))
        owned = replace(
            owned,
            cells=owned.cells[mine],
            owner=owned.owner[mine],
            missing=owned.missing[mine],
            cut=owned.cut[mine],
        )
        fluid = cache(fluid_planes(case, there, ids))
        for each in entry_lists(case, there, fluid, owned):
            walls = _curved(case, there, fluid, each)
            yield walls and walls.moved(first)


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
