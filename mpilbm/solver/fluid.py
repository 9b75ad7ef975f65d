"""The populations of one fluid on a slab: its arrays, kernels, boundary lists and exchange."""

from dataclasses import dataclass, replace

import numpy as np

from mpilbm.codegen.program import OF
from mpilbm.solver.boundary_lists import Lists
from mpilbm.solver.exchange_plan import exchange_plan
from mpilbm.solver.passes import Pass


@dataclass(frozen=True)
class Group:
    """A part of the state in a checkpoint: (planes, components, rows, nx) values of `dtype`."""

    label: str
    components: int
    dtype: str


class Populations:
    """One of the fluids of a solver.

    Step t has parity t % parities and, with two arrays, reads array t % 2 and writes the other.
    Kernels have plain names here; those of fluids that are coupled end in OF and their `number`.
    """

    def __init__(self, solver, number: int, geometry):
        self.solver, self.fluid = solver, solver.case.fluids[number]
        self.number, self.suffix = number, OF.format(number) if solver.case.coupling else ""
        self.case, self.slab, self.device = solver.case, solver.slab, solver.device
        self.lattice, self.layout, self.grid = solver.lattice, solver.layout, solver.grid
        kernels = {
            name.removesuffix(self.suffix): kernel
            for name, kernel in solver.program.kernels.items()
            if kernel.fluid == (number if solver.case.coupling else None)
        }
        self.program = replace(solver.program, kernels=kernels)
        count, storage = self.grid.count, self.program.storage
        self.f = [self.device.allocate(count, storage) for _ in range(self.layout.buffers)]
        self.lists = Lists(self, geometry)
        for k in range(solver.period):
            self.lists.prepare(k, k % self.layout.parities, **self.arrays(k))

    @property
    def steps(self) -> int:
        """What is done."""
        return self.solver.steps

    def numbers(self) -> dict:
        """Numbers of this fluid that its kernels take, but for the force: rates."""
        return self.fluid.collision.arguments(self.fluid.viscosity, self.lattice)

    def bind(self, name: str, **arguments):
        """A kernel of this fluid with its arguments, those it does not take left out."""
        return self.solver.bind(name + self.suffix, **(self.numbers() | arguments))

    def bind_step(self, name: str, **arguments):
        """As `bind`, for a kernel of the steps: see Solver.bind_step."""
        return self.solver.bind_step(name + self.suffix, **(self.numbers() | arguments))

    def current(self) -> dict:
        """The array that holds what left each cell in the last step."""
        return {"f": self.f[self.steps % self.layout.buffers]}

    def arrays(self, k: int) -> dict:
        """The arrays of steps t with t % period = k: read, and written."""
        source, target = (self.f[t % self.layout.buffers] for t in (k, k + 1))
        return {"f": source, "f_in": source, "f_out": target}

    def collide_stream(self, k: int, reads=(), **more) -> Pass:
        """The pass of all steps t with t % period = k, with the exchange before step k + 1.

        `reads`: what kernels of all fluids read of this one in step k + 1.
        """
        parities, buffers = self.layout.parities, self.layout.buffers
        name, following = (f"collide_stream_{t % parities}" for t in (k, k + 1))
        kernels = self.program.kernels
        reads = [*kernels[following].reads, *self._list_reads((k + 1) % parities), *reads]
        plan = exchange_plan(self.grid, kernels[name].writes, reads, (k + 1) % buffers)
        exchange = self.solver.exchanger.prepare(plan, self.f)
        launch = self.lists.followed(self.bind_step(name, **self.arrays(k), **more), k)
        return Pass(self.device, self.grid, self.slab, launch, exchange)

    def other_pass(self, name: str, k: int, exchange, **arguments) -> Pass:
        """Another kernel in place of that of the pass k, which reads and writes alike."""
        launch = self.bind(name, **arguments, **self.arrays(k))
        return Pass(self.device, self.grid, self.slab, launch, exchange)

    def _list_reads(self, parity: int) -> list:
        """What the boundary lists read of the populations in a step of this parity."""
        kernels = self.program.kernels.values()
        lists = [k for k in kernels if k.over == "entries" and k.parity == parity]
        return [access for kernel in lists for access in kernel.reads]

    def over_block(self, name: str, begin: int, end: int, **arrays) -> None:
        """Run a kernel over planes begin..end of the state, and wait."""
        self.solver.over_block(name, begin, end, of=self, **arrays)

    @property
    def group(self) -> Group:
        """What a checkpoint holds."""
        return Group(self.fluid.label, len(self.grid.slots), self.program.storage)

    def read_state(self, begin: int, end: int) -> np.ndarray:
        """What left each cell, (end - begin, Q, rows, nx), in the lattice's order.

        The stored moments in their order where the layout keeps these.
        """
        shape = (end - begin, len(self.grid.slots), self.grid.rows, self.grid.nx)
        state = self.device.allocate(int(np.prod(shape)), self.program.storage)
        self.over_block("export", begin, end, state=state)
        return self.device.download(state).reshape(shape)

    def write_state(self, begin: int, state: np.ndarray) -> None:
        """The inverse of `read_state`."""
        self.over_block("import", begin, begin + len(state), state=self.device.upload(state))
