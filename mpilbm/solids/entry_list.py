"""The entries of boundaries that one kernel handles: cells, links, and the data that it reads.

`entry_lists` finds those of a slab and sorts them by kernel.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.formulas.given_functions import AtPoints
from mpilbm.core.formulas.values import CellValue, Plane, columns
from mpilbm.model.case import BoundedLattice
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.boundaries import Condition
from mpilbm.physics.boundary_capabilities import Reads
from mpilbm.solids import Flags, Floats, Ints
from mpilbm.solids.inward_cells import InwardCells, inward_cells
from mpilbm.solids.link_set import LinkSet
from mpilbm.solids.missing_links import sheets_of
from mpilbm.solids.moving_walls import MovingLinks, WallMotion
from mpilbm.solids.owners import Owner, Ownership, Why
from mpilbm.solids.solid_cells import centres, values_from_file
from mpilbm.solids.wall_distance import FluidPlane, LinkData, link_data, links_of
from mpilbm.solids.wall_layer import WallLayer
from mpilbm.solids.wall_samples import WallSamples, wall_samples


class Writes(Enum):
    """How incoming populations are written; the value is the suffix of the kernel's name."""

    STAGED = ""  # computed by one kernel, written by another
    DIRECT = "_at_once"  # written by the kernel that computes them
    EXCHANGED = "_exchange"  # one entry exchanges the populations at both ends of a link
    MEASURED = "_measured"  # not written: used for forces on bodies and fluxes through walls


@dataclass(frozen=True, eq=False)
class GivenValues:
    """The given numbers of n entries.

    rows      float64 (m, V), at t = 0: one row for each face or body or, if values vary from cell
              to cell, for each entry; one column for each number (a column of zeros if none)
    row       int32 (n,), the row of each entry
    of_cells  {column: (n,)}, values per entry from arrays; nan for entries without such a value
    places    float64 (n, D), the centres of the cells, if some value is an AtPoints
    """

    rows: Floats
    row: NDArray[np.int32]
    of_cells: dict[int, Floats] = field(default_factory=dict)
    places: Floats | None = None

    @property
    def vary(self) -> bool:
        """Whether there is a row for each entry."""
        return bool(self.of_cells) or self.places is not None

    def only(self, mine: Any) -> "GivenValues":
        """The values of the entries with the numbers `mine`."""
        if not self.vary:
            return GivenValues(self.rows, self.row[mine])
        columns = {column: values[mine] for column, values in self.of_cells.items()}
        places = None if self.places is None else self.places[mine]
        return GivenValues(self.rows[mine], np.arange(mine.size, dtype=np.int32), columns, places)


@dataclass(frozen=True, kw_only=True, eq=False)
class EntryList:
    """The n entries of all boundaries of equal structure, which one kernel handles.

    structure  Condition.structure of these boundaries
    owners     the owners with these boundaries
    cells      int64 (n,), (plane * rows + row) * nx + x with local planes, ascending; a cell has
               one entry for each owner of its links, in the order of the case file
    member     int32 (n,), the index in `owners` of each entry's owner
    links      the links that the entries supply
    cut        the links that come from a fluid cell, through a sheet
    blocked    the links of the cells along which nothing streams in
    meeting    bool (n,), see Ownership.meeting
    given      the given numbers
    inward     the cells for each step inwards that the boundary reads
    per_link   the data per link that the boundary reads
    samples    the walls at the entries, and the cells sampled there, if it reads them
    layer      the walls below the entries, if it reads them
    motion     the motion of walls at its cells, if walls move and the boundary reads it
    fallbacks  {sentence of Capabilities.fallbacks: number of occurrences}
    writes     how the incoming populations are written
    overruled  see Ownership.overruled
    """

    structure: dict
    owners: tuple[Owner, ...]
    cells: Ints
    member: NDArray[np.int32]
    links: LinkSet
    cut: LinkSet
    blocked: LinkSet
    meeting: Flags
    given: GivenValues
    inward: tuple[InwardCells, ...] = ()
    per_link: LinkData | None = None
    samples: WallSamples | None = None
    layer: WallLayer | None = None
    motion: WallMotion | None = None
    fallbacks: dict[str, int] = field(default_factory=dict)
    writes: Writes = Writes.STAGED
    overruled: bool = False

    @property
    def boundary(self) -> Condition:
        """The boundary of the first owner."""
        return self.owners[0].boundary

    @property
    def boundaries(self) -> tuple[Condition, ...]:
        """The boundaries of all owners."""
        return tuple(owner.boundary for owner in self.owners)

    @property
    def looked_at(self) -> tuple[Ints, ...]:
        """The cells of the entries, and the cells inwards for each step."""
        return self.cells, *(inward.cells for inward in self.inward)

    @property
    def own_walls(self) -> LinkSet:
        """The supplied links along which nothing streams in, without direction 0."""
        return (self.links & self.blocked).moving()

    def of_bodies(self, numbers: Iterable[int]) -> Flags:
        """Bool (n,): whether an entry belongs to one of the bodies with these numbers."""
        return np.array([owner.body in set(numbers) for owner in self.owners], bool)[self.member]

    def only(self, mine: Any) -> "EntryList":
        """The list of the entries with the numbers `mine`."""
        return replace(
            self,
            cells=self.cells[mine],
            member=self.member[mine],
            links=self.links[mine],
            cut=self.cut[mine],
            blocked=self.blocked[mine],
            meeting=self.meeting[mine],
            given=self.given.only(mine),
            inward=tuple(InwardCells(at.cells[mine], at.blocked[mine]) for at in self.inward),
            per_link=self.per_link and self.per_link.only(self.links.of_cells(mine)),
            samples=self.samples and self.samples.only(mine),
            layer=self.layer and self.layer.only(mine),
            motion=self.motion and self.motion.only(mine),
        )

    def with_links(self, links: LinkSet, writes: Writes = Writes.STAGED) -> "EntryList":
        """The list with these links only, without entries that have no link left."""
        left = np.flatnonzero(links.any())
        data = self.per_link and self.per_link.only(links.contains(*self.links.unpack()))
        kept, links = (self, links) if left.size == len(links) else (self.only(left), links[left])
        return replace(kept, links=links, per_link=data, writes=writes)

    def limited(self, groups: int, by_direction: dict[int, Any], group: Ints) -> "EntryList":
        """The list with the links whose direction is allowed in the group of their entry.

        by_direction: {i: groups, or a mask of groups, that keep the link along c_i}. group: int64
        (n,), the group of each entry.
        """
        return self.with_links(self.links & LinkSet.collect(groups, by_direction)[group])

    @property
    def replaced(self) -> int:
        """The number of missing cells or values that the boundary replaces, see `fallbacks`."""
        return sum(self.fallbacks.values())

    @cached_property
    def _values(self) -> list[list[CellValue]]:
        return [[CellValue(n, v, 3) for n, v in one.values().items()] for one in self.boundaries]

    @cached_property
    def _by_point(self) -> list[tuple[Ints | slice, int, Callable[[float], Floats]]]:
        """Entries, a column, and the function of the time that returns their numbers in it."""
        if (places := self.given.places) is None:
            return []
        found: list[tuple[Ints | slice, int, Callable[[float], Floats]]] = []
        for number, boundary in enumerate(self.boundaries):
            mine = np.flatnonzero(self.member == number)
            which = mine if len(self.boundaries) > 1 else slice(None)  # a slice is faster
            for column, value in columns(boundary.values()):
                if isinstance(value, AtPoints) and mine.size:
                    found.append((which, column, value.over([*places[mine].T])))
        return found

    def rows(self, size: tuple[int, ...], t: float) -> Floats:
        """`given.rows` at time t, in a box of `size` cells."""
        found = ([v.evaluate(size, t).values() for v in values] for values in self._values)
        rows = np.array([[n for each in of for n in each] or [0.0] for of in found], np.float64)
        if not self.given.vary:
            return rows
        rows = rows[self.member] if len(rows) > 1 else np.repeat(rows, self.cells.size, axis=0)
        for column, values in self.given.of_cells.items():
            rows[:, column] = np.where(np.isnan(values), rows[:, column], values)
        for mine, column, values_at in self._by_point:
            rows[mine, column] = values_at(t)
        return rows

    def at_start(self, case: BoundedLattice) -> "EntryList":
        """The list with the values of `given` at t = 0."""
        return replace(self, given=replace(self.given, rows=self.rows(case.domain.size, 0)))


def entry_lists(
    case: BoundedLattice, slab: Slab, fluid: FluidPlane, ownership: Ownership
) -> tuple[EntryList, ...]:
    """Return the entries of a slab, one list per boundary structure, in the order of the
    owners.

    fluid: a function that returns where a local plane is fluid, see FluidPlane.
    """
    lists = [_entries(case, slab, fluid, ownership, owners) for owners in _groups(ownership.owners)]
    lists = _overruled_first(_with_motion(case, slab, lists, ownership), ownership)
    return tuple(sorted(lists, key=lambda each: not each.boundary.read_by_others))


def _entries(
    case: BoundedLattice,
    slab: Slab,
    fluid: FluidPlane,
    ownership: Ownership,
    owners: tuple[Owner, ...],
) -> EntryList:
    """Return the entries of owners with equal structure, without the motion of walls."""
    boundary = owners[0].boundary
    row_of = np.full(len(ownership.owners), -1, np.int32)
    row_of[[owner.place for owner in owners]] = np.arange(len(owners))
    belongs = ownership.owned_by(lambda owner: row_of[owner.place] >= 0)
    mine = slice(None) if belongs.all() else np.flatnonzero(belongs)
    cells, member = ownership.cells[mine], row_of[ownership.owner[mine]]
    inward, fallbacks = inward_cells(case.lattice, slab, fluid, cells, boundary)
    links, blocked = ownership.supplied[mine], ownership.blocked(cells)
    data, per_link = None, boundary.capabilities.per_link
    if per_link:
        found = links_of(case, slab, fluid, ownership, mine, blocked)
        data = link_data(case, slab, per_link, owners, found, case.layout.listed)
        fallbacks |= data.fallbacks
    samples, steps = None, boundary.capabilities.samples
    if steps is not None:
        sheets = [sheet for _, sheet in sheets_of(case, ownership.owners)]
        shapes = [
            (body.shape.in_box(case.domain), np.flatnonzero(ownership.owner[mine] == owner.place))
            for owner in owners
            for body in ([] if owner.body is None else [case.bodies[owner.body]])
            if body.shape is not None and body.shape.has_surface
        ]
        missing = ownership.missing[mine]
        samples = wall_samples(case, slab, fluid, cells, missing, steps, shapes, sheets)
        fallbacks |= samples.fallbacks
    return EntryList(
        structure=boundary.structure(),
        owners=owners,
        cells=cells,
        member=member,
        links=links,
        cut=ownership.cut[mine],
        blocked=blocked,
        meeting=ownership.meeting[mine],
        given=given_values(case, slab, cells, owners, member),
        inward=tuple(InwardCells(there, ownership.blocked(there)) for there in inward),
        per_link=data,
        samples=samples,
        fallbacks=fallbacks,
    ).at_start(case)


def given_values(
    case: BoundedLattice,
    slab: Slab,
    cells: Ints,
    owners: tuple[Owner, ...],
    member: NDArray[np.int32],
) -> GivenValues:
    """Return the given numbers of entries, without their values, see EntryList.at_start."""
    varying = _of_cells(case, slab, cells, owners, member)
    values = (value for owner in owners for value in owner.boundary.values().values())
    by_function = any(isinstance(value, AtPoints) for value in values)
    places = centres(case, slab, cells) if by_function else None
    varies = varying or places is not None
    row = np.arange(cells.size, dtype=np.int32) if varies else member
    return GivenValues(np.empty(0), row, varying, places)


def _groups(owners: tuple[Owner, ...]) -> list[tuple[Owner, ...]]:
    """Group the owners by the structure of their boundaries; without bodies that conduct."""
    groups: dict[str, list[Owner]] = {}
    for owner in (each for each in owners if not each.boundary.conducts):
        key = json.dumps(owner.boundary.structure(), sort_keys=True)
        groups.setdefault(key, []).append(owner)
    return [tuple(group) for group in groups.values()]


def _of_cells(
    case: BoundedLattice,
    slab: Slab,
    cells: Ints,
    owners: tuple[Owner, ...],
    member: NDArray[np.int32],
) -> dict[int, Floats]:
    """Return the values of cells from files, {column: (n,)}; nan for entries without a file."""
    found: dict[int, Floats] = {}
    for number, owner in enumerate(owners):
        for column, plane in columns(owner.boundary.values()):
            if isinstance(plane, Plane):
                mine = np.flatnonzero(member == number)
                values = found.setdefault(column, np.full(cells.size, np.nan))
                face = owner.boundary.where[0]
                values[mine] = values_from_file(plane, face, case, slab, cells[mine])
    return found


def _with_motion(
    case: BoundedLattice, slab: Slab, lists: list[EntryList], ownership: Ownership
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


def _overruled_first(lists: list[EntryList], ownership: Ownership) -> list[EntryList]:
    """Return the lists; overruled entries of mirrors form lists of their own, which come first."""
    if not any(owner.boundary.capabilities.whole_cell for owner in ownership.owners):
        return lists
    overruled = np.unique(ownership.cells[ownership.overruled])
    first, others = [], []
    for each in lists:
        if each.owners[0].why is Why.MIRROR:
            mine = np.isin(each.cells, overruled)
            first.append(replace(each.only(np.flatnonzero(mine)), overruled=True))
            each = each.only(np.flatnonzero(~mine))
        others.append(each)
    return first + others
