"""Entries of boundaries, a list for each kernel: the cells, and what else the kernel must know."""

import json
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mpilbm.errors import CaseError
from mpilbm.formulas.values import CellValue, Plane, of_cells
from mpilbm.links.mirrors import overruled
from mpilbm.links.moving_walls import MovingLinks, with_moving
from mpilbm.links.wall_distance import link_values, links_of, mirrored
from mpilbm.physics.boundaries import one_face_each
from mpilbm.units import counted


@dataclass(frozen=True)
class EntryList:
    """The cells that boundaries of one structure act on; one kernel handles them all.

    cells: int64 (n,), (plane * rows + row) * nx + x, plane local, ascending; a cell has one entry
    for each boundary that it touches, in the order of the file. missing: uint32 (n,), bit i set
    if this entry supplies the population entering along c_i. value: int32 (n,), row of values;
    values: float64 (m, V), a row per face or body (`members`) at t = 0, a column for each number
    that the kernel reads (one of zeros if there are none); where `fields` has values of each cell
    for a column, a row per entry. member: int32 (n,), whose entry it is. owners: the places of the
    members in `one_face_each` of the [[boundary]]s or, counted on, among the bodies.

    blocked: uint32 (n,), bit i set if nothing streams into the cell along c_i, nor comes from a
    mirror, bit 0 as in `_meeting`. inward: for k = 1 to the boundary's reach, the k-th cells
    inwards, int64 (n,), with their blocked, those that are no fluid replaced by the nearest before
    them. links: float64, the number of each link, where the boundary asks for one. behind: for
    k = 1, 2 where it asks for them, the cells x + k c_i of each link, which may be of ghost planes.
    mirrored: where the layout lists cells and the links have mirrors, see link_values.mirrored.
    moved: if walls move, int32 (n,), the row that each cell has in what `moving` knows of their
    motion, and then of the cells inwards; none where the boundary is such a wall itself.
    fell_back: how often for each of the boundary's `fallbacks`. ending: of the name of the kernel
    that handles the list: see at_once. overruled: staged but not taken in, see slipping_links.
    """

    structure: dict
    members: tuple
    owners: tuple[int, ...]
    cells: np.ndarray
    missing: np.ndarray
    value: np.ndarray
    values: np.ndarray
    blocked: np.ndarray
    member: np.ndarray
    fields: dict[int, np.ndarray]
    inward: tuple[tuple[np.ndarray, np.ndarray], ...] = ()
    fell_back: tuple[int, ...] = (0,)
    links: np.ndarray | None = None
    behind: tuple[np.ndarray, ...] = ()
    mirrored: tuple[np.ndarray, ...] = ()
    moved: tuple[np.ndarray, ...] = ()
    moving: MovingLinks | None = None
    ending: str = ""
    overruled: bool = False

    @property
    def boundary(self):
        """One of the members."""
        return self.members[0]

    def only(self, mine) -> "EntryList":
        """Some of the entries, by their numbers."""
        return replace(
            self,
            cells=self.cells[mine],
            missing=self.missing[mine],
            value=np.arange(mine.size, dtype=np.int32) if self.fields else self.value[mine],
            values=self.values[mine] if self.fields else self.values,
            blocked=self.blocked[mine],
            member=self.member[mine],
            fields={column: values[mine] for column, values in self.fields.items()},
            links=self._of_links(self.links, mine),
            behind=tuple(self._of_links(cells, mine) for cells in self.behind),
            mirrored=tuple(self._of_links(each, mine) for each in self.mirrored),
            inward=tuple((there[mine], links[mine]) for there, links in self.inward),
            moved=tuple(rows[mine] for rows in self.moved),
        )

    def _of_links(self, values, mine):
        """Values of all links -> those of the links of some entries."""
        if values is None:
            return None
        bits = np.unpackbits(self.missing.view(np.uint8)).reshape(-1, 32).sum(axis=1, dtype=int)
        return values[np.isin(np.repeat(np.arange(bits.size), bits), mine)]

    @property
    def replaced(self) -> int:
        """How often the boundary takes something else than it asks for."""
        return sum(self.fell_back)

    @cached_property
    def _given(self) -> list[list[CellValue]]:
        """What is given to each member."""
        return [[CellValue(n, v, 3) for n, v in each.values().items()] for each in self.members]

    def rows(self, size, t: float) -> np.ndarray:
        """`values` at time t, in a box of `size` cells."""
        found = ([v.evaluate(size, t).values() for v in values] for values in self._given)
        rows = np.array([[n for each in of for n in each] or [0.0] for of in found], np.float64)
        if not self.fields:
            return rows
        rows = rows[self.member]
        for column, values in self.fields.items():
            rows[:, column] = np.where(np.isnan(values), rows[:, column], values)
        return rows


def entry_lists(case, slab, ids, cells, owner, missing) -> tuple[EntryList, ...]:
    """Sort the entries by the structure of their boundary, in the order of the file.

    ids: (planes + 2, rows, nx), see solids.padded_ids; cells, owner, missing: sorted by cell, then
    owner.
    """
    owners = (*one_face_each(case.boundaries), *(body.boundary for body in case.bodies))
    hard = ~np.array([each.slips for each in owners], bool)[owner]
    blocked, solid = _Blocked(cells[hard], missing[hard]), ids[1:-1]
    missing = _completed(case.lattice, owners, cells, owner, missing, blocked)
    meeting = _meeting(owners, cells, owner)
    lists = []
    for members in _groups(owners):
        boundary = owners[members[0]]
        row_of = np.full(len(owners), -1, np.int32)
        row_of[members] = np.arange(len(members))
        mine = np.flatnonzero(row_of[owner] >= 0)
        inward, replaced = _inward(case.lattice, solid, cells[mine], boundary)
        of, member = tuple(owners[m] for m in members), row_of[owner[mine]]
        fields = _fields(case, slab, cells[mine], of, member)
        each = EntryList(
            boundary.structure(),
            of,
            tuple(members),
            cells[mine],
            missing[mine],
            np.arange(mine.size, dtype=np.int32) if fields else member,
            np.empty(0),
            blocked.of(cells[mine]) | np.isin(cells[mine], meeting),
            member,
            fields,
            tuple((there, blocked.of(there)) for there in inward),
            (replaced,),
        )
        if boundary.per_link:
            body = owner[mine] - (len(owners) - len(case.bodies))
            each = _with_links(case, slab, ids, each, body)
        lists.append(replace(each, values=each.rows(case.domain.size, 0)))
    lists = with_moving(case, slab, owners, lists, cells, owner, missing)
    return overruled(lists, owners)


def _meeting(owners, cells, owner) -> np.ndarray:
    """The cells in which faces meet that set values there, or one and what sets whole cells."""
    on_site = [(each.oriented and each.wall_at == "node") or each.whole for each in owners]
    found, count = np.unique(cells[np.array(on_site, bool)[owner]], return_counts=True)
    return found[count > 1]


def _with_links(case, slab, ids, entries: EntryList, body) -> EntryList:
    """A list with what its boundary must know of each link; body: (n,), that of each entry."""
    around = entries.cells, body, entries.missing, entries.blocked
    links, boundary = links_of(case, slab, ids, *around), entries.boundary
    found, fell_back = link_values(case, boundary, links)
    behind = tuple(links.along(k)[0] for k in range(1, 1 + boundary.behind))
    mirror = boundary.per_link == "mirror" and case.layout.listed
    sources = mirrored(case, slab, links, found) if mirror else ()
    more = {"links": found, "fell_back": fell_back, "behind": behind, "mirrored": sources}
    return replace(entries, **more)


def _groups(owners) -> list[list[int]]:
    """The places of boundaries of one structure, a list each."""
    groups: dict[str, list[int]] = {}
    for index, boundary in enumerate(owners):
        groups.setdefault(json.dumps(boundary.structure(), sort_keys=True), []).append(index)
    return list(groups.values())


def _fields(case, slab, cells, members, member) -> dict[int, np.ndarray]:
    """By column the values (n,) of each cell, from planes of the members; nan for all others."""
    found = {}
    for number, boundary in enumerate(members):
        for column, plane in enumerate(boundary.values().values()):
            if isinstance(plane, Plane):
                mine = np.flatnonzero(member == number)
                values = found.setdefault(column, np.full(cells.size, np.nan))
                values[mine] = of_cells(plane, boundary.where[0], case, slab, cells[mine])
    return found


class _Blocked:
    """All links of cells along which nothing streams in."""

    def __init__(self, cells, missing):
        self.cells, first = np.unique(cells, return_index=True)
        self.links = np.bitwise_or.reduceat(missing, first) if cells.size else missing

    def of(self, cells) -> np.ndarray:
        """uint32 (n,) of any cells, 0 where everything streams in."""
        if not self.cells.size:
            return np.zeros(cells.size, np.uint32)
        place = np.minimum(np.searchsorted(self.cells, cells), self.cells.size - 1)
        return np.where(self.cells[place] == cells, self.links[place], np.uint32(0))


def _completed(lattice, owners, cells, owner, missing, blocked):
    """With all that streams in added to the last entry of each cell that sets the whole of it."""
    whole = np.flatnonzero(np.array([each.whole for each in owners], bool)[owner])
    last = whole[np.append(cells[whole][1:] != cells[whole][:-1], True)[: whole.size]]
    missing = missing.copy()
    missing[last] |= ~blocked.of(cells[last]) & np.uint32(2**lattice.Q - 1)
    return missing


def _inward(lattice, solid, cells, boundary) -> tuple[list[np.ndarray], int]:
    """The cells inwards of others along the boundary's normal, and how many had to be replaced."""
    if not boundary.reach:
        return [], 0
    place = np.array(np.unravel_index(cells, solid.shape)).reshape(3, -1)
    step = np.reshape(_steps(lattice, boundary), (3, 1))
    found, before, replaced = [], cells, 0
    for k in range(1, boundary.reach + 1):
        there = place + k * step
        inside = (there >= 0).all(axis=0) & (there < np.reshape(solid.shape, (3, 1))).all(axis=0)
        there = np.ravel_multi_index(np.where(inside, there, place), solid.shape)
        fluid = inside & (solid.reshape(-1)[there] == 0)
        before = np.where(fluid, there, before)
        replaced += int(np.count_nonzero(~fluid))
        found.append(before)
    return found, replaced


def _steps(lattice, boundary) -> tuple[int, int, int]:
    """Planes, rows and cells of a row to the next cell along the normal: two where staggered."""
    plane, row, x = lattice.offset_of(boundary.normal(lattice.D))
    return lattice.volume * plane, lattice.volume * row, x


def planes_needed(case) -> tuple[int, int, int]:
    """Planes that the first slab, those between, and the last need for what boundaries read."""
    slowest, needed = "xyz"[case.dimensions - 1], {"-": case.ghost, "+": case.ghost}
    for boundary in one_face_each(case.boundaries):
        axis, side = boundary.where[0]
        if boundary.reach and axis == slowest:
            planes = max(map(abs, _steps(case.lattice, boundary)))
            needed[side] = max(needed[side], min(1 + boundary.reach * planes, case.shape[0]))
    return needed["-"], case.ghost, needed["+"]


def require_planes(case, slab) -> None:
    """CaseError where a boundary looks further than the slabs reach.

    Inwards of a face it looks into its own rank's planes alone, along links also into the next
    rank's, but no further.
    """
    _require_behind(case, slab)
    slowest = "xyz"[case.dimensions - 1]
    for boundary in one_face_each(case.boundaries):
        if not boundary.reach or boundary.where[0][0] != slowest:
            continue
        planes = max(map(abs, _steps(case.lattice, boundary)))
        needed = min(1 + boundary.reach * planes, case.shape[0])
        face = slab.begin == 0 if boundary.where[0][1] == "-" else slab.end == case.shape[0]
        if face and slab.planes < needed:
            raise CaseError(
                f"'{boundary.name}' at {boundary.where[0]} looks {counted(needed - 1, 'cell')} "
                f"inwards, and the rank there owns {counted(slab.planes, 'plane')} of "
                f"{case.shape[0]}; needed: {needed}; start at most "
                f"{counted(case.shape[0] // needed, 'rank')}",
                "boundary",
                case.path,
            )


def _require_behind(case, slab) -> None:
    """CaseError where the smallest slab has fewer planes than a boundary looks behind its links."""
    everywhere = (*case.boundaries, *(body.boundary for body in case.bodies))
    for boundary in everywhere:
        planes, fewest = case.shape[0], case.shape[0] // slab.ranks
        if fewest >= boundary.behind:
            continue
        mend = f"start at most {counted(planes // boundary.behind, 'rank')}"
        raise CaseError(
            f"'{boundary.name}' looks {counted(boundary.behind, 'cell')} behind its links, and a "
            f"rank owns {counted(fewest, 'plane')} of {planes}; needed: {boundary.behind}; "
            f"{mend if planes >= boundary.behind else 'enlarge the box along that axis'}",
            "boundary",
            case.path,
        )
