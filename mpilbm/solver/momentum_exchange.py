"""Forces on bodies: the momentum that their links take from the fluid in a step."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from mpilbm.codegen import wall_effects
from mpilbm.formulas.trees import numeric
from mpilbm.formulas.values import CellValue
from mpilbm.geometry.build import Geometry
from mpilbm.links.boundary_links import EntryList
from mpilbm.links.link_set import LinkSet, joined
from mpilbm.physics.boundaries import Boundary
from mpilbm.physics.lattices import AXES
from mpilbm.solver.boundary_lists import BoundaryLists
from mpilbm.solver.memory_plan import LINK_BYTES, SPLIT_BYTES, WALL_BYTES, list_bytes
from mpilbm.solver.populations import Populations

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class MomentumExchange:
    """The bodies of `case.weighed`, and the links that cross from fluid cells to them.

        F = sum over links of -c_i (f_i_in + f_opp_out) - u_wall (f_opp_out - f_i_in)

    over the step from t to t + 1, with the outgoing population f_opp_out at t and the incoming one
    f_i_in. The second term makes F the same in all uniformly moving frames. Where a boundary also
    changes populations that stream in, their change is part of F. The sums are of the populations
    minus their values at rest, so the pressure is relative to cs2 rho_0: for closed bodies this
    makes no difference.
    [Toelke & Krafczyk 2008, eqs. 10-11; Wen et al. 2014, J. Comput. Phys. 266, 161]

    If a case asks for the parts (`case.split`), each link represents a piece of the surface, with
    the outward normal times the area a_i = 2 w_i c_i / cs2: over all links that cross a plane they
    sum to its area. Then

        pressure = sum of -cs2 (rho - 1) a_i = sum of -c_i (feq_i(rho, 0) + feq_opp(rho, 0))
        stress   = sum of sigma a_i

    with rho and sigma of the link's cell in the middle of the step. The first is the momentum
    exchange in a fluid at rest, F - pressure the viscous part (method A of the source); the second
    is an integral over the surface (method B, with links instead of elements of the shape, so that
    the pressure of both is the same). [Toelke & Krafczyk 2008, section 6.2]

    A link that reaches a body through a mirror at a face is replaced by its mirror image, which
    reaches the body directly: so the force is that on the part of the body in the box.

    The bodies have separate lists here, which include links that a layout need not list, with a
    separate staging array: they do not change the step.
    """

    def __init__(self, fluid: Populations, step_lists: BoundaryLists, geometry: Geometry):
        self.fluid, case = fluid, fluid.case
        self.step_lists = step_lists
        self.bodies, self.D = case.weighed, fluid.lattice.D
        self.planes = fluid.slab.planes
        found = self._found(geometry.lists)
        lists = tuple(each.only(mine) for each, mine in found)
        walls = self._links(lists)
        needed = int(list_bytes(case, fluid.slab, lists, staged=True).sum())
        needed += LINK_BYTES * self._links_of_all
        needed += (SPLIT_BYTES * case.split + WALL_BYTES) * sum(each.cells.size for each in lists)
        fluid.device.require(needed, "the forces on bodies")
        self.exchanged = fluid.device.allocate(2 * self._links_of_all, "float64")
        self.lists = BoundaryLists(
            fluid, replace(geometry, lists=lists), chained=case.split, staged=True
        )
        self._more = {"walls": fluid.device.upload(walls.bits)} if len(walls) else {}
        if len(walls) and "slip" in wall_effects(case):
            self._more["slipped"] = self.lists.slipped(np.concatenate([e.cells for e in lists]))
        if case.split and self.lists.count:
            self.stress = fluid.device.allocate(self.lists.once * self.parts, "float64")
        self._mines = [mine for each, mine in found if each.boundary.state(fluid.lattice)]

    @property
    def parts(self) -> int:
        """Numbers of a cell: rho - 1 and the stresses."""
        return 1 + self.D * (self.D + 1) // 2

    def _found(self, lists: Sequence[EntryList]) -> list[tuple[EntryList, Ints]]:
        """Each list with the numbers of its entries that are needed.

        These are the entries of bodies; the entries of mirrors in the same cells, which determine
        the arriving populations; and with `split` all other entries in these cells.
        """
        found = [(each, each.of_bodies(self.bodies)) for each in lists]
        cells = np.concatenate([each.cells[mine] for each, mine in found])
        for k, each in enumerate(lists):
            if self.fluid.case.split or each.boundary.mirrors:
                found[k] = each, np.isin(each.cells, cells)
        return [(each, np.flatnonzero(mine)) for each, mine in found]

    def _links(self, lists: Sequence[EntryList]) -> LinkSet:
        """Set the data of the bodies' links on the host, in the order in which they are staged.

        place: (links, D), the point where each link leaves the body, half a link from its last
        node, or the cell in which an arriving population is changed; continuous where a body
        crosses a periodic face. wall: (links, D), the point where the kernel evaluates the wall
        velocity. Returns the links of the entries that cross a wall.
        """
        slab, lattice, size = self.fluid.slab, self.fluid.lattice, self.fluid.case.domain.size
        cells = np.concatenate([each.cells for each in lists])
        links, walls = joined([e.links for e in lists]), joined([e.own_walls for e in lists])
        entry, i = links.unpack()
        weighed = np.concatenate([each.of_bodies(self.bodies) for each in lists])[entry]
        body = np.concatenate([_bodies(each) for each in lists])
        self._links_of_all, self._mine = entry.size, weighed
        entry, i = entry[weighed], i[weighed]
        crosses = walls.contains(entry, i)[:, None]
        self.c = np.array(lattice.c, np.float64)[i]
        area = 2 / float(lattice.cs2) * np.array(lattice.w, np.float64)[i, None] * crosses
        self._area = area * self.c
        self._at = np.searchsorted(np.unique(cells), cells[entry])
        plane, row, k = np.unravel_index(cells[entry], (slab.planes, *slab.shape[1:]))
        x = lattice.x(plane + slab.begin, row, k)
        node = np.stack([x, plane + slab.begin] if self.D == 2 else [x, row, plane + slab.begin], 1)
        c = np.array(lattice.c, np.float64)[walls.lowest_direction()[entry]]
        c = np.where(crosses, self.c, c)
        there = np.where(self.fluid.case.domain.periodic, (node - c) % np.array(size), node - c)
        self.place = there + 0.5 + np.where(crosses, c / 2, c)
        self._mirror = np.where(crosses & ((there < 0) | (there >= np.array(size))), -1.0, 1.0)
        q = np.concatenate([_to_the_wall(each) for each in lists])
        self.wall = node + 0.5 - q[self._mine, None] * self.c
        self.body = body[entry]
        self._group = np.searchsorted(self.bodies, self.body) * slab.planes + plane
        return walls

    def sample(self) -> Floats:
        """Sums over the links in each plane of the slab, float64 (planes, bodies, columns).

        The columns: F (D) and torque about the origin (3, in 2D 1) in the next step; with `split`
        also pressure (D) and stress (D).
        """
        both, less = self._exchanged()
        force = -self.c * both[:, None]
        for body in self.bodies:
            boundary = self.fluid.case.bodies[body].boundary
            if any(f"velocity_{axis}" in boundary.values() for axis in AXES):
                on = np.flatnonzero(self.body == body)
                force[on] -= self._velocity(boundary, self.wall[on]) * less[on, None]
        force *= self._mirror
        torque = np.cross(self.place, force) if self.D == 3 else (
            self.place[:, :1] * force[:, 1:] - self.place[:, 1:] * force[:, :1])  # fmt: skip
        parts = self._parts() if self.fluid.case.split else []
        groups = len(self.bodies) * self.planes
        columns = [np.bincount(self._group, column, groups)
                   for column in np.concatenate([force, torque, *parts], axis=1).T]  # fmt: skip
        sums = np.asarray(np.stack(columns, axis=-1), np.float64)
        sums = sums.reshape(len(self.bodies), self.planes, -1)
        return self.fluid.lattice.volume * sums.transpose(1, 0, 2)

    def _exchanged(self) -> Floats:
        """f_i_in + f_opp_out and f_opp_out - f_i_in of all links, (2, links)."""
        fluid, lists = self.fluid, self.lists
        if lists.count:
            kept = zip(self.step_lists.states, lists.states, self._mines, strict=True)
            for state, own, mine in kept:
                own.write(state.read()[mine])
            arrays = lists.stage() | {"exchanged": self.exchanged} | self._more
            launch = fluid.bind(f"exchanged_{fluid.steps % fluid.layout.parities}", **arrays)
            launch(lists.stream, 0, lists.count)
            if fluid.case.split:
                name = f"stress_{fluid.steps % fluid.layout.parities}"
                lists.over_cells(name, arrays | {"stress": self.stress})
        return fluid.device.download(self.exchanged).reshape(-1, 2)[self._mine].T

    def _parts(self) -> list[Floats]:
        """Pressure and stress force of each link, (links, D) each; call after `_exchanged`."""
        if not self.lists.count:
            return [self.c, self.c]  # no links
        values = self.fluid.device.download(self.stress).reshape(-1, self.parts)[self._at]
        stress = np.zeros((self.D, self.D, len(values)))
        for k, (a, b) in enumerate(combinations_with_replacement(range(self.D), 2), 1):
            stress[a, b] = stress[b, a] = values[:, k]
        pressure = float(self.fluid.lattice.cs2) * values[:, :1]
        stress = np.einsum("abn,nb->na", stress, self._area)
        return [-pressure * self._area * self._mirror, stress * self._mirror]

    def _velocity(self, boundary: Boundary, place: Floats) -> Floats:
        """The wall's velocity at places (n, D) when the incoming populations cross it."""
        velocity, size = boundary.values(), self.fluid.case.domain.size
        t = self.fluid.steps + (0.5 if boundary.wall_at == "half" else 1)
        at = dict(zip(AXES, place.T, strict=False))
        found = np.zeros_like(place)
        for k, axis in enumerate(AXES[: self.D]):
            value = CellValue("u", velocity[f"velocity_{axis}"], self.D)
            found[:, k] = numeric(value.tree, value.evaluate(size, t) | at)
        return found


def _bodies(entries: EntryList) -> Ints:
    """The body of each entry; arbitrary for entries of faces, which are not selected."""
    numbers = [0 if owner.body is None else owner.body for owner in entries.owners]
    return np.array(numbers, np.int64)[entries.member]


def _to_the_wall(entries: EntryList) -> Floats:
    """The distance from the cell to the wall along each link of a list, in links."""
    if entries.per_link and entries.per_link.distance is not None:
        return entries.per_link.distance
    at = 0.5 if entries.boundary.wall_at == "half" else 0.0
    return np.full(entries.links.total(), at)
