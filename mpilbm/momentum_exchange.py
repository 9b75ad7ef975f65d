"""Forces on bodies: the momentum that their links take from the fluid in a step."""

from dataclasses import replace

import numpy as np

from mpilbm.boundaries import one_face_each
from mpilbm.cell_values import CellValue
from mpilbm.expressions import numeric
from mpilbm.lattices import AXES
from mpilbm.lists import Lists
from mpilbm.memory_plan import LINK_BYTES, counted, list_bytes, own_bytes


class MomentumExchange:
    """The bodies of `case.weighed`, and what crosses the links from the fluid cells beside them.

        F = sum over links of -c_i (f_i_in + f_opp_out) - u_wall (f_opp_out - f_i_in)

    over the step from t to t + 1, where f_opp left the cell at t and f_i enters it. The second
    part makes it the same in all uniformly moving frames. Populations count from their values at
    rest, so the pressure is that above cs2 rho_0: on closed bodies this makes no difference.
    [Toelke & Krafczyk 2008, eqs. 10-11; Wen et al. 2014, J. Comput. Phys. 266, 161]

    Bodies have lists of their own here, with the links also that a layout has no need to list, and
    stage what enters in arrays of their own: the step finds nothing changed.
    """

    def __init__(self, solver, geometry):
        self.solver, case = solver, solver.case
        self.bodies, self.D = case.weighed, solver.lattice.D
        self.planes = solver.slab.planes
        self._after = len(one_face_each(case.boundaries))
        found = [(each, np.flatnonzero(np.isin(self._body(each), self.bodies)))
                 for each in geometry.lists]  # fmt: skip
        lists = tuple(each.only(mine) for each, mine in found)
        self._links(lists)
        needed = LINK_BYTES * len(self.c) + list_bytes(case, *counted(lists))
        needed += sum(own_bytes(case, each) for each in lists)
        solver.device.require(needed, "the forces on bodies")
        self.exchanged = solver.device.allocate(2 * len(self.c), "float64")
        self.lists = Lists(solver, replace(geometry, lists=lists))
        self._mines = [mine for each, mine in found if each.boundary.state(solver.lattice)]

    def _body(self, entries) -> np.ndarray:
        """Number of each entry's body; negative where it is of a face."""
        return np.array(entries.owners, np.int64)[entries.member] - self._after

    def _links(self, lists) -> None:
        """What the host must know of the links, in the order in which they are staged.

        place: (links, D), where they leave the body, half a link from its last node; it does not
        jump where a body reaches a periodic face. wall: (links, D), where the body's boundary has
        its velocity, as its kernel takes it.
        """
        slab, lattice, size = self.solver.slab, self.solver.lattice, self.solver.case.domain.size
        cells = np.concatenate([each.cells for each in lists])
        missing = np.concatenate([each.missing for each in lists])
        body = np.concatenate([self._body(each) for each in lists])
        bits = np.unpackbits(missing.view(np.uint8), bitorder="little").reshape(-1, 32)
        entry, i = np.nonzero(bits)
        self.c = np.array(lattice.c, np.float64)[i]
        plane, row, k = np.unravel_index(cells[entry], (slab.planes, *slab.shape[1:]))
        x = lattice.x(plane + slab.begin, row, k)
        node = np.stack([x, plane + slab.begin] if self.D == 2 else [x, row, plane + slab.begin], 1)
        self.place = (node - self.c) % np.array(size) + 0.5 + self.c / 2
        q = np.concatenate([_to_the_wall(each) for each in lists])
        self.wall = node + 0.5 - q[:, None] * self.c
        self.body = body[entry]
        self._group = np.searchsorted(self.bodies, self.body) * slab.planes + plane

    def sample(self) -> np.ndarray:
        """F (D) and torque about the origin (3, in 2D 1) in the step to come.

        Sums over the links in each plane of the slab, (planes, bodies, D + 3 or 1), in double.
        """
        both, less = self._exchanged()
        force = -self.c * both[:, None]
        for body in self.bodies:
            boundary = self.solver.case.bodies[body].boundary
            if any(f"velocity_{axis}" in boundary.values() for axis in AXES):
                on = np.flatnonzero(self.body == body)
                force[on] -= self._velocity(boundary, self.wall[on]) * less[on, None]
        torque = np.cross(self.place, force) if self.D == 3 else (
            self.place[:, :1] * force[:, 1:] - self.place[:, 1:] * force[:, :1])  # fmt: skip
        groups = len(self.bodies) * self.planes
        columns = [np.bincount(self._group, column, groups)
                   for column in np.concatenate([force, torque], axis=1).T]  # fmt: skip
        sums = np.stack(columns, axis=-1).reshape(len(self.bodies), self.planes, -1)
        return self.solver.lattice.volume * sums.transpose(1, 0, 2)

    def _exchanged(self) -> np.ndarray:
        """f_i_in + f_opp_out and f_opp_out - f_i_in of all links, (2, links)."""
        solver, lists = self.solver, self.lists
        if lists.count:
            kept = zip(solver.lists.states, lists.states, self._mines, strict=True)
            for state, own, mine in kept:
                own.write(state.read()[mine])
            arrays = lists.stage() | {"exchanged": self.exchanged}
            launch = solver.bind(f"exchanged_{solver.steps % solver.layout.parities}", **arrays)
            launch(lists.stream, 0, lists.count)
        return solver.device.download(self.exchanged).reshape(-1, 2).T

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
    if entries.boundary.per_link == "distance":
        return entries.links
    _, links = counted([entries])
    return np.full(links, 0.5 if entries.boundary.wall_at == "half" else 0.0)
