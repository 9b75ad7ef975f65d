"""Bodies that move freely: the force of each step, and from it the next state, on all ranks.

    t        before the step from t to t + 1 the bodies are at x(t), with the force of the step
             before; all ranks compute x(t + 1) and U(t + 1) from it
    weigh    the sums over the cells that the bodies fill at t + 1, as Boundary.taken gives them,
             with the populations that arrive in this step; then the step itself

The host reads the sums when it needs the next state, after it has enqueued the step. So the device
computes the step meanwhile, and waits for the host where a step takes less time than the host's
part: a copy, a collective call with several ranks, and about 1 ms of Python for each body.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from mpilbm.codegen.program import FREE_CELLS, MOVER
from mpilbm.core.errors import CaseError
from mpilbm.physics.rigid_body import WIDTH, State
from mpilbm.solids.body_links import CHUNK, Chunks, Selected
from mpilbm.solids.build import Geometry
from mpilbm.solids.contacts import Contacts
from mpilbm.solids.free_path import FreePath
from mpilbm.solids.moving_bodies import MovingBody
from mpilbm.solver.boundary_lists import Arrays, BoundaryLists, Launched, chained_entries
from mpilbm.solver.fields.plane_sums import Read
from mpilbm.solver.memory_plan import force_names
from mpilbm.solver.momentum_exchange import Floats, LinkSums
from mpilbm.solver.populations import Populations

PLACE_BYTES, HEAD_BYTES = 4, 4  # of a cell around a body, and of a cell of the slab


class StagedEntries:
    """The entries of all boundary lists of a slab, evaluated again for cells of bodies at walls.

    A free body may come to any of them. `arrays`: those by which kernels find the populations that
    entries supply in a cell, see EntryText.arrived.
    """

    def __init__(self, fluid: Populations, geometry: Geometry):
        device, shape = fluid.device, (fluid.slab.planes, *fluid.slab.shape[1:])
        rows = [np.arange(each.cells.size, dtype=np.int32) for each in geometry.lists]
        self.selected = tuple(map(Selected, geometry.lists, rows))
        self.lists = BoundaryLists(fluid, geometry, staged=True)
        listed = np.concatenate([np.empty(0, np.int64), *(e.cells for e in geometry.lists)])
        once, first, following = chained_entries(listed)
        count = int(np.prod(shape)) if listed.size else 1
        device.require(HEAD_BYTES * count, "the force on free bodies")
        head = np.full(count, -1, np.int32)
        head[once] = first
        self.arrays: Arrays = {"head_step": int(listed.size > 0), "head": device.upload(head)}
        self.arrays["following"] = device.upload(following if listed.size else head)


class CellsAround(LinkSums):
    """The force and torque on the cells of a free body, for each plane of the box around it.

    The cells of a plane are added in chunks in their order, counted from the corner of the box, and
    each plane belongs to one slab, so the sums do not depend on the number of ranks. The torque is
    about the centre of the body. `alone`: whether these sums evaluate the staged entries.
    """

    def __init__(
        self,
        fluid: Populations,
        step_lists: BoundaryLists,
        staged: StagedEntries,
        body: MovingBody,
        mover: int,
        alone: bool,
    ):
        fluid.device.require(PLACE_BYTES * body.cells, "the force on free bodies")
        super().__init__(fluid, staged.lists, _chunks(body), len(force_names(fluid.case)))
        self._alone, self._staged = alone, staged
        if alone:
            self._before = self._state_copies(staged.selected, step_lists)
        ghost = fluid.context.grid.ghost
        self._own: Arrays = {MOVER: mover, "end_plane": ghost + fluid.slab.planes}

    def _enqueue(self, launches: list[Launched]) -> None:
        if self._alone:
            return super()._enqueue(launches)
        for launch, begin, end in launches:
            launch(self.lists.stream, begin, end)

    def _measuring(
        self, parity: int, ranges: tuple[tuple[int, int], ...], arrays: Arrays
    ) -> list[Launched]:
        bind, given = self.fluid.bind, arrays | self.lists.staged_arrays() | self._own
        given |= self._staged.arrays
        given |= self.fluid.context.forces.at(self.fluid.steps + 1)
        supplies = self._alone and self.lists.count
        found = self.lists.supplying(bind, parity, **arrays) if supplies else []
        return [*found, *((bind(f"{FREE_CELLS}_{parity}", **given), *each) for each in ranges)]


def _chunks(body: MovingBody) -> Chunks:
    """Chunks of the cells of the box around a body, a group for each plane of it."""
    across = body.case.dimensions - 1
    planes, cells = body.sides[across], body.cells // body.sides[across]
    parts = -(-cells // CHUNK)
    plane, part = np.divmod(np.arange(planes * parts), parts)
    first = np.append(plane * cells + part * CHUNK, planes * cells)
    return Chunks(
        entry=np.arange(planes * cells, dtype=np.int32),
        first=first.astype(np.int32),
        ranges=((0, planes * parts),),
        order=np.arange(planes * parts, dtype=np.int32),
        group=np.stack([np.arange(planes), np.zeros(planes, np.int64)], 1),
        start=(np.arange(planes + 1) * parts).astype(np.int32),
    )


class FreeBodies:
    """The free bodies among the moving bodies of a slab.

    All methods but `paths` and `labels` are collective: all ranks call them at the same steps.
    """

    def __init__(
        self,
        fluid: Populations,
        step_lists: BoundaryLists,
        geometry: Geometry,
        bodies: tuple[MovingBody, ...],
    ):
        self._case, self._exchanger = fluid.case, fluid.context.exchanger
        self._contacts, self._bodies = Contacts(fluid.case, bodies), bodies
        staged = StagedEntries(fluid, geometry)
        self._sums: list[CellsAround] = []
        for place, body in enumerate(bodies):
            if isinstance(body.motion, FreePath):
                alone = not self._sums
                given = fluid, step_lists, staged, body, 1 + place, alone
                self._sums.append(CellsAround(*given))
        self._pending: Callable[[], list[Floats]] | None = None
        self._weighed = 0  # the end of the last step whose force is known or pending

    @property
    def paths(self) -> list[FreePath]:
        """The path of each free body."""
        return [b.motion for b in self._bodies if isinstance(b.motion, FreePath)]

    @property
    def labels(self) -> list[str]:
        """The labels of these bodies."""
        return [path.label for path in self.paths]

    @property
    def last(self) -> int:
        """The time of the newest states."""
        return self.paths[0].last

    def update(self, t: int) -> None:
        """Compute the states up to time t."""
        while self.last < t:
            self.take()
            loads = self._contacts.loads(self.last)
            uniform = np.zeros(3)
            for a, value in enumerate(self._case.force_on(0)):
                (number,) = value.evaluate(self._case.domain.size, self.last + 1).values()
                uniform[a] = number
            for path in self.paths:
                force, torque = loads[path.label]
                force = force + path.weight + path.volume * uniform
                path.advance(force, torque)

    def weigh(self, t: int) -> None:
        """Enqueue the sums of the step that ends at t, with the bodies there; once for each t."""
        if self._pending is None and t == self.last and t > self._weighed:
            reads, self._weighed = [sums.start_groups() for sums in self._sums], t
            self._pending = cache(lambda: self._totals(reads))

    def _totals(self, reads: list[Read | None]) -> list[Floats]:
        """Force and torque of each body, over the planes of all slabs; collective."""
        own = [read() for read in reads if read]
        parts = self._exchanger.allgather(own)
        found = []
        for k in range(len(own)):
            planes = parts[0][k]
            for part in parts[1:]:
                planes = planes + part[k]  # of which all but one are 0 in each plane
            found.append(planes.sum(axis=0))
        return found

    def take(self) -> None:
        """Read the force of the step that ended last, if the host has not; collective."""
        if self._pending is None:
            return
        totals, self._pending = self._pending(), None
        D = self._case.dimensions
        for path, total in zip(self.paths, totals, strict=True):
            force, torque = np.zeros(3), np.zeros(3)
            force[:D], torque[0 if D == 3 else 2 :] = total[:D], total[D:]
            path.took(force, torque)

    def taken(self, number: int, t: int) -> Floats:
        """Force and torque on the cells of a body in the step that ended at t, as in LinkSums."""
        self.take()
        (path,) = (b.motion for b in self._bodies if b.number == number)
        assert isinstance(path, FreePath)
        state, D = path.at(t), self._case.dimensions
        return np.concatenate([state.force[:D], state.torque[0 if D == 3 else 2 :]])

    def states(self, t: int) -> Floats:
        """The numbers of all free bodies after t steps, (bodies, WIDTH), as `labels`."""
        self.take()
        return np.stack([path.at(t).packed() for path in self.paths])

    def restore(self, t: int, states: NDArray[np.float64]) -> None:
        """Continue from these numbers at time t; CaseError if a body has turned otherwise."""
        self._pending, self._weighed = None, t
        for path, numbers in zip(self.paths, states.reshape(-1, WIDTH), strict=True):
            state = State.unpacked(numbers)
            if not path.inertia.continues(state):
                raise CaseError(
                    f"body.{path.label}.motion.fixed: found one free axis of rotation, and the "
                    "body of the checkpoint has turned about others; restart with the `fixed` of "
                    "that run, or start from step 0"
                )
            path.begin(t, state)
