"""The solver of one slab: its arrays, kernels and streams, and the step."""

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from mpilbm import memory_plan
from mpilbm.beginning import Beginning
from mpilbm.box_walls import BoxWalls
from mpilbm.codegen.program import Program
from mpilbm.diagnostics import Diagnostics
from mpilbm.edge_first import Pass
from mpilbm.field_copies import FieldCopies
from mpilbm.lists import Lists
from mpilbm.momentum_exchange import MomentumExchange
from mpilbm.passes import exchange_plan
from mpilbm.step_times import StepTimes

BLOCK_BYTES = 2**26  # of initial fields on the device at a time


@dataclass(frozen=True)
class Group:
    """A part of the state in a checkpoint: (planes, components, rows, nx) values of `dtype`."""

    label: str
    components: int
    dtype: str


class Solver:
    """One slab of a case on one device.

    `steps` counts what is done. Step t has parity t % parities and, with two arrays, reads array
    t % 2 and writes the other.
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
        count, storage = self.grid.count, program.storage
        self.f = [device.allocate(count, storage) for _ in range(self.layout.buffers)]
        self.tables = {
            name: device.upload(value) if isinstance(value, np.ndarray) else value
            for name, value in (self.grid.arguments() | self.grid.tables(geometry)).items()
        }
        self.period = max(self.layout.parities, self.layout.buffers)
        force = case.fluids[0].force
        self.force = force.components() if force else []
        self._timed: list[tuple] = []  # launches that follow the time: (launch, ahead, names)
        self.lists = Lists(self, geometry)
        for k in range(self.period):
            self.lists.prepare(k, k % self.layout.parities, **self._arrays(k))
        self.passes = [self._collide_stream(k) for k in range(self.period)]
        self.diagnostics, self.beginning = Diagnostics(self), Beginning(self)
        self.times = StepTimes(device)
        self.exchanged = MomentumExchange(self, whole) if case.weighed else None

    @property
    def bytes_per_update(self) -> int:
        """Bytes that the update of a cell reads and writes, counted from the kernel's accesses.

        The mean of the parities: a table of neighbours may be read every other step.
        """
        size = {self.grid.name: np.dtype(self.program.storage).itemsize, "node_next": 4}
        parities, total = range(self.layout.parities), 0
        for kernel in (self.program.kernels[f"collide_stream_{p}"] for p in parities):
            for side in (kernel.reads, kernel.writes):
                total += sum(size[name] for name, _ in {(a.buffer, a.slot) for a in side})
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

    def numbers(self) -> dict:
        """Numbers of the case that kernels take, but for the force: rates."""
        fluid = self.case.fluids[0]
        return fluid.collision.arguments(fluid.viscosity, self.lattice)

    def forces(self, t: int) -> dict:
        """Numbers of the force at time t; before the beginning that of t = 0."""
        found = [value.evaluate(self.case.domain.size, max(t, 0)) for value in self.force]
        return {name: number for numbers in found for name, number in numbers.items()}

    def bind_step(self, name: str, **arguments):
        """As `bind`, for a kernel of the steps: from now on it is given what changes with time.

        What enters at boundaries is made from what left at t; all others collide at t + 1.
        """
        launch = self.bind(name, **arguments)
        wanted = {argument.name for argument in self.program.kernels[name].arguments}
        names = wanted & {name for value in self.force for name in value.timed}
        if names:
            self._timed.append((launch, not name.startswith("enter_"), names))
        return launch

    def bind(self, name: str, **arguments):
        """A kernel of the program with its arguments, those it does not take left out."""
        wanted = {argument.name for argument in self.program.kernels[name].arguments}
        given = self.sizes() | self.numbers() | self.forces(self.steps) | {"first": self.first}
        if "flags" in wanted:
            given["flags"] = self.flags
        return self.kernels[name].bind(
            **{key: value for key, value in (given | arguments).items() if key in wanted}
        )

    def current(self) -> dict:
        """The array that holds what left each cell in the last step."""
        return {"f": self.f[self.steps % self.layout.buffers]}

    def _collide_stream(self, k: int) -> Pass:
        """The pass of all steps t with t % period = k, with the exchange before step k + 1."""
        parities, buffers = self.layout.parities, self.layout.buffers
        name, following = (f"collide_stream_{t % parities}" for t in (k, k + 1))
        kernels = self.program.kernels
        reads = [*kernels[following].reads, *self._list_reads((k + 1) % parities)]
        plan = exchange_plan(self.grid, kernels[name].writes, reads, (k + 1) % buffers)
        exchange = self.exchanger.prepare(plan, self.f)
        launch = self.lists.followed(self.bind_step(name, **self._arrays(k)), k)
        return Pass(self.device, self.grid, self.slab, launch, exchange)

    def other_pass(self, name: str, k: int, **arguments) -> Pass:
        """Another kernel in place of that of the pass k, which reads and writes alike."""
        launch = self.bind(name, **arguments, **self._arrays(k))
        return Pass(self.device, self.grid, self.slab, launch, self.passes[k].exchange)

    def _arrays(self, k: int) -> dict:
        """The arrays of steps t with t % period = k: read, and written."""
        source, target = (self.f[t % self.layout.buffers] for t in (k, k + 1))
        return {"f": source, "f_in": source, "f_out": target}

    def _list_reads(self, parity: int) -> list:
        """What the boundary lists read of the populations in a step of this parity."""
        kernels = self.program.kernels.values()
        lists = [k for k in kernels if k.over == "entries" and k.name.endswith(f"_{parity}")]
        return [access for kernel in lists for access in kernel.reads]

    def step(self) -> None:
        """One time step: what enters at boundaries, then collide and stream, then exchange."""
        k = self.steps % self.period
        self.times.run(self.steps, partial(self._step, k), self.passes[k])
        self.steps += 1

    def _step(self, k: int, timed: bool) -> tuple:
        """The work of a step, and the events of its pass."""
        if self._timed:
            now, then = self.forces(self.steps), self.forces(self.steps + 1)
            for launch, ahead, names in self._timed:
                launch.set(**{name: (then if ahead else now)[name] for name in names})
        self.lists.run(k)
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
        exchange = self.passes[(step - 1) % self.period].exchange
        self.device.synchronize()
        exchange.start()
        exchange.finish()
        if step <= 0:
            self.lists.begin(step % self.period)

    def blocks(self):
        """Pieces (begin, end) of the slab's planes, whose rho and u take few bytes."""
        plane = 8 * (1 + self.lattice.D) * self.grid.rows * self.grid.nx
        step = max(1, BLOCK_BYTES // plane)
        for begin in range(0, self.slab.planes, step):
            yield begin, min(begin + step, self.slab.planes)

    def enqueue(self, name: str, begin: int, end: int, **arrays) -> None:
        """Have the bulk stream run a kernel over planes begin..end of the state."""
        origin = self.first + begin
        if name not in self.program.kernels:
            name = f"{name}_{self.steps % self.layout.parities}"
        launch = self.bind(name, origin=origin, **(self.current() | arrays))
        launch(self.device.stream("bulk"), origin, self.first + end)

    def over_block(self, name: str, begin: int, end: int, **arrays) -> None:
        """Run a kernel over planes begin..end of the state, and wait."""
        self.enqueue(name, begin, end, **arrays)
        self.device.synchronize()

    @property
    def state_groups(self) -> tuple[Group, ...]:
        """What a checkpoint holds of each fluid."""
        return tuple(
            Group(fluid.label, len(self.grid.slots), self.program.storage)
            for fluid in self.case.fluids
        )

    def read_state(self, label: str, begin: int, end: int) -> np.ndarray:
        """What left each cell, (end - begin, Q, rows, nx), in the lattice's order.

        The stored moments in their order where the layout keeps these.
        """
        shape = (end - begin, len(self.grid.slots), self.grid.rows, self.grid.nx)
        state = self.device.allocate(int(np.prod(shape)), self.program.storage)
        self.over_block("export", begin, end, state=state)
        return self.device.download(state).reshape(shape)

    def write_state(self, label: str, begin: int, state: np.ndarray, step: int) -> None:
        """The inverse of `read_state`, as the state after `step` steps; `resume(step)` ends it."""
        self.steps = step
        self.over_block("import", begin, begin + len(state), state=self.device.upload(state))

    @property
    def entry_states(self) -> list:
        """What boundaries keep of each entry, see lists.State; the same labels on all slabs."""
        return self.lists.states

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

    def solid(self, begin: int, end: int) -> np.ndarray:
        """True where a cell is solid, (end - begin, rows, nx)."""
        return self.geometry.solid[begin:end] != 0
