"""The solver of one slab: its parts, and the time step."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from time import perf_counter

import numpy as np

from mpilbm.backends import Device
from mpilbm.case.case import Case
from mpilbm.codegen.program import FORCE, MOVED, SHARE, Program
from mpilbm.halo import Exchanger
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.motions import moving
from mpilbm.physics.sloped import middle_name
from mpilbm.solids.build import Geometry
from mpilbm.solver.body_forces import BodyForces
from mpilbm.solver.boundary_lists import BoundaryLists, EntryState
from mpilbm.solver.context import SlabContext
from mpilbm.solver.fields.diagnostics import Diagnostics
from mpilbm.solver.fields.flow_statistics import Statistics
from mpilbm.solver.fields.sources import SlabCopies
from mpilbm.solver.flow_state import Coupled, FlowState
from mpilbm.solver.graph_replay import Recordings, StepsAhead
from mpilbm.solver.initialise import InitialState
from mpilbm.solver.moving_bodies import MovingBodies
from mpilbm.solver.passes import Pass, StepWork, collide_stream
from mpilbm.solver.populations import Group, Populations
from mpilbm.solver.scalar_bounds import Bounds, Range, of_box, own_bounds
from mpilbm.solver.scalar_transport import Transport
from mpilbm.solver.step_times import StepTimes
from mpilbm.solver.two_steps import GROUP, TwoSteps


class Solver:
    """One slab of a case on one device: its fluids, and a step that is a list of passes.

    ```
    one fluid    lists           | collide-stream ~ f
    coupled      lists of each   | coupling fields ~ | fields of walls (~) | collide-stream ~ f
    ```

    ~ is a halo exchange, overlapped with the bulk planes of its pass (see passes.Pass). The passes
    repeat every `period` steps. The parts share a SlabContext and do not refer to the solver:
    without reference cycles all arrays are freed with it.

    all        the populations of all fluids, and those of the scalars, whose step is a part of the
               fluid's
    bounds     those of the scalars that are watched, by label
    faster     passes of two steps, if they are possible on this slab and faster than single steps;
               `two_steps`: those that are taken
    """

    def __init__(
        self,
        case: Case,
        slab: Slab,
        geometry: Geometry,
        device: Device,
        exchanger: Exchanger,
        program: Program,
    ):
        self.context = SlabContext.create(case, slab, geometry, device, exchanger, program)
        self.case, self.slab, self.device = case, slab, device
        self.exchanger, self.program = exchanger, program
        self.geometry, self.grid = self.context.geometry, self.context.grid
        self.period = self.context.period
        self.fluids = Populations.of_fluids(self.context)
        carried = self.fluids[0].carried
        self.all = (*self.fluids, *carried)
        self.coupled = Coupled(self.context, self.fluids) if case.coupling else None
        self.lists = [self._lists(each) for each in self.all]
        self.streaming = [self._collide_streams(k) for k in range(self.period)]
        given = self.fluids[0], self.lists[0], geometry
        self.moving = MovingBodies(*given) if moving(case) else None
        self.work = [
            StepWork(self.context, k, self.lists, [*self._before(k), *each], self.moving)
            for k, each in enumerate(self.streaming)
        ]
        self.two_steps: TwoSteps | None = None
        self.faster = TwoSteps.of(self.fluids, self.work)
        if self.faster and slab.ranks == 1:
            self.take_two_steps(self.faster)
        self.state = FlowState(self.context, self.fluids, self.coupled)
        self.diagnostics, self.initial = Diagnostics(self.state), InitialState(self.state)
        self.times, self.ahead = StepTimes(device), StepsAhead(self.context.bulk)
        self.recordings = Recordings(device, exchanger.recordings)
        self.bounds: dict[str, Bounds] = {}
        self.replaced = 0  # how often the state was replaced by another one, see resume
        self.transport = Transport(self.diagnostics, carried) if case.needs.transported else None
        self.exchanged = BodyForces(*given, self.moving) if case.needs.weighed else None

    def _lists(self, fluid: Populations) -> BoundaryLists:
        """The boundary lists of a fluid, bound to the arrays of all steps of a period."""
        lists = BoundaryLists(fluid, fluid.context.geometry)
        for k in range(self.period):
            lists.prepare(k, k % fluid.layout.parities, **fluid.arrays(k))
        return lists

    def _collide_streams(self, k: int) -> list[Pass]:
        """The pass of each fluid that ends steps t with t % period = k."""
        following, coupled = (k + 1) % self.case.layout.parities, self.coupled
        fields, found = coupled.arrays() if coupled else {}, []
        for fluid, lists in zip(self.fluids, self.lists, strict=False):
            reads = coupled.reads_of(fluid, following) if coupled else ()
            found.append(collide_stream(fluid, lists, k, reads, **fields))
        return found

    def _before(self, k: int) -> list[Pass]:
        """The passes of the coupling before the fluids collide."""
        return self.coupled.passes(k) if self.coupled else []

    @property
    def steps(self) -> int:
        """How many steps are done; negative while the initial velocity is held."""
        return self.context.clock.steps

    @steps.setter
    def steps(self, steps: int) -> None:
        self.context.clock.steps = steps

    @property
    def bytes_per_update(self) -> int:
        """Bytes that a single step of a cell reads and writes, from kernels' accesses; mean of the
        parities.
        """
        kernels, parities = self.program.kernels, self.case.layout.parities
        size = dict.fromkeys(("field", FORCE), np.dtype(self.program.compute).itemsize)
        size |= {"node_next": 4, SHARE: 1, MOVED: 1}
        usual, total = np.dtype(self.program.storage).itemsize, 0
        names = [f"collide_stream_{{}}{fluid.suffix}" for fluid in self.fluids]
        for name in (*names, *(["show_{}"] if self.coupled else [])):
            for kernel in (kernels[name.format(parity)] for parity in range(parities)):
                for side in (kernel.reads, kernel.writes):
                    total += sum(
                        size[one] if one in size else usual * self.grid.width(slot)
                        for one, slot in {(a.buffer, a.slot) for a in side}
                    )
        return total // parities

    def take_two_steps(self, passes: TwoSteps) -> None:
        """Take two steps in one pass from now on; all ranks call it, or none."""
        passes.connect(self.moving)
        self.two_steps = passes

    def step(self) -> None:
        """Enqueue one time step: the boundary lists, then each pass with its halo exchange."""
        work = self.work[self.steps % self.period]
        work.prepare(1)
        timed = self.times.begin(self.steps, work.waited)
        events = work.enqueue(timed)
        self.times.end(events, work.waited)
        self.steps += 1
        self.ahead.enqueued()

    def advance(self, steps: int) -> None:
        """Enqueue so many time steps, where possible many of them by one call."""
        while steps > 0:
            length = self._together(steps)
            if length is None:
                self.step()
            else:
                self._advance_together(length)
            steps -= length or 1

    def _together(self, steps: int) -> int | None:
        """How many steps come next by one call, before the next timed step; None: there are none.

        The longest recording; without recordings those that passes of two steps take.
        """
        if self.steps % self.period:
            return None
        steps = min(steps, self.times.untimed(self.steps))
        if self._recordable:
            return Recordings.length(steps)
        return GROUP if self.two_steps and steps >= GROUP else None

    def _advance_together(self, steps: int) -> None:
        """Enqueue so many steps by one call."""
        two = self._two_steps_for(steps)
        self.work[0].prepare(steps)
        if two:
            two.begin(self.steps, steps)
        if self._recordable:
            seconds = self.recordings.play(steps, partial(self._enqueue, steps))
        else:
            begin = perf_counter() - self._waited
            self._enqueue(steps)
            seconds = perf_counter() - self._waited - begin
        self.times.replayed(steps, seconds)
        self.steps += steps
        if two:
            two.ended(self.steps)
        self.ahead.enqueued(steps)

    @property
    def _waited(self) -> float:
        return self.two_steps.waited if self.two_steps else 0.0

    @cached_property
    def _recordable(self) -> bool:
        """Whether steps t and t + period enqueue the same on all ranks, without the host."""
        given = self.context.timed or (self.moving and not self.moving.ahead)
        return self.device.records and not given and all(each.in_streams for each in self.work)

    def _two_steps_for(self, steps: int) -> TwoSteps | None:
        """The passes that take so many steps; None: single steps."""
        return self.two_steps if steps % GROUP == 0 else None

    def _enqueue(self, steps: int) -> None:
        """The work of so many steps from the beginning of a period on."""
        if two := self._two_steps_for(steps):
            return two.enqueue(steps)
        for step in range(steps):
            self.work[step % self.period].enqueue(followed=step + 1 < steps)

    def initialise(self) -> None:
        """Set the state before step 0; collective."""
        self.fill()
        self.settle()

    def fill(self) -> None:
        """Set the populations from the initial fields; not collective, may raise on one rank."""
        self.initial.fill()

    def settle(self) -> None:
        """Complete the initial state: ghost layers, and steps at a fixed velocity. Collective."""
        steps = self.initial.iterate
        if self.coupled:
            self.coupled.begin()
        self.resume(-steps)
        if steps:
            self.initial.hold(self.lists, self.streaming, self.ahead)
            self.diagnostics.forget()

    def resume(self, step: int) -> None:
        """Continue from `step`, whose populations are in the arrays; exchanges the ghost layers."""
        if step % self.period != self.steps % self.period:
            raise ValueError(f"the state was written for step {self.steps}, not {step}")
        self.steps, self.replaced = step, self.replaced + 1
        if self.context.force_field:
            self.context.force_field.update(step)
        if self.moving:
            self.moving.update(step)
        self.diagnostics.forget()
        if self.two_steps:
            self.two_steps.forget()
        if self.coupled:
            self.coupled.forget()
        self.device.clear_solids(self.context.kernels, self.fluids[0].current()["f"])
        self.device.synchronize()
        for each in self.streaming[(step - 1) % self.period]:
            each.exchange.start()
            each.exchange.finish()
        if step <= 0:
            for lists in self.lists:
                lists.begin(step % self.period)

    @property
    def state_groups(self) -> tuple[Group, ...]:
        """The parts of a checkpoint, one for each fluid."""
        groups = {each.group.label: each.group for each in self.all}
        for label, bounds in self.bounds.items():
            groups[label] = replace(groups[label], attributes=bounds.attributes)
        return tuple(groups.values())

    def _labelled(self, label: str) -> Populations:
        return next(each for each in self.all if each.field.label == label)

    def read_state(self, label: str, begin: int, end: int) -> np.ndarray:
        """The outgoing populations of a fluid, see Populations.read_state."""
        return self._labelled(label).read_state(begin, end)

    def write_state(self, label: str, begin: int, state: np.ndarray, step: int) -> None:
        """The inverse of `read_state`, the state after `step` steps; call `resume` last."""
        self.steps = step
        self._labelled(label).write_state(begin, state)

    @property
    def entry_states(self) -> list[EntryState]:
        """The values that boundaries keep for each entry; the same labels on all slabs."""
        return [state for lists in self.lists for state in lists.states]

    @property
    def sum_names(self) -> tuple[str, ...]:
        """Names of the columns of `sums`."""
        return self.diagnostics.columns

    @property
    def field_names(self) -> tuple[str, ...]:
        """The names that `fields` accepts."""
        return self.diagnostics.names

    def fields(self, names: Iterable[str], begin: int, end: int) -> dict[str, np.ndarray]:
        """Macroscopic fields of planes begin..end: (planes, rows, nx), or (…, components)."""
        return self.diagnostics.fields(names, begin, end)

    def components(self, name: str) -> tuple[int, ...]:
        """The shape of a field in a cell."""
        return self.diagnostics.components(name)

    def copies(self, ahead: int, host_bytes: int, plane_bytes: int = 0) -> SlabCopies:
        """Asynchronous copies to the host; arguments: see Staging and SlabCopies."""
        return SlabCopies(self.diagnostics, self.all, ahead, host_bytes, plane_bytes)

    def prepare(self, names: Iterable[str]) -> None:
        """Compute what `fields` needs for these names; collective."""
        self.diagnostics.prepare(names)

    def statistics(self, along_x: bool, along_rows: bool) -> Statistics:
        """Sums over samples of the flow, averaged along x and along rows or not."""
        return Statistics(self.diagnostics, along_x, along_rows)

    def sums(self) -> tuple[tuple[str, ...], np.ndarray]:
        """Names of columns, and their sums over the fluid cells of each plane, in double."""
        return self.diagnostics.columns, self.start_sums()()

    def start_sums(self) -> Callable[[], np.ndarray]:
        """Enqueue these sums behind the steps; the result waits for them and returns them."""
        return self.diagnostics.start_sums()

    def start_change(self) -> Callable[[], np.ndarray]:
        """As `start_sums`, for the change of the velocity since the previous call."""
        return self.diagnostics.start_change()

    def speeds(self) -> tuple[np.ndarray, np.ndarray]:
        """The largest speed in each plane, and the number of fluid cells that are not finite."""
        return self.diagnostics.speeds()

    def scalars(self) -> tuple[np.ndarray, np.ndarray]:
        """Sums of scalars in each plane, and largest distances, see Diagnostics.scalars."""
        return self.diagnostics.scalars()

    def own_bounds(self) -> dict[str, Range | None]:
        """The least and largest values of scalars on this slab, see solver/scalar_bounds.py."""
        return own_bounds(self.context, self.initial.ranges)

    def watch(self, parts: Sequence[Mapping[str, Range | None]]) -> None:
        """Compare scalars with these `own_bounds` of all slabs from now on; before first sums."""
        self.bounds = of_box(self.case, parts)
        self.diagnostics.watch({middle_name(n): each.middle for n, each in self.bounds.items()})

    def mass(self) -> np.ndarray:
        """The mass of each plane, float64 (planes,)."""
        return self.diagnostics.mass()

    def solid(self, begin: int, end: int) -> np.ndarray:
        """True in solid cells, (end - begin, rows, nx)."""
        return self.state.solid(begin, end)
