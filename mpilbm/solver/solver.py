"""The solver of one slab: its arrays, kernels and streams, and the step."""

from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from mpilbm.codegen.program import Program
from mpilbm.links.box_walls import BoxWalls
from mpilbm.solver import memory_plan
from mpilbm.solver.coupled_fields import Coupled, Uncoupled
from mpilbm.solver.diagnostics import Diagnostics
from mpilbm.solver.field_copies import FieldCopies
from mpilbm.solver.fluid import Group, Populations
from mpilbm.solver.graph_replay import Lead, Replay
from mpilbm.solver.initialise import Beginning
from mpilbm.solver.momentum_exchange import MomentumExchange
from mpilbm.solver.passes import InTurn
from mpilbm.solver.step_times import StepTimes

BLOCK_BYTES = 2**26  # of initial fields on the device at a time


class Solver:
    """One slab of a case on one device: its fluids, and a step that is a list of passes.

    ```
    one fluid    lists           | collide-stream ~ f
    coupled      lists of each   | shown fields ~ | wall values (~) | collide-stream of each ~ f
    ```

    ~ is what travels to the neighbours, behind the bulk of its pass (see edge_first). `steps`
    counts what is done; the passes repeat every `period` steps.
    """

    def __init__(self, case, slab, geometry, device, exchanger, program: Program):
        self.case, self.slab, self.geometry, self.device = case, slab, geometry, device
        self.lattice, self.layout, self.steps = case.lattice, case.layout, 0
        self.exchanger, self.program = exchanger, program
        planes, (rows, nx) = slab.planes, slab.shape[1:]
        self.grid = self.layout.grid(self.lattice, planes, rows, nx, geometry.around, case.ghost)
        self.first = self.grid.ghost
        self.kernels = device.compile(program)
        whole, listed = geometry, self.grid.unlisted(geometry.lists, self.lattice)
        walls = BoxWalls.of(case, slab, self.grid)
        if program.sweep and device.apply_walls(self.kernels, walls, self.grid):
            listed = walls.others(listed)
        self.geometry = geometry = replace(geometry, lists=tuple(listed))
        memory_plan.require(device, case, slab, geometry.lists, geometry.around)
        self.tables = {
            name: device.upload(value) if isinstance(value, np.ndarray) else value
            for name, value in (self.grid.arguments() | self.grid.tables(geometry)).items()
        }
        self.period = max(self.layout.parities, self.layout.buffers)
        self._timed: list[tuple] = []  # launches that follow the time: (launch, ahead, names)
        self.coupled = Coupled(self) if case.coupling else Uncoupled(self)
        self.fluids = [Populations(self, k, geometry) for k in range(len(case.fluids))]
        self.streaming = [self._collide_streams(k) for k in range(self.period)]
        self.passes = [
            InTurn(self.coupled.passes(k) + self.streaming[k]) for k in range(self.period)
        ]
        self.diagnostics, self.beginning = Diagnostics(self), Beginning(self)
        self.times, self.lead = StepTimes(device), Lead(device.stream("bulk"))
        self.replay = Replay(self)
        self.exchanged = MomentumExchange(self.fluids[0], whole) if case.weighed else None

    def _collide_streams(self, k: int) -> list:
        """The pass of each fluid that ends steps t with t % period = k."""
        following = (k + 1) % self.layout.parities
        fields = self.coupled.arrays()
        return [
            fluid.collide_stream(k, self.coupled.reads_of(fluid, following), **fields)
            for fluid in self.fluids
        ]

    @property
    def bytes_per_update(self) -> int:
        """Bytes that the update of a cell reads and writes, counted from the kernels' accesses.

        The mean of the parities: a table of neighbours may be read every other step.
        """
        program, parities = self.program, range(self.layout.parities)
        size = {"node_next": 4, self.coupled.name: np.dtype(program.compute).itemsize}
        usual, total = np.dtype(program.storage).itemsize, 0
        for name in (n for parity in parities for n in self.coupled.step_kernels(parity)):
            for side in (program.kernels[name].reads, program.kernels[name].writes):
                total += sum(size.get(one, usual) for one, _ in {(a.buffer, a.slot) for a in side})
        return total // len(parities)

    def sizes(self) -> dict:
        """Numbers that every kernel over the populations takes."""
        below = self.slab.begin - self.first  # planes of the box below the array's first
        box = {"nx": self.grid.nx, "rows": self.grid.rows, "below": below, "odd": below % 2}
        return {**box, **self.tables}

    @cached_property
    def flags(self):
        """Flags of all cells on the device, for those that look at neighbours."""
        return self.device.upload(self.geometry.flags)

    @cached_property
    def force(self) -> list:
        """The components of the forces on all fluids."""
        return [value for k in range(len(self.case.fluids)) for value in self.case.force_on(k)]

    def forces(self, t: int) -> dict:
        """Numbers of the forces at time t; before the beginning that of t = 0."""
        found = [value.evaluate(self.case.domain.size, max(t, 0)) for value in self.force]
        return {name: number for numbers in found for name, number in numbers.items()}

    def bind_step(self, name: str, **arguments):
        """As `bind`, for a kernel of the steps: from now on it is given what changes with time.

        What enters at boundaries is made from what left at t; all others collide at t + 1.
        """
        launch = self.bind(name, **arguments)
        kernel = self.program.kernels[name]
        wanted = {argument.name for argument in kernel.arguments}
        names = wanted & {name for value in self.force for name in value.timed}
        if names:
            self._timed.append((launch, kernel.phase != "boundary", names))
        return launch

    def bind(self, name: str, **arguments):
        """A kernel of the program with its arguments, those it does not take left out."""
        wanted = {argument.name for argument in self.program.kernels[name].arguments}
        given = self.sizes() | self.forces(self.steps) | {"first": self.first}
        given |= self.coupled.numbers
        if "flags" in wanted:
            given["flags"] = self.flags
        return self.kernels[name].bind(
            **{key: value for key, value in (given | arguments).items() if key in wanted}
        )

    def current(self) -> dict:
        """The arrays that hold what left each cell in the last step, of all fluids."""
        arrays = {f"f{fluid.suffix}": fluid.current()["f"] for fluid in self.fluids}
        return arrays | self.coupled.arrays()

    def step(self) -> None:
        """One time step: what enters at boundaries, then collide and stream, then exchange."""
        k = self.steps % self.period
        self.times.run(self.steps, partial(self.enqueue_step, k), self.passes[k])
        self.steps += 1
        self.lead.passed()

    def advance(self, steps: int) -> None:
        """So many time steps; where the device can, many are enqueued at once."""
        self.replay.advance(steps)

    @property
    def follows_time(self) -> bool:
        """Whether anything that the steps of any rank are given changes with time."""
        case = self.case
        boundaries = (*case.boundaries, *(body.boundary for body in case.bodies))
        given = (value for each in boundaries for value in each.given())
        return any(value.timed for value in (*self.force, *given))

    def enqueue_step(self, k: int, timed: bool = False) -> tuple:
        """The work of a step t with t % period = k, and the events of its passes."""
        if self._timed:
            now, then = self.forces(self.steps), self.forces(self.steps + 1)
            for launch, ahead, names in self._timed:
                launch.set(**{name: (then if ahead else now)[name] for name in names})
        for fluid in self.fluids:
            fluid.lists.run(k)
        return self.passes[k].run(timed)

    def initialise(self) -> None:
        """The state before step 0."""
        self.beginning.fill()
        self.beginning.settle()

    def resume(self, step: int) -> None:
        """Go on from `step`, whose state the arrays hold but for what the neighbours must send."""
        if step % self.period != self.steps % self.period:
            raise ValueError(f"the state was written for step {self.steps}, not {step}")
        self.steps = step
        self.diagnostics.forget()
        self.coupled.forget()
        self.device.synchronize()
        for each in self.streaming[(step - 1) % self.period]:
            each.exchange.start()
            each.exchange.finish()
        if step <= 0:
            for fluid in self.fluids:
                fluid.lists.begin(step % self.period)

    def blocks(self):
        """Pieces (begin, end) of the slab's planes, whose rho and u take few bytes."""
        plane = 8 * (1 + self.lattice.D) * self.grid.rows * self.grid.nx
        step = max(1, BLOCK_BYTES // plane)
        for begin in range(0, self.slab.planes, step):
            yield begin, min(begin + step, self.slab.planes)

    def enqueue(self, name: str, begin: int, end: int, of=None, **arrays) -> None:
        """Have the bulk stream run a kernel over planes of the state, of all fluids or `of` one."""
        origin, of = self.first + begin, of or self
        if name not in of.program.kernels:
            name = f"{name}_{self.steps % self.layout.parities}"
        launch = of.bind(name, origin=origin, **(self.current() | of.current() | arrays))
        launch(self.device.stream("bulk"), origin, self.first + end)

    def over_block(self, name: str, begin: int, end: int, **arrays) -> None:
        """Run a kernel over planes begin..end of the state, and wait."""
        self.enqueue(name, begin, end, **arrays)
        self.device.synchronize()

    @property
    def state_groups(self) -> tuple[Group, ...]:
        """What a checkpoint holds of each fluid."""
        return tuple(fluid.group for fluid in self.fluids)

    def _labelled(self, label: str) -> Populations:
        return next(fluid for fluid in self.fluids if fluid.fluid.label == label)

    def read_state(self, label: str, begin: int, end: int) -> np.ndarray:
        """What left each cell of a fluid, see Populations.read_state."""
        return self._labelled(label).read_state(begin, end)

    def write_state(self, label: str, begin: int, state: np.ndarray, step: int) -> None:
        """The inverse of `read_state`, as the state after `step` steps; `resume(step)` ends it."""
        self.steps = step
        self._labelled(label).write_state(begin, state)

    @property
    def entry_states(self) -> list:
        """What boundaries keep of each entry, see lists.State; the same labels on all slabs."""
        return [state for fluid in self.fluids for state in fluid.lists.states]

    @property
    def field_names(self) -> tuple[str, ...]:
        """Names that `fields` knows."""
        return self.diagnostics.names

    def fields(self, names, begin: int, end: int) -> dict[str, np.ndarray]:
        """Macroscopic fields of planes begin..end: (planes, rows, nx), or (…, components)."""
        return self.diagnostics.fields(names, begin, end)

    def copies(self, names, planes: int, host_bytes: int) -> FieldCopies:
        """The fields of blocks of at most `planes` planes, brought to the host behind the steps."""
        return FieldCopies(self.diagnostics, names, planes, host_bytes)

    def sums(self) -> tuple[tuple[str, ...], np.ndarray]:
        """Names of columns, and their sums over the fluid cells of each owned plane, in double."""
        return self.diagnostics.sums()

    def speeds(self) -> tuple[np.ndarray, np.ndarray]:
        """Of each owned plane the largest speed, and how many fluid cells are not finite."""
        return self.diagnostics.speeds()

    def solid(self, begin: int, end: int) -> np.ndarray:
        """True where a cell is solid, (end - begin, rows, nx)."""
        return self.geometry.solid[begin:end] != 0
