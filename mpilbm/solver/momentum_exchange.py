"""Forces on bodies: the momentum that their links take from the fluid in a step."""

from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np

from mpilbm.codegen import beside
from mpilbm.formulas.parser import numeric
from mpilbm.formulas.values import CellValue
from mpilbm.physics.boundaries import one_face_each
from mpilbm.physics.lattices import AXES
from mpilbm.solver.boundary_lists import Lists
from mpilbm.solver.memory_plan import LINK_BYTES, SPLIT_BYTES, WALL_BYTES, list_bytes


class MomentumExchange:
    """The bodies of `case.weighed`, and what crosses the links from the fluid cells beside them.

        F = sum over links of -c_i (f_i_in + f_opp_out) - u_wall (f_opp_out - f_i_in)

    over the step from t to t + 1, where f_opp left the cell at t and f_i enters it. The second
    part makes it the same in all uniformly moving frames. Where a boundary changes what streams in,
    too, so much comes in besides. Populations count from their values at
    rest, so the pressure is that above cs2 rho_0: on closed bodies this makes no difference.
    [Toelke & Krafczyk 2008, eqs. 10-11; Wen et al. 2014, J. Comput. Phys. 266, 161]

    Where a case asks for the parts (`case.split`), each link stands for a piece of the surface, out
    of the body a_i = 2 w_i c_i / cs2: over all links that cross a plane they sum to its area. Then

        pressure = sum of -cs2 (rho - 1) a_i = sum of -c_i (feq_i(rho, 0) + feq_opp(rho, 0))
        stress   = sum of sigma a_i

    with rho and sigma of the link's cell in the middle of the step. The first is what momentum
    exchange finds in a fluid at rest, F - pressure the viscous part (method A of the source); the
    second is an integral over the surface (method B, with links for elements of the shape, so that
    the pressure of both is the same). [Toelke & Krafczyk 2008, section 6.2]

    A link that a face which slips turns towards a body counts as its mirror image, which meets the
    body itself: so the force is that on the part of the body in the box.

    Bodies have lists of their own here, with the links also that a layout has no need to list, and
    stage what enters in arrays of their own: the step finds nothing changed.
    """

    def __init__(self, solver, geometry):
        self.solver, case = solver, solver.case
        self.bodies, self.D = case.weighed, solver.lattice.D
        self.planes = solver.slab.planes
        self._after = len(one_face_each(case.boundaries))
        found = self._found(geometry.lists)
        lists = tuple(each.only(mine) for each, mine in found)
        walls = self._links(lists)
        needed = int(list_bytes(case, solver.slab, lists, staged=True).sum())
        needed += LINK_BYTES * self._links_of_all
        needed += (SPLIT_BYTES * case.split + WALL_BYTES) * sum(each.cells.size for each in lists)
        solver.device.require(needed, "the forces on bodies")
        self.exchanged = solver.device.allocate(2 * self._links_of_all, "float64")
        self.lists = Lists(solver, replace(geometry, lists=lists), chained=case.split, staged=True)
        self._more = {"walls": solver.device.upload(walls)} if walls.size else {}
        if walls.size and "slip" in beside(case):
            self._more["slipped"] = self.lists.slipped(np.concatenate([e.cells for e in lists]))
        if case.split and self.lists.count:
            self.stress = solver.device.allocate(self.lists.once * self.parts, "float64")
        self._mines = [mine for each, mine in found if each.boundary.state(solver.lattice)]

    @property
    def parts(self) -> int:
        """Numbers of a cell: rho - 1 and the stresses."""
        return 1 + self.D * (self.D + 1) // 2

    def _found(self, lists) -> list:
        """Each list with those of its entries that are of bodies; also, to know what streams into
        a cell, those of faces that slip in the same cells, and to know all of it, of any others."""
        found = [(each, np.isin(self._body(each), self.bodies)) for each in lists]
        cells = np.concatenate([each.cells[mine] for each, mine in found])
        for k, each in enumerate(lists):
            if self.solver.case.split or each.boundary.slips:
                found[k] = each, np.isin(each.cells, cells)
        return [(each, np.flatnonzero(mine)) for each, mine in found]

    def _body(self, entries) -> np.ndarray:
        """Number of each entry's body; negative where it is of a face."""
        return np.array(entries.owners, np.int64)[entries.member] - self._after

    def _links(self, lists) -> np.ndarray:
        """What the host must know of the bodies' links, in the order in which they are staged.

        place: (links, D), where they leave the body, half a link from its last node, or the cell
        where what streams in is changed; it does not jump where a body reaches a periodic face.
        wall: (links, D), where the body's boundary has its velocity, as its kernel takes it.
        Returns, bit by bit, which links of the entries cross a wall.
        """
        slab, lattice, size = self.solver.slab, self.solver.lattice, self.solver.case.domain.size
        cells = np.concatenate([each.cells for each in lists])
        missing = np.concatenate([each.missing for each in lists])
        body = np.concatenate([self._body(each) for each in lists])
        bits = np.unpackbits(missing.view(np.uint8), bitorder="little").reshape(-1, 32)
        entry, i = np.nonzero(bits)
        self._links_of_all, self._mine = entry.size, np.isin(body[entry], self.bodies)
        entry, i = entry[self._mine], i[self._mine]
        walls = missing & np.concatenate([each.blocked for each in lists]) & ~np.uint32(1)
        crossing = np.unpackbits(walls.view(np.uint8), bitorder="little").reshape(-1, 32)
        crosses = crossing[entry, i][:, None] > 0
        self.c = np.array(lattice.c, np.float64)[i]
        area = 2 / float(lattice.cs2) * np.array(lattice.w, np.float64)[i, None] * crosses
        self._area = area * self.c
        self._at = np.searchsorted(np.unique(cells), cells[entry])
        plane, row, k = np.unravel_index(cells[entry], (slab.planes, *slab.shape[1:]))
        x = lattice.x(plane + slab.begin, row, k)
        node = np.stack([x, plane + slab.begin] if self.D == 2 else [x, row, plane + slab.begin], 1)
        c = np.array(lattice.c, np.float64)[crossing.argmax(axis=1)[entry]]
        c = np.where(crosses, self.c, c)
        there = np.where(self.solver.case.domain.periodic, (node - c) % np.array(size), node - c)
        self.place = there + 0.5 + np.where(crosses, c / 2, c)
        self._mirror = np.where(crosses & ((there < 0) | (there >= np.array(size))), -1.0, 1.0)
        q = np.concatenate([_to_the_wall(each) for each in lists])
        self.wall = node + 0.5 - q[self._mine, None] * self.c
        self.body = body[entry]
        self._group = np.searchsorted(self.bodies, self.body) * slab.planes + plane
        return walls

    def sample(self) -> np.ndarray:
        """F (D) and torque about the origin (3, in 2D 1) in the step to come.

        And, where a case asks for them, pressure (D) and stress (D). Sums over the links in each
        plane of the slab, (planes, bodies, columns), in double.
        """
        both, less = self._exchanged()
        force = -self.c * both[:, None]
        for body in self.bodies:
            boundary = self.solver.case.bodies[body].boundary
            if any(f"velocity_{axis}" in boundary.values() for axis in AXES):
                on = np.flatnonzero(self.body == body)
                force[on] -= self._velocity(boundary, self.wall[on]) * less[on, None]
        force *= self._mirror
        torque = np.cross(self.place, force) if self.D == 3 else (
            self.place[:, :1] * force[:, 1:] - self.place[:, 1:] * force[:, :1])  # fmt: skip
        parts = self._parts() if self.solver.case.split else []
        groups = len(self.bodies) * self.planes
        columns = [np.bincount(self._group, column, groups)
                   for column in np.concatenate([force, torque, *parts], axis=1).T]  # fmt: skip
        sums = np.stack(columns, axis=-1).reshape(len(self.bodies), self.planes, -1)
        return self.solver.lattice.volume * sums.transpose(1, 0, 2)

    def _exchanged(self) -> np.ndarray:
        """f_i_in + f_opp_out and f_opp_out - f_i_in of all links, (2, links)."""
        solver, lists = self.solver, self.lists
        if lists.count:
            kept = zip(solver.lists.states, lists.states, self._mines, strict=True)
            for state, own, mine in kept:
                own.write(state.read()[mine])
            arrays = lists.stage() | {"exchanged": self.exchanged} | self._more
            launch = solver.bind(f"exchanged_{solver.steps % solver.layout.parities}", **arrays)
            launch(lists.stream, 0, lists.count)
            if solver.case.split:
                name = f"stress_{solver.steps % solver.layout.parities}"
                lists.over_cells(name, arrays | {"stress": self.stress})
        return solver.device.download(self.exchanged).reshape(-1, 2)[self._mine].T

    def _parts(self) -> list[np.ndarray]:
        """What pressure and stress do to each link, (links, D) each; call after `_exchanged`."""
        if not self.lists.count:
            return [self.c, self.c]  # no links
        values = self.solver.device.download(self.stress).reshape(-1, self.parts)[self._at]
        stress = np.zeros((self.D, self.D, len(values)))
        for k, (a, b) in enumerate(combinations_with_replacement(range(self.D), 2), 1):
            stress[a, b] = stress[b, a] = values[:, k]
        pressure = float(self.solver.lattice.cs2) * values[:, :1]
        stress = np.einsum("abn,nb->na", stress, self._area)
        return [-pressure * self._area * self._mirror, stress * self._mirror]

    def _velocity(self, boundary, place) -> np.ndarray:
        """The wall's velocity at places (n, D), when what enters crosses it."""
        velocity, size = boundary.values(), self.solver.case.domain.size
        t = self.solver.steps + (0.5 if boundary.wall_at == "half" else 1)
        at = dict(zip(AXES, place.T, strict=False))
        found = np.zeros_like(place)
        for k, axis in enumerate(AXES[: self.D]):
            value = CellValue("u", velocity[f"velocity_{axis}"], self.D)
            found[:, k] = numeric(value.tree, value.evaluate(size, t) | at)
        return found


def _to_the_wall(entries) -> np.ndarray:
    """How far from the cell the wall of each link of a list is, in links."""
    if entries.boundary.per_link in ("distance", "second", "next"):
        return np.abs(entries.links)
    links = np.unpackbits(entries.missing.view(np.uint8)).sum(dtype=int)
    return np.full(links, 0.5 if entries.boundary.wall_at == "half" else 0.0)
