"""Sums over links: the momentum that the links of bodies take from the fluid in a step."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from mpilbm.physics.lattices import AXES
from mpilbm.solids import Floats, Ints
from mpilbm.solids.body_links import BodyLinks, Chunks, Selected
from mpilbm.solids.build import Geometry
from mpilbm.solids.entry_list import EntryList
from mpilbm.solids.jump_forces import JumpForces
from mpilbm.solids.solid_cells import centres
from mpilbm.solver.boundary_lists import Arrays, BoundaryLists, Launched
from mpilbm.solver.fields.plane_sums import HostCopies, Read
from mpilbm.solver.memory_plan import body_bytes, force_columns, stress_values
from mpilbm.solver.populations import Populations


class LinkSums:
    """Sums of what the measured links of lists give in a step, for each owner in each plane.

    In double precision, in an order that depends neither on the number of ranks nor on the device
    (see solids/body_links.py). `first`: how many entries of `lists` precede the measured ones.
    """

    def __init__(
        self, fluid: Populations, lists: BoundaryLists, chunks: Chunks, columns: int, first: int = 0
    ):
        device = fluid.device
        self.fluid, self.lists, self.columns = fluid, lists, columns
        self._ranges, self._first = chunks.ranges, np.int32(first)
        self._before: list[Launched] = []  # work that precedes the kernels
        self._arrays: Arrays = {
            "chunk_first": device.upload(chunks.first),
            "chunk_entry": device.upload(chunks.entry + self._first),
            "chunk_order": device.upload(chunks.order),
            "chunk_sums": device.allocate(chunks.order.size * columns, "float64"),
            "group_first": device.upload(chunks.start),
        }
        shape = len(chunks.group), columns
        self._sums = device.allocate(shape[0] * columns, "float64")
        self._copies = HostCopies(device, shape)
        self._launches: dict[int, list[Launched]] = {}  # by the step within a period

    def start_groups(self) -> Read | None:
        """Enqueue the sums of the next step, (groups, columns) as in Chunks; None without any."""
        fluid = self.fluid
        if not self._sums.size:
            return None
        k = fluid.steps % fluid.context.period
        if k not in self._launches or fluid.context.forces.timed:
            arrays = self._arrays | fluid.current()
            add = fluid.bind("force_sums", sum=self._sums, columns=self.columns, **arrays)
            found = self._measuring(k % fluid.layout.parities, self._ranges, arrays)
            self._launches[k] = [*found, (add, 0, self._sums.size)]
        self._enqueue(self._launches[k])
        return self._copies.start(self._sums)

    def _measuring(
        self, parity: int, ranges: tuple[tuple[int, int], ...], arrays: Arrays
    ) -> list[Launched]:
        """The kernels that add the entries of each chunk; `ranges`: see Chunks."""
        return self.lists.measuring(self.fluid.bind, parity, ranges, **arrays)

    def _state_copies(
        self, staged: tuple[Selected, ...], step_lists: BoundaryLists
    ) -> list[Launched]:
        """The copies of values that boundaries keep from step to step, from the step's lists."""
        fluid, known = self.fluid, {state.label: state for state in step_lists.states}
        rows = [each.rows for each in staged if each.entries.boundary.state(fluid.lattice)]
        found = []
        for mine, own in zip(rows, self.lists.states, strict=True):
            given = {"state": own.values, "state_of_step": known[own.label].values}
            given |= {"state_rows": fluid.device.upload(mine), "names": len(own.names)}
            found.append((fluid.bind("copy_state", **given), 0, own.values.size))
        return found

    def _enqueue(self, launches: list[Launched]) -> None:
        self.lists.update()
        for launch, begin, end in (*self._before, *launches):
            launch(self.lists.stream, begin, end)


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


class MomentumExchange(LinkSums):
    """The bodies of `case.needs.weighed`, and the links that cross from fluid cells to them.

        F = sum over links of -c_i (f_i_in + f_opp_out) - u_wall (f_opp_out - f_i_in)

    over the step from t to t + 1, with the outgoing population f_opp_out at t and the incoming one
    f_i_in. The second term makes F the same in all uniformly moving frames. Where a boundary also
    changes populations that stream in, their change is part of F. The sums are of the populations
    minus their values at rest, so the pressure is relative to cs2 rho_0. [Toelke & Krafczyk 2008,
    eqs. 10-11; Wen et al. 2014, J. Comput. Phys. 266, 161]

    If outputs need the parts (`Needs.split`), each link represents a piece of the surface, with the
    outward normal times the area a_i = 2 w_i c_i / cs2: over all links that cross a plane they sum
    to its area. With rho and sigma of the link's cell in the middle of the step

        pressure = sum of -cs2 (rho - 1) a_i = sum of -c_i (feq_i(rho, 0) + feq_opp(rho, 0))
        stress   = sum of sigma a_i

    The first is the momentum exchange in a fluid at rest, F - pressure the viscous part (method A
    of the source); the second is an integral over the surface (method B, with links instead of
    elements of the shape, so that the pressure of both is the same). [Toelke & Krafczyk 2008,
    section 6.2]

    Beyond the faces of a `pressure_jump` the sums are those of the unfolded flow, see
    solids/jump_forces.py. A link that reaches a body through a mirror at a face is replaced by its
    mirror image: the force is that on the part of the body in the box. The bodies have separate
    lists here, also of links that a layout need not list, which compute the incoming populations
    again.
    """

    def __init__(self, fluid: Populations, step_lists: BoundaryLists, geometry: Geometry):
        case, device, slab = fluid.case, fluid.device, fluid.slab
        links = BodyLinks.find(case, slab, geometry.lists)
        device.require(int(body_bytes(case, slab, links).sum()), "the forces on bodies")
        columns, groups = force_columns(case), links.chunks.group
        self.measured: tuple[EntryList, ...] = tuple(each.entries for each in links.measured)
        self._jump = JumpForces.find(case, slab, geometry, links, columns)
        self.groups = self._jump.groups if self._jump else groups
        self._summed = _rows_of(groups, self.groups)
        of_bodies = replace(geometry, lists=links.lists)
        lists = BoundaryLists(fluid, of_bodies, chained=case.needs.split, staged=True)
        super().__init__(fluid, lists, links.chunks, columns, links.first_measured)
        self._before = self._state_copies((*links.staged, *links.measured), step_lists)
        periodic = sum(1 << axis for axis, wraps in enumerate(case.domain.periodic) if wraps)
        box = dict(zip((f"box_{axis}" for axis in AXES), case.domain.size, strict=False))
        self._arrays |= {"periodic": periodic, **box}
        if case.needs.split and links.measured:
            cells = np.concatenate([each.entries.cells for each in links.measured])
            once = np.unique(np.concatenate([each.entries.cells for each in links.staged]))
            self._stress_rows = np.searchsorted(once, cells).astype(np.int32)
            self._arrays["stress_cell"] = device.upload(self._stress_rows)
            self._arrays["stress"] = device.allocate(once.size * stress_values(case), "float64")
            self._arrays["first_measured"] = links.first_measured

    def start(self) -> Callable[[], Floats]:
        """Enqueue the sums over the links of each body in each plane, for the next step.

        The result waits for them and returns them, float64 (groups, columns), a row for each plane
        and body in `groups`: F (D) and torque about the origin (3, in 2D 1); with `split` also
        pressure (D) and stress (D).
        """
        return partial(self._in_groups, self.start_groups(), self._crossing)

    @property
    def _crossing(self) -> float:
        """The time at which populations of the next step cross half-way walls and faces."""
        return self.fluid.steps + 0.5 if self.fluid.steps >= 0 else 0

    def _in_groups(self, copy: Read | None, t: float) -> Floats:
        """The sums of all groups, with the share of a jump at time t."""
        shape = len(self.groups), self.columns
        found = self._jump.at(t).groups if self._jump else np.zeros(shape)
        if copy:
            found[self._summed] += copy()
        return self.fluid.lattice.volume * found

    def _measuring(
        self, parity: int, ranges: tuple[tuple[int, int], ...], arrays: Arrays
    ) -> list[Launched]:
        bind = self.fluid.bind
        found = self.lists.supplying(bind, parity, **arrays)
        if self.fluid.case.needs.split:
            found.append(self.lists.over_cells(bind, f"stress_{parity}", **arrays))
        return found + super()._measuring(parity, ranges, arrays)

    @cached_property
    def _single(self) -> tuple[Arrays, tuple[tuple[int, int], ...], HostCopies, HostCopies]:
        """Arrays and ranges of chunks of one entry each, as in `measured`; copies of results."""
        device, ends = self.fluid.device, np.cumsum([0, *(m.cells.size for m in self.measured)])
        count, values = int(ends[-1]), stress_values(self.fluid.case)
        arrays: Arrays = {
            "chunk_first": device.upload(np.arange(count + 1, dtype=np.int32)),
            "chunk_entry": device.upload(np.arange(count, dtype=np.int32) + self._first),
            "chunk_sums": device.allocate(count * self.columns, "float64"),
        }
        sums = HostCopies(device, (count, self.columns))
        stress = HostCopies(device, (self._arrays["stress"].size // values, values))
        return arrays, tuple(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)), sums, stress

    def start_by_cell(self) -> Callable[[], ByCell]:
        """As `start` for each cell next to a body; requires `Needs.split` and `Needs.by_cell`."""
        if not self.measured:
            return partial(ByCell, np.zeros((0, self.columns)), np.zeros(0), np.zeros(0))
        single, ranges, sums, stress = self._single
        arrays = self._arrays | self.fluid.current() | single
        parity = self.fluid.steps % self.fluid.layout.parities
        self._enqueue(self._measuring(parity, ranges, arrays))
        found = sums.start(single["chunk_sums"]), stress.start(self._arrays["stress"])
        return partial(self._by_cell, *found, self._crossing)

    def _by_cell(self, sums: Read, stress: Read, t: float) -> ByCell:
        found, rho = sums(), stress()[:, 0]
        rho_jump = np.zeros(len(found))
        if self._jump:
            cells = np.concatenate([each.cells for each in self.measured])
            at = centres(self.fluid.case, self.fluid.slab, cells)
            found = found + self._jump.at(t).entries
            rho_jump = self._jump.rho_jump(at, t)
        return ByCell(self.fluid.lattice.volume * found, rho[self._stress_rows], rho_jump)


def _rows_of(some: Ints, groups: Ints) -> Ints:
    """The rows in `groups` (n, 2) of some of them; both ascending."""
    width = int(groups[:, 1].max(initial=0)) + 1
    return np.searchsorted(groups @ [width, 1], some @ [width, 1])
