"""The fields by which coupled fluids interact, and the passes that compute them."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from mpilbm.backends.interfaces import Runner
from mpilbm.codegen import averaged
from mpilbm.codegen.program import OF, Access
from mpilbm.halo import Exchange
from mpilbm.layouts.grid import FieldGrid
from mpilbm.physics.boundaries import one_face_each
from mpilbm.solids.ghost_solids import WallCells, wall_cells
from mpilbm.solver.context import SlabContext
from mpilbm.solver.exchange_plan import exchange_plan
from mpilbm.solver.passes import Pass
from mpilbm.solver.populations import Populations


class Uncoupled:
    """A single fluid, with the interface of `Coupled`: it has no fields and no further passes."""

    name = ""

    def passes(self, k: int) -> list[Pass]:
        """No passes."""
        return []

    def reads_of(self, fluid: Populations, parity: int) -> list[Access]:
        """No accesses."""
        return []

    def arrays(self) -> dict[str, Any]:
        """No arrays."""
        return {}

    def step_kernels(self, parity: int) -> list[str]:
        """The kernels over all cells of a step."""
        return [f"collide_stream_{parity}"]

    def look(self) -> None:
        """Do nothing."""

    def begin(self) -> None:
        """Do nothing: the initial state is complete."""

    def forget(self) -> None:
        """Do nothing."""


class Coupled:
    """The fields of a slab's coupling, see couplings.Coupling: one array for all of them.

    ```
    show    f of all fluids, as the step gathers them -> fields of the cell
    walls   fields of the fluid around -> fields of solid cells and of those beyond faces
            halo exchange of the planes that neighbours read, overlapped with the bulk planes
    ```

    If the fields of walls are given, `walls` follows `show` in the same pass. If they are means
    over the neighbouring fluid cells, `walls` also needs planes of the neighbouring ranks; then
    `show` and `walls` are two passes, each with its own exchange.
    """

    name = "field"

    def __init__(self, context: SlabContext, fluids: list[Populations]):
        self.context, self.fluids = context, fluids
        self.case, self.device = context.case, context.device
        case, kernels = self.case, context.program.kernels
        if case.coupling is None:
            raise ValueError("the case couples no fluids")
        self.coupling = case.coupling
        slab, self.averaged = context.slab, averaged(case)
        self.grid = FieldGrid.of(case, slab.planes, *slab.shape[1:])
        self.field = self.device.allocate(self.grid.count, context.program.compute)
        self._walls = self._wall_launch(wall_cells(case, slab, context.geometry, self.grid))
        steps = (kernels[n] for n in self._collide_kernels(0))
        around = [access for kernel in steps for access in kernel.reads]
        self._exchange = self._prepared(around)
        self._before_walls = self._prepared(kernels["walls"].reads) if self.averaged else None
        self._looked: int | None = None  # the step whose fields the array holds

    def _prepared(self, reads: Iterable[Access]) -> Exchange:
        return self.context.exchanger.prepare(exchange_plan(self.grid, (), reads), [self.field])

    def _collide_kernels(self, parity: int) -> list[str]:
        return [f"collide_stream_{parity}{OF.format(k)}" for k in range(len(self.case.fluids))]

    def step_kernels(self, parity: int) -> list[str]:
        """The kernels over all cells of a step."""
        return [f"show_{parity}", *self._collide_kernels(parity)]

    def reads_of(self, fluid: Populations, parity: int) -> list[Access]:
        """The accesses by which `show` reads a fluid's populations in steps of this parity."""
        end, name = OF.format(fluid.number), fluid.grid.name
        reads = self.context.program.kernels[f"show_{parity}"].reads
        return [Access(name, a.slot, a.offset) for a in reads if a.buffer == name + end]

    def arrays(self) -> dict[str, Any]:
        """The array, and the numbers by which kernels find a value in it."""
        return {"field": self.field, **self.grid.arguments()}

    def passes(self, k: int) -> list[Pass]:
        """The passes of steps t with t % period = k before the fluids collide."""
        arrays = {
            f"{name}{fluid.suffix}": array
            for fluid in self.fluids
            for name, array in fluid.arrays(k).items()
        }
        name = f"show_{k % self.case.layout.parities}"
        return self._passes(self.context.bind_step(name, **arrays, **self.arrays()))

    def _passes(self, launch: Runner) -> list[Pass]:
        walls = self._walls
        if self._before_walls is not None:
            return [
                Pass(self.context, self.grid, launch, self._before_walls),
                Pass(self.context, self.grid, walls, self._exchange),
            ]

        def both(stream: Any, begin: int, end: int, stride: int = 1) -> None:
            launch(stream, begin, end, stride)
            walls(stream, begin, end, stride)

        return [Pass(self.context, self.grid, both, self._exchange)]

    def _wall_launch(self, cells: WallCells) -> Runner:
        """A launch over planes of the kernel of the wall cells in them."""
        case, upload, real = self.case, self.device.upload, self.context.program.compute
        owners = (*one_face_each(case.boundaries), *(body.boundary for body in case.bodies))
        shown = [list(self.coupling.wall(case, each.wetting or {}).values()) for each in owners]
        scale, add = np.array(shown or np.zeros((1, 1, 2)), real).transpose(2, 0, 1)
        arrays = {"wall_at": cells.at, "wall_owner": cells.owner, "wall_sum": add}
        arrays |= {"wall_start": cells.start, "wall_source": cells.source, "wall_scale": scale}
        arrays |= {"wall_weight": cells.weight.astype(real)}
        wanted = {argument.name for argument in self.context.program.kernels["walls"].arguments}
        given: dict[str, Any] = {n: upload(array) for n, array in arrays.items() if n in wanted}
        given |= {name: value for name, value in self.arrays().items() if name in wanted}
        box = {"nx": self.grid.nx, "rows": self.grid.rows}
        given |= {name: number for name, number in box.items() if name in wanted}
        kernel, first = self.context.kernels["walls"].bind(**given), self.grid.ghost

        def launch(stream: Any, begin: int, end: int, stride: int = 1) -> None:
            alone = [(plane, plane + 1) for plane in range(begin, end, stride)]
            for lower, upper in [(begin, end)] if stride == 1 else alone:
                kernel(stream, int(cells.ends[lower - first]), int(cells.ends[upper - first]))

        return launch

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
        populations = {f"f{fluid.suffix}": fluid.current()["f"] for fluid in self.fluids}
        return populations | self.arrays()

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
