"""The fields by which coupled fluids interact, and the passes that compute them."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from mpilbm.backends.interfaces import Runner
from mpilbm.codegen import averaged
from mpilbm.codegen.program import Access
from mpilbm.halo import Exchange
from mpilbm.layouts.field_grid import FieldGrid
from mpilbm.physics.boundaries import one_face_each
from mpilbm.solids.ghost_solids import WallCells, wall_cells
from mpilbm.solver.boundary_lists import by_plane, in_turn
from mpilbm.solver.context import SlabContext
from mpilbm.solver.exchange_plan import exchange_plan
from mpilbm.solver.passes import Pass
from mpilbm.solver.populations import Populations, suffixed


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
