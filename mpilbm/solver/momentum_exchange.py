"""Forces on bodies: the momentum that their links take from the fluid in a step."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpilbm.physics.lattices import AXES
from mpilbm.solids.body_links import BodyLinks, Selected
from mpilbm.solids.build import Geometry
from mpilbm.solids.entry_list import EntryList
from mpilbm.solids.jump_forces import JumpForces
from mpilbm.solids.solid_cells import centres
from mpilbm.solver.boundary_lists import Arrays, BoundaryLists, Launched
from mpilbm.solver.fields.host_copies import HostCopies, HostCopy
from mpilbm.solver.memory.lists import body_bytes, force_columns, stress_values
from mpilbm.solver.populations import Populations

Floats = NDArray[np.float64]


class ByCell(NamedTuple):
    """What the links of each measured entry give to its body, in the order of `measured`.

    sums      float64 (n, columns), as in `MomentumExchange.start`
    gauge     float64 (n,), rho - 1 of its cell in the middle of the step
    rho_jump  float64 (n,), how much rho falls where the flow continues beyond the faces of a
              `pressure_jump`
    """

    sums: Floats
    gauge: Floats
    rho_jump: Floats


class MomentumExchange:
    """The bodies of `case.needs.weighed`, and the links that cross from fluid cells to them.

        F = sum over links of -c_i (f_i_in + f_opp_out) - u_wall (f_opp_out - f_i_in)

    over the step from t to t + 1, with the outgoing population f_opp_out at t and the incoming one
    f_i_in. The second term makes F the same in all uniformly moving frames. Where a boundary also
    changes populations that stream in, their change is part of F. The sums are of the populations
    minus their values at rest, so the pressure is relative to cs2 rho_0: for closed bodies this
    makes no difference.
    [Toelke & Krafczyk 2008, eqs. 10-11; Wen et al. 2014, J. Comput. Phys. 266, 161]

    If outputs need the parts (`Needs.split`), each link represents a piece of the surface, with
    the outward normal times the area a_i = 2 w_i c_i / cs2: over all links that cross a plane they
    sum to its area. Then

        pressure = sum of -cs2 (rho - 1) a_i = sum of -c_i (feq_i(rho, 0) + feq_opp(rho, 0))
        stress   = sum of sigma a_i

    with rho and sigma of the link's cell in the middle of the step. The first is the momentum
    exchange in a fluid at rest, F - pressure the viscous part (method A of the source); the second
    is an integral over the surface (method B, with links instead of elements of the shape, so that
    the pressure of both is the same). [Toelke & Krafczyk 2008, section 6.2]

    Beyond the faces of a `pressure_jump` the density differs by rho_jump. The sums are those of the
    unfolded flow around the body in one piece, see solids/jump_forces.py.

    A link that reaches a body through a mirror at a face is replaced by its mirror image, which
    reaches the body directly: so the force is that on the part of the body in the box.

    The bodies have separate lists here, which include links that a layout need not list, and which
    do not change the step. Their kernels compute the incoming populations again, and add what the
    links give in double precision, in an order that depends neither on the number of ranks nor on
    the device (see solids/body_links.py).
    """

    def __init__(self, fluid: Populations, step_lists: BoundaryLists, geometry: Geometry):
        self.fluid, case, device = fluid, fluid.case, fluid.device
        links = BodyLinks.find(case, fluid.slab, geometry.lists)
        device.require(int(body_bytes(case, fluid.slab, links).sum()), "the forces on bodies")
        self._ranges = links.chunks.ranges
        self.columns, self._first = force_columns(case), links.first_measured
        self.measured: tuple[EntryList, ...] = tuple(each.entries for each in links.measured)
        self._jump = JumpForces.find(case, fluid.slab, geometry, links, self.columns)
        self.groups = self._jump.groups if self._jump else links.chunks.group
        self._summed = _rows_of(links.chunks.group, self.groups)
        self.lists = BoundaryLists(
            fluid, replace(geometry, lists=links.lists), chained=case.needs.split, staged=True
        )
        self._states = self._state_copies((*links.staged, *links.measured), step_lists)
        self._arrays = self._uploaded(links)
        self._sums = device.allocate(self._summed.size * self.columns, "float64")
        self._copies = HostCopies(device, self._sums.size)
        self._launches: dict[int, list[Launched]] = {}  # by the step within a period

    def _uploaded(self, links: BodyLinks) -> Arrays:
        """The arrays and numbers that the kernels take, beside those of the lists."""
        case, device, chunks = self.fluid.case, self.fluid.device, links.chunks
        periodic = sum(1 << axis for axis, wraps in enumerate(case.domain.periodic) if wraps)
        box = dict(zip((f"box_{axis}" for axis in AXES), case.domain.size, strict=False))
        arrays: Arrays = {
            "periodic": periodic,
            **box,
            "chunk_first": device.upload(chunks.first),
            "chunk_entry": device.upload(chunks.entry + np.int32(links.first_measured)),
            "chunk_order": device.upload(chunks.order),
            "chunk_sums": device.allocate(chunks.order.size * self.columns, "float64"),
            "group_first": device.upload(chunks.start),
        }
        if case.needs.split and links.measured:
            cells = np.concatenate([each.entries.cells for each in links.measured])
            once = np.unique(np.concatenate([each.entries.cells for each in links.staged]))
            self._stress_rows = np.searchsorted(once, cells).astype(np.int32)
            arrays["stress_cell"] = device.upload(self._stress_rows)
            arrays["stress"] = device.allocate(once.size * stress_values(case), "float64")
            arrays["first_measured"] = links.first_measured
        return arrays

    def _state_copies(
        self, selected: tuple[Selected, ...], step_lists: BoundaryLists
    ) -> list[Launched]:
        """The copies of values that boundaries keep from step to step, from the step's lists."""
        fluid, known = self.fluid, {state.label: state for state in step_lists.states}
        rows = [each.rows for each in selected if each.entries.boundary.state(fluid.lattice)]
        found = []
        for mine, own in zip(rows, self.lists.states, strict=True):
            launch = fluid.bind(
                "copy_state", state=own.values, state_of_step=known[own.label].values,
                state_rows=fluid.device.upload(mine), names=len(own.names),
            )  # fmt: skip
            found.append((launch, 0, own.values.size))
        return found

    def start(self) -> Callable[[], Floats]:
        """Enqueue the sums over the links of each body in each plane, for the next step.

        The result waits for them and returns them, float64 (groups, columns), a row for each plane
        and body in `groups`. The columns: F (D) and torque about the origin (3, in 2D 1); with
        `split` also pressure (D) and stress (D).
        """
        fluid, t = self.fluid, self._crossing
        if not self._sums.size:
            return partial(self._in_groups, None, t)
        k = fluid.steps % max(fluid.layout.parities, fluid.layout.buffers)
        if k not in self._launches or fluid.context.forces.timed:
            self._launches[k] = self._bound(k % fluid.layout.parities)
        self._enqueue(self._launches[k])
        return partial(self._in_groups, self._copies.start(self._sums), t)

    @property
    def _crossing(self) -> float:
        """The time at which populations of the next step cross half-way walls and faces."""
        return self.fluid.steps + 0.5 if self.fluid.steps >= 0 else 0

    def _in_groups(self, copy: HostCopy | None, t: float) -> Floats:
        """The sums of all groups, with the share of a jump at time t."""
        shape = len(self.groups), self.columns
        found = self._jump.at(t).groups if self._jump else np.zeros(shape)
        if copy:
            found[self._summed] += copy.read().reshape(-1, self.columns)
        return self.fluid.lattice.volume * found

    def _enqueue(self, launches: list[Launched]) -> None:
        self.lists.update()
        for launch, begin, end in (*self._states, *launches):
            launch(self.lists.stream, begin, end)

    def _bound(self, parity: int) -> list[Launched]:
        """The kernels for steps of this parity, bound to the current populations."""
        bind, arrays = self.fluid.bind, self._arrays | self.fluid.current()
        found = self._measuring(parity, self._ranges, arrays)
        add = bind("force_sums", sum=self._sums, columns=self.columns, **arrays)
        return [*found, (add, 0, self._sums.size)]

    def _measuring(
        self, parity: int, ranges: tuple[tuple[int, int], ...], arrays: Arrays
    ) -> list[Launched]:
        """The kernels that add the entries of each chunk; `ranges`: see Chunks."""
        bind = self.fluid.bind
        found = self.lists.supplying(bind, parity, **arrays)
        if self.fluid.case.needs.split:
            found.append(self.lists.over_cells(bind, f"stress_{parity}", **arrays))
        return found + self.lists.measuring(bind, parity, ranges, **arrays)

    @cached_property
    def _single(self) -> tuple[Arrays, tuple[tuple[int, int], ...]]:
        """The arrays and ranges of chunks of one entry each, in the order of `measured`."""
        device, ends = self.fluid.device, np.cumsum([0, *(m.cells.size for m in self.measured)])
        arrays: Arrays = {
            "chunk_first": device.upload(np.arange(ends[-1] + 1, dtype=np.int32)),
            "chunk_entry": device.upload(
                np.arange(ends[-1], dtype=np.int32) + np.int32(self._first)
            ),
            "chunk_sums": device.allocate(int(ends[-1]) * self.columns, "float64"),
        }
        return arrays, tuple(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))

    @cached_property
    def _cell_copies(self) -> tuple[HostCopies, HostCopies]:
        sizes = self._single[0]["chunk_sums"].size, self._arrays["stress"].size
        return HostCopies(self.fluid.device, sizes[0]), HostCopies(self.fluid.device, sizes[1])

    def start_by_cell(self) -> Callable[[], ByCell]:
        """As `start` for each cell next to a body; requires `Needs.split` and `Needs.by_cell`."""
        if not self.measured:
            return partial(ByCell, np.zeros((0, self.columns)), np.zeros(0), np.zeros(0))
        single, ranges = self._single
        arrays = self._arrays | self.fluid.current() | single
        parity = self.fluid.steps % self.fluid.layout.parities
        self._enqueue(self._measuring(parity, ranges, arrays))
        sums, stress = self._cell_copies
        found = sums.start(single["chunk_sums"]), stress.start(self._arrays["stress"])
        return partial(self._by_cell, *found, self._crossing)

    def _by_cell(self, sums: HostCopy, stress: HostCopy, t: float) -> ByCell:
        rho = stress.read().reshape(-1, stress_values(self.fluid.case))[:, 0]
        found = sums.read().reshape(-1, self.columns)
        rho_jump = np.zeros(len(found))
        if self._jump:
            cells = np.concatenate([each.cells for each in self.measured])
            at = centres(self.fluid.case, self.fluid.slab, cells)
            found = found + self._jump.at(t).entries
            rho_jump = self._jump.rho_jump(at, t)
        return ByCell(self.fluid.lattice.volume * found, rho[self._stress_rows], rho_jump)

    def sample(self) -> Floats:
        """The sums of all planes and bodies, float64 (planes, bodies, columns)."""
        found = np.zeros((self.fluid.slab.planes, len(self.fluid.case.needs.weighed), self.columns))
        found[tuple(self.groups.T)] = self.start()()
        return found


def _rows_of(some: NDArray[np.int64], groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows in `groups` (n, 2) of some of them; both ascending."""
    width = int(groups[:, 1].max(initial=0)) + 1
    return np.searchsorted(groups @ [width, 1], some @ [width, 1])
