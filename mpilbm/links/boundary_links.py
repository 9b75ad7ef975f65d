"""Boundary entries sorted by kernel: cells, links, and the other data that the kernel reads."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.errors import CaseError
from mpilbm.formulas.values import CellValue, Plane, of_cells
from mpilbm.links.link_set import LinkSet
from mpilbm.links.moving_walls import MovingLinks, WallMotion
from mpilbm.links.owners import Owner, Ownership, Why
from mpilbm.links.wall_distance import FluidPlane, LinkData, fluid_at, link_data, links_of
from mpilbm.physics.boundaries import Boundary, one_face_each
from mpilbm.physics.boundary_capabilities import INWARD_FALLBACK, Reads
from mpilbm.units import counted

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Writes(Enum):
    """How incoming populations are written; the value is the suffix of the kernel's name."""

    STAGED = ""  # computed by one kernel, written by another
    DIRECT = "_at_once"  # written by the kernel that computes them
    EXCHANGED = "_exchange"  # one entry exchanges the populations at both ends of a link
    MEASURED = "_force"  # not written: used for the forces on bodies


@dataclass(frozen=True, eq=False)
class GivenValues:
    """The given numbers of n entries.

    rows      float64 (m, V), at t = 0: one row for each face or body or, if values vary from cell
              to cell, for each entry; one column for each number (a column of zeros if none)
    row       int32 (n,), the row of each entry
    of_cells  {column: (n,)}, values per entry from files; nan for entries without such a value
    """

    rows: NDArray[np.float64]
    row: NDArray[np.int32]
    of_cells: dict[int, NDArray[np.float64]] = field(default_factory=dict)

    def only(self, mine: Any) -> "GivenValues":
        """The values of the entries with the numbers `mine`."""
        if not self.of_cells:
            return GivenValues(self.rows, self.row[mine])
        columns = {column: values[mine] for column, values in self.of_cells.items()}
        return GivenValues(self.rows[mine], np.arange(mine.size, dtype=np.int32), columns)


@dataclass(frozen=True, eq=False)
class InwardCells:
    """The k-th cells inwards of n entries, int64 (n,), and their blocked links.

    A cell that is not fluid is replaced by the nearest fluid cell before it.
    """

    cells: Ints
    blocked: LinkSet


@dataclass(frozen=True, kw_only=True, eq=False)
class EntryList:
    """The n entries of all boundaries of equal structure, which one kernel handles.

    structure  Boundary.structure of these boundaries
    owners     the owners with these boundaries
    cells      int64 (n,), (plane * rows + row) * nx + x with local planes, ascending; a cell has
               one entry for each owner of its links, in the order of the case file
    member     int32 (n,), the index in `owners` of each entry's owner
    links      the links that the entries supply
    blocked    the links of the cells along which nothing streams in
    meeting    bool (n,), see Ownership.meeting
    given      the given numbers
    inward     the cells for each step inwards that the boundary reads
    per_link   the data per link that the boundary reads
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
    blocked: LinkSet
    meeting: Flags
    given: GivenValues
    inward: tuple[InwardCells, ...] = ()
    per_link: LinkData | None = None
    motion: WallMotion | None = None
    fallbacks: dict[str, int] = field(default_factory=dict)
    writes: Writes = Writes.STAGED
    overruled: bool = False

    @property
    def boundary(self) -> Boundary:
        """The boundary of the first owner."""
        return self.owners[0].boundary

    @property
    def boundaries(self) -> tuple[Boundary, ...]:
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
            blocked=self.blocked[mine],
            meeting=self.meeting[mine],
            given=self.given.only(mine),
            inward=tuple(InwardCells(at.cells[mine], at.blocked[mine]) for at in self.inward),
            per_link=self.per_link and self.per_link.only(self.links.of_cells(mine)),
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
        """The given values of each boundary."""
        return [[CellValue(n, v, 3) for n, v in one.values().items()] for one in self.boundaries]

    def rows(self, size: tuple[int, ...], t: float) -> NDArray[np.float64]:
        """`given.rows` at time t, in a box of `size` cells."""
        found = ([v.evaluate(size, t).values() for v in values] for values in self._values)
        rows = np.array([[n for each in of for n in each] or [0.0] for of in found], np.float64)
        if not self.given.of_cells:
            return rows
        rows = rows[self.member]
        for column, values in self.given.of_cells.items():
            rows[:, column] = np.where(np.isnan(values), rows[:, column], values)
        return rows


def entry_lists(case, slab, fluid: FluidPlane, ownership: Ownership) -> tuple[EntryList, ...]:
    """Return the entries of a slab, one list per boundary structure, in the order of the file.

    fluid: a function that returns where a local plane is fluid, see FluidPlane.
    """
    lists = [_entries(case, slab, fluid, ownership, owners) for owners in _groups(ownership.owners)]
    return _overruled_first(_with_motion(case, slab, lists, ownership), ownership)


def _entries(
    case, slab, fluid: FluidPlane, ownership: Ownership, owners: tuple[Owner, ...]
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
    row = np.arange(cells.size, dtype=np.int32) if varying else member
    links, blocked = ownership.supplied[mine], ownership.blocked(cells)
    data, per_link = None, boundary.capabilities.per_link
    if per_link:
        found = links_of(case, slab, fluid, cells, ownership.owner[mine], links, blocked)
        data = link_data(case, slab, per_link, owners, found, case.layout.listed)
        fallbacks |= data.fallbacks
    each = EntryList(
        structure=boundary.structure(),
        owners=owners,
        cells=cells,
        member=member,
        links=links,
        blocked=blocked,
        meeting=ownership.meeting[mine],
        given=GivenValues(np.empty(0), row, varying),
        inward=tuple(InwardCells(there, ownership.blocked(there)) for there in inward),
        per_link=data,
        fallbacks=fallbacks,
    )
    return replace(each, given=replace(each.given, rows=each.rows(case.domain.size, 0)))


def _groups(owners: tuple[Owner, ...]) -> list[tuple[Owner, ...]]:
    """Group the owners by the structure of their boundaries."""
    groups: dict[str, list[Owner]] = {}
    for owner in owners:
        key = json.dumps(owner.boundary.structure(), sort_keys=True)
        groups.setdefault(key, []).append(owner)
    return [tuple(group) for group in groups.values()]


def _of_cells(
    case, slab, cells: Ints, owners: tuple[Owner, ...], member: NDArray[np.int32]
) -> dict[int, NDArray[np.float64]]:
    """Return the values of cells from files, {column: (n,)}; nan for entries without a file."""
    found: dict[int, NDArray[np.float64]] = {}
    for number, owner in enumerate(owners):
        for column, plane in enumerate(owner.boundary.values().values()):
            if isinstance(plane, Plane):
                mine = np.flatnonzero(member == number)
                values = found.setdefault(column, np.full(cells.size, np.nan))
                values[mine] = of_cells(plane, owner.boundary.where[0], case, slab, cells[mine])
    return found


def _inward(
    lattice, slab, fluid: FluidPlane, cells: Ints, boundary: Boundary
) -> tuple[list[Ints], dict[str, int]]:
    """Return the cells inwards along the normal for each step, and the number of replacements."""
    steps = boundary.capabilities.inward
    if not steps:
        return [], {}
    shape = (slab.planes, *slab.shape[1:])
    place = np.array(np.unravel_index(cells, shape)).reshape(3, -1)
    step = np.reshape(_steps(lattice, boundary), (3, 1))
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


def _steps(lattice, boundary: Boundary) -> tuple[int, int, int]:
    """(planes, rows, cells) from a cell to the next one along the normal; 2 planes if staggered."""
    plane, row, x = lattice.offset_of(boundary.normal(lattice.D))
    return lattice.volume * plane, lattice.volume * row, x


def _with_motion(case, slab, lists: list[EntryList], ownership: Ownership) -> list[EntryList]:
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


def planes_needed(case) -> tuple[int, int, int]:
    """Smallest number of planes of the first slab, of inner slabs and of the last slab.

    With these, the cells that boundaries read inwards of the first and last plane are local.
    """
    slowest, needed = "xyz"[case.dimensions - 1], {"-": case.ghost, "+": case.ghost}
    for boundary in one_face_each(case.boundaries):
        inward = boundary.capabilities.inward
        if inward and boundary.where[0][0] == slowest:
            side = boundary.where[0][1]
            planes = max(map(abs, _steps(case.lattice, boundary)))
            needed[side] = max(needed[side], min(1 + inward * planes, case.shape[0]))
    return needed["-"], case.ghost, needed["+"]


def require_planes(case, slab) -> None:
    """Raise CaseError if a boundary reads cells that its rank does not hold.

    Cells inwards of a face must belong to the same rank. Cells along links may also belong to the
    neighbouring rank.
    """
    _require_behind(case, slab)
    slowest = "xyz"[case.dimensions - 1]
    for boundary in one_face_each(case.boundaries):
        inward = boundary.capabilities.inward
        if not inward or boundary.where[0][0] != slowest:
            continue
        planes = max(map(abs, _steps(case.lattice, boundary)))
        needed = min(1 + inward * planes, case.shape[0])
        face = slab.begin == 0 if boundary.where[0][1] == "-" else slab.end == case.shape[0]
        if face and slab.planes < needed:
            raise CaseError(
                f"'{boundary.name}' at {boundary.where[0]} reads {counted(needed - 1, 'cell')} "
                f"inwards, and the rank there owns {counted(slab.planes, 'plane')} of "
                f"{case.shape[0]}; needed: {needed}; start at most "
                f"{counted(case.shape[0] // needed, 'rank')}",
                "boundary",
                case.path,
            )


def _require_behind(case, slab) -> None:
    """Raise CaseError if the smallest slab has fewer planes than a boundary reads along links."""
    everywhere = (*case.boundaries, *(body.boundary for body in case.bodies))
    for boundary in everywhere:
        planes, fewest = case.shape[0], case.shape[0] // slab.ranks
        behind = boundary.capabilities.planes_behind
        if fewest >= behind:
            continue
        fix = f"start at most {counted(planes // behind, 'rank')}"
        raise CaseError(
            f"'{boundary.name}' reads {counted(behind, 'cell')} behind its links, and a "
            f"rank owns {counted(fewest, 'plane')} of {planes}; needed: {behind}; "
            f"{fix if planes >= behind else 'enlarge the box along that axis'}",
            "boundary",
            case.path,
        )
