"""The current state of a slab: populations of all fluids, and the fields of their coupling."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from mpilbm.backends.interfaces import Launch, Runner
from mpilbm.codegen.program import Access
from mpilbm.codegen.structure import averaged
from mpilbm.halo import Exchange
from mpilbm.layouts.grid import FieldGrid
from mpilbm.physics.boundaries import one_face_each
from mpilbm.solids.ghost_solids import WallCells, wall_cells
from mpilbm.solver.boundary_lists import by_plane, in_turn
from mpilbm.solver.context import SlabContext
from mpilbm.solver.exchange_plan import exchange_plan
from mpilbm.solver.passes import Pass
from mpilbm.solver.populations import CurrentState, Populations, suffixed

BLOCK_BYTES = 2**26  # of rho and u on the device at a time


class Coupled:
    """The fields of a slab's coupling, see couplings.Coupling: one array for all of them.

    ```
    show    f of all fluids, as the step gathers them -> fields of the cell
    walls   fields of the fluid around -> fields of solid cells and of those beyond faces
            halo exchange of the planes that neighbours read, overlapped with the bulk planes
    ```

    If the fields of walls are given, `walls` follows `show` in the same pass. If they are means
    over neighbouring fluid cells, which may be in other slabs, both are passes with their own
    exchange.
    """

    def __init__(self, context: SlabContext, fluids: list[Populations]):
        self.context, self.fluids, self.case = context, fluids, context.case
        kernels, slab = context.program.kernels, context.slab
        self.grid = FieldGrid.of(self.case, slab.planes, *slab.shape[1:])
        self.field = context.device.allocate(self.grid.count, context.program.compute)
        cells = wall_cells(self.case, slab, context.geometry, self.grid)
        self._walls = self._wall_launch(cells)
        steps = (fluid.program.kernels["collide_stream_0"] for fluid in fluids)
        self._exchange = self._prepared(access for kernel in steps for access in kernel.reads)
        means = averaged(self.case)
        self._before_walls = self._prepared(kernels["walls"].reads) if means else None
        self._looked: int | None = None  # the step whose fields the array holds

    def _prepared(self, reads: Iterable[Access]) -> Exchange:
        return self.context.exchanger.prepare(exchange_plan(self.grid, (), reads), [self.field])

    def reads_of(self, fluid: Populations, parity: int) -> list[Access]:
        """The accesses by which `show` reads a fluid's populations in steps of this parity."""
        name = fluid.grid.name
        reads = self.context.program.kernels[f"show_{parity}"].reads
        return [Access(name, a.slot, a.offset) for a in reads if a.buffer == name + fluid.suffix]

    def arrays(self) -> dict[str, Any]:
        """The array, and the numbers by which kernels find a value in it."""
        return {"field": self.field, **self.grid.arguments()}

    def passes(self, k: int) -> list[Pass]:
        """The passes of steps t with t % period = k before the fluids collide."""
        arrays = suffixed(self.fluids, lambda fluid: fluid.arrays(k)) | self.arrays()
        name = f"show_{k % self.case.layout.parities}"
        return self._passes(self.context.bind_step(name, **arrays))

    def _passes(self, launch: Runner) -> list[Pass]:
        if self._before_walls is None:
            both = in_turn(launch, self._walls)
            return [Pass(self.context, self.grid, both, self._exchange)]
        return [
            Pass(self.context, self.grid, launch, self._before_walls),
            Pass(self.context, self.grid, self._walls, self._exchange),
        ]

    def _wall_launch(self, cells: WallCells) -> Runner:
        """A launch over planes of the kernel of the wall cells in them."""
        context, case, coupling = self.context, self.case, self.case.coupling
        assert coupling is not None, "the case couples fluids"
        real = context.program.compute
        owners = (*one_face_each(case.boundaries), *(body.boundary for body in case.bodies))
        shown = [list(coupling.wall(case, each.wetting or {}).values()) for each in owners]
        scale, add = np.array(shown or np.zeros((1, 1, 2)), real).transpose(2, 0, 1)
        arrays = {
            "wall_at": cells.at,
            "wall_owner": cells.owner,
            "wall_sum": add,
            "wall_start": cells.start,
            "wall_source": cells.source,
            "wall_scale": scale,
            "wall_weight": cells.weight.astype(real),
        }
        numbers = self.arrays() | {"nx": self.grid.nx, "rows": self.grid.rows}
        wanted = {argument.name for argument in context.program.kernels["walls"].arguments}
        given: dict[str, Any] = {n: context.device.upload(arrays[n]) for n in wanted & set(arrays)}
        given |= {name: value for name, value in numbers.items() if name in wanted}
        return by_plane(context.kernels["walls"].bind(**given), cells.ends, self.grid.ghost)

    def look(self) -> None:
        """Compute the fields of the current populations, once a step; collective at first use."""
        steps = self.context.clock.steps
        if self._looked != steps:
            launch = self.context.bind(f"look_{self.context.parity}", **self._current())
            for each in self._passes(launch):
                each.run()
            self._looked = steps

    def _current(self) -> dict[str, Any]:
        """The fields, and the outgoing populations of the last step of each fluid."""
        return suffixed(self.fluids, Populations.current) | self.arrays()

    def begin(self) -> None:
        """Complete the initial state of the interacting fluids; collective."""
        self.forget()
        self.look()
        for fluid in self.fluids:
            fluid.over_block("begin", 0, self.context.slab.planes, **self._current())
        self.forget()

    def forget(self) -> None:
        """Compute the fields again at the next `look`, because the populations were replaced."""
        self._looked = None


class FlowState(CurrentState):
    """The arrays that kernels over all fluids read, for diagnostics and initial conditions."""

    def __init__(
        self, context: SlabContext, fluids: list[Populations], coupled: Coupled | None = None
    ):
        self.context, self.fluids, self.coupled = context, fluids, coupled
        self.program = context.program

    def current(self) -> dict[str, Any]:
        """The arrays with the outgoing populations of the last step, and the coupling's fields."""
        arrays = suffixed(self.fluids, Populations.current)
        return arrays | self.coupled.arrays() if self.coupled else arrays

    def look(self) -> None:
        """Compute the fields of a coupling for the current populations; collective."""
        if self.coupled:
            self.coupled.look()

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Ranges (begin, end) of the slab's planes whose rho and u take few bytes."""
        grid, planes = self.context.grid, self.context.slab.planes
        plane = 8 * (1 + self.context.case.lattice.D) * grid.rows * grid.nx
        step = max(1, BLOCK_BYTES // plane)
        for begin in range(0, planes, step):
            yield begin, min(begin + step, planes)

    def solid(self, begin: int, end: int) -> np.ndarray:
        """True in solid cells, (end - begin, rows, nx)."""
        return self.context.geometry.solid[begin:end] != 0


class StateLaunch:
    """A kernel over planes of the state, bound to its arguments at first use.

    There is a binding for each step of a period, and for each set of the numbers of a call.
    """

    def __init__(self, state: FlowState, name: str, **arguments: Any):
        self._state, self._name, self._arguments = state, name, arguments
        self._launches: dict[tuple[int, ...], Launch] = {}

    def __call__(self, begin: int, end: int, **numbers: int) -> None:
        """Enqueue it for planes begin..end, with these numbers among the arguments."""
        state, context = self._state, self._state.context
        key = (context.clock.steps % context.period, *numbers.values())
        if key not in self._launches or context.forces.timed:
            self._launches[key] = state.launch(self._name, 0, **self._arguments, **numbers)
        context.over_planes(self._launches[key], begin, end)
