"""The share of a pressure jump in the forces on bodies that its faces cut."""

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np

from mpilbm.core.formulas.trees import numeric
from mpilbm.core.formulas.values import CellValue
from mpilbm.model.case import Case
from mpilbm.parallel.slabs import Slab, split
from mpilbm.physics.lattices import AXES
from mpilbm.solids import Flags, Floats, Ints
from mpilbm.solids.body_links import BodyLinks
from mpilbm.solids.build import Geometry
from mpilbm.solids.entry_list import EntryList
from mpilbm.solids.solid_cells import coordinates, padded_ids
from mpilbm.solids.wall_distance import fluid_at

ENTRIES = 2**16  # whose links are examined at a time
PLANES = 8  # that are examined at a time


class CutLinks(NamedTuple):
    """m links whose populations have another density in the coordinates of their body.

    entry  int64 (m,), the number of the entry among all measured ones; -1 for a half that a solid
           cell adds
    plane  int64 (m,), the plane of the slab
    body   int64 (m,), the number of the body in `case.needs.weighed`
    wall   float64 (m, D), the middle of the link, beside its cell in the box
    each   float64 (m, columns), the share in the sums for rho_jump = 1
    """

    entry: Ints
    plane: Ints
    body: Ints
    wall: Floats
    each: Floats


class JumpForces:
    """The share of a `pressure_jump` in the sums over the links of bodies.

    The density of the unfolded flow is rho(x + k n) = rho(x) - k rho_jump, where n is the number of
    cells between the faces. A link of a body ends at the wall point y in the coordinates of the
    body, in which the body is in one piece (see case/case.py), and at y - k n beside its
    cell in the box. With populations f of the box, f - k feq(rho_jump, 0) are those of the unfolded
    flow, and the force of the link is larger than that of f by

        2 k c_i feq_i(rho_jump, 0)

    Other bodies, such as masks, have the coordinates of the box: k = 1 for links that come from
    beyond the lower face, -1 for those from beyond the upper face, otherwise 0. To join their parts
    at the face, links between solid cells across the face, in both directions, add half of this
    force. But plates and pipes along the flow have no ends: solid cells in columns that belong to
    the body from face to face leave out their half of all links across the face. So the force does
    not depend on the position of the faces. The forces on all bodies add up to cs2 rho_jump times
    the area of the face, without these columns, in a steady flow between periodic faces.

    groups    int64 (groups, 2), plane and number of the body, see Chunks; with those of bodies that
              have no entry in a plane of the jump
    """

    def __init__(self, case: Case, slab: Slab, geometry: Geometry, links: BodyLinks, columns: int):
        """columns: the number of sums, see MomentumExchange.start."""
        (jump,) = (boundary for boundary in case.boundaries if boundary.joins_faces)
        (value,) = jump.values().values()
        self._value = CellValue("rho_jump", value, case.dimensions)
        self._size, self._bodies = case.domain.size, len(case.needs.weighed)
        finder = _Finder(case, slab, geometry, "xyz".index(jump.where[0][0]))
        solids = [*finder.at_ends()]
        more = (np.stack([each.plane, each.body], 1) for each in solids)
        self.groups = np.unique(np.concatenate([links.chunks.group, *more]), axis=0)
        measured = tuple(each.entries for each in links.measured)
        entries = sum(each.cells.size for each in measured) * case.needs.by_cell
        self._shape = len(self.groups), entries, columns
        self._unit = self._zeros()  # for rho_jump = 1, if it is equal everywhere
        self._kept: list[CutLinks] = []  # otherwise
        for each in chain(finder.of_entries(measured), solids):
            if self._value.coordinates:
                self._kept.append(each)
            else:
                self._add(self._unit, each, each.each)

    @classmethod
    def find(
        cls, case: Case, slab: Slab, geometry: Geometry, links: BodyLinks, columns: int
    ) -> "JumpForces | None":
        """The share of the jump of a case, None without a jump."""
        jumps = any(boundary.joins_faces for boundary in case.boundaries)
        return cls(case, slab, geometry, links, columns) if jumps else None

    def _zeros(self) -> "Shares":
        groups, entries, columns = self._shape
        return Shares(np.zeros((groups, columns)), np.zeros((entries, columns)))

    def _add(self, shares: "Shares", links: "CutLinks", values: Floats) -> None:
        known = self.groups[:, 0] * self._bodies + self.groups[:, 1]
        group = np.searchsorted(known, links.plane * self._bodies + links.body)
        np.add.at(shares.groups, group, values)
        if len(shares.entries):
            mine = links.entry >= 0
            np.add.at(shares.entries, links.entry[mine], values[mine])

    def at(self, t: float) -> "Shares":
        """The shares at time t."""
        if not self._value.coordinates:
            (jump,) = self.rho_jump(np.zeros((1, len(self._size))), t)
            return Shares(*(jump * each for each in self._unit))
        found = self._zeros()
        for links in self._kept:
            self._add(found, links, links.each * self.rho_jump(links.wall, t)[:, None])
        return found

    def rho_jump(self, places: Floats, t: float) -> Floats:
        """The jump at places (m, D) of the box at time t, (m,)."""
        known = dict(zip(AXES, places.T, strict=False))
        numbers = self._value.evaluate(self._size, t)
        found = np.asarray(numeric(self._value.tree, known | numbers), float)
        return np.broadcast_to(found, len(places))


class Shares(NamedTuple):
    """The shares of a jump in sums over links.

    groups   float64 (groups, columns)
    entries  float64 (entries, columns), without the halves of solid cells; only with `by_cell`
    """

    groups: Floats
    entries: Floats


class _Finder:
    """Finds the links of a slab that a jump along `axis` concerns."""

    def __init__(self, case: Case, slab: Slab, geometry: Geometry, axis: int):
        self.case, self.slab, self.geometry, self.axis = case, slab, geometry, axis
        lattice, D = case.lattice, case.dimensions
        self.c = np.array([[int(v) for v in c] for c in lattice.c])
        still = [0] * D
        feq = case.fluids[0].collision.feq(lattice, 1, 1, still)
        self.feq = np.array([float(f) for f in feq])[:, None] * self.c
        self.pressure = np.array([float(w) for w in lattice.w])[:, None] * self.c
        self.size = np.array(case.domain.size)
        self.wraps = np.array(case.domain.periodic)

    def of_entries(self, measured: tuple[EntryList, ...]) -> Iterator[CutLinks]:
        """The links between fluid and bodies."""
        begin = 0
        for each in measured:
            bodies = np.array([-1 if o.body is None else o.body for o in each.owners])
            walls = (each.links & (each.blocked | each.cut)).moving()
            for first in range(0, each.cells.size, ENTRIES):
                entry, i = walls[first : first + ENTRIES].unpack()
                entry = entry + first
                body = bodies[each.member[entry]]
                yield self._links(entry + begin, each.cells[entry], body, i)
            begin += each.cells.size

    def _links(
        self, entry: Ints, cells: Ints, body: Ints, i: Ints, part: Floats | None = None
    ) -> CutLinks:
        """Links along c_i of these cells with k != 0; `part`: the part of each that counts."""
        at, c = coordinates(self.case, self.slab, cells).T, self.c[i]
        wall = at + (1 - c) / 2
        own = self._in_body(np.where(self.wraps & (c != 0), wall % self.size, wall), c, body)
        k = np.rint((own - wall)[:, self.axis] / self.size[self.axis])
        mine = np.flatnonzero(k)
        k = (k if part is None else k * part)[mine, None]
        body, own, i = body[mine], own[mine], i[mine]
        force = 2 * k * self.feq[i]
        each = [force, _turning(own, force)]
        if self.case.needs.split:
            each += [2 * k * self.pressure[i], np.zeros((mine.size, self.case.dimensions))]
        number = np.searchsorted(self.case.needs.weighed, body)
        plane = cells[mine] // (self.slab.shape[1] * self.slab.shape[2])
        return CutLinks(entry[mine], plane, number, wall[mine], np.concatenate(each, axis=1))

    def _in_body(self, wall: Floats, c: Ints, body: Ints) -> Floats:
        """Places of the box in the coordinates of bodies; faces are those behind the links."""
        behind = self.wraps & (c > 0) & (wall == 0)
        wall = np.where(behind, self.size, wall)
        frames = np.array(self.case.frames).reshape(-1, self.case.dimensions, 2)[body]
        seam, moved = frames[..., 0], frames[..., 1]
        return wall + np.where(wall < seam, self.size, 0) + moved

    def at_ends(self) -> Iterator[CutLinks]:
        """The halves of links that the solid cells next to the faces add or leave out."""
        for number in self.case.needs.weighed:
            if any(self.case.frames[number][self.axis]):
                continue
            cells = self._at_faces(number + 1)
            if not cells.size:
                continue
            at = coordinates(self.case, self.slab, cells).T
            through = self._through(number + 1, cells)
            for i in np.flatnonzero(self.c[:, self.axis]):
                face = 0 if self.c[i, self.axis] > 0 else self.size[self.axis] - 1
                there = at - self.c[i]
                inside = ((there >= 0) & (there < self.size)) | self.wraps
                mine = np.flatnonzero((at[:, self.axis] == face) & inside.all(axis=1))
                fluid = self._fluid(there[mine])
                mine, fluid = (each[fluid == through[mine]] for each in (mine, fluid))
                none, body, link = (np.full(mine.size, value) for value in (-1, number, i))
                parts = np.where(fluid, -0.5, 0.5)
                yield self._links(none, cells[mine], body, link, parts)

    def _at_faces(self, solid: int) -> Ints:
        """The cells of a body next to both faces, in order."""
        ids, array_axis = self.geometry.solid, (2, 1, 0)[self.axis]
        if self.axis == self.case.dimensions - 1:
            planes = np.array([0, self.case.shape[0] - 1]) - self.slab.begin
            ends = planes[(planes >= 0) & (planes < self.slab.planes)]
            array_axis = 0
        else:
            ends = np.array([0, ids.shape[array_axis] - 1])
        ends = np.unique(ends)
        places = list(np.nonzero(np.take(ids, ends, axis=array_axis) == solid))
        places[array_axis] = ends[places[array_axis]]
        return np.sort(np.ravel_multi_index(places, ids.shape))

    def _fluid(self, at: Ints) -> Flags:
        """Whether nodes are fluid, in planes of the slab and next to it, also beyond the faces."""
        row = at[:, 1] % self.size[1] if self.case.dimensions == 3 else 0
        number = row * self.slab.shape[2] + at[:, 0] % self.size[0] // self.case.lattice.volume
        return fluid_at(self.geometry.fluid, at[:, -1] - self.slab.begin, number)

    def _through(self, solid: int, cells: Ints) -> Flags:
        """Whether the columns of cells along the axis of the jump are of this body alone."""
        mine = self.geometry.solid == solid
        if self.axis < self.case.dimensions - 1:
            columns = mine.all(axis=2 - self.axis, keepdims=True)
        else:
            columns = self._across_planes(solid)[None]
        return np.broadcast_to(columns, mine.shape).reshape(-1)[cells]

    def _across_planes(self, solid: int) -> Flags:
        """Bool (rows, nx): whether the cells of all planes of the box are of a body."""
        case = self.case
        found = np.ones(case.shape[1:], bool)
        count = -(-case.shape[0] // PLANES)
        for piece in split(case.shape, count, case.domain.periodic[-1]):
            if found.any():
                found &= (padded_ids(case, piece)[1:-1] == solid).all(axis=0)
        return found


def _turning(at: Floats, force: Floats) -> Floats:
    """The torques about the origin, (m, 3), in 2D (m, 1)."""
    if force.shape[1] == 3:
        return np.cross(at, force)
    return (at[:, 0] * force[:, 1] - at[:, 1] * force[:, 0])[:, None]
