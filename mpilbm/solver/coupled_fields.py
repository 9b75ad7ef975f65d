"""The fields by which coupled fluids act on each other, and the passes that make them."""

import numpy as np

from mpilbm.codegen import averaged
from mpilbm.codegen.program import OF
from mpilbm.geometry.ghost_solids import wall_cells
from mpilbm.layouts.field_grid import FieldGrid
from mpilbm.physics.boundaries import one_face_each
from mpilbm.solver.exchange_plan import exchange_plan
from mpilbm.solver.passes import Pass


class Uncoupled:
    """A fluid by itself: no pass comes before the one in which it collides."""

    name = ""

    def __init__(self, solver):
        self.numbers: dict = {}

    def passes(self, k: int) -> list:
        """None."""
        return []

    def reads_of(self, fluid, parity: int) -> list:
        """Nothing."""
        return []

    def arrays(self) -> dict:
        """None."""
        return {}

    def step_kernels(self, parity: int) -> list[str]:
        """The kernels over all cells of a step."""
        return [f"collide_stream_{parity}"]

    def look(self) -> None:
        """Nothing is to be known of the neighbours."""

    def begin(self) -> None:
        """The initial fields are all."""

    def forget(self) -> None:
        """Nothing is kept."""


class Coupled:
    """The fields of a slab's coupling, see couplings.Coupling: one array for all of them.

    ```
    show    f of all fluids, as the step gathers them -> fields of the cell
    walls   fields of the fluid around -> fields of solid cells and of those beyond faces
            what the neighbours read of it travels, behind the bulk of the pass
    ```

    Walls whose values are given come right behind `show`, in one pass. A wall that shows the mean
    of the fluid beside it has to wait for the neighbours' planes: then both are passes, each with
    its exchange.
    """

    name = "field"

    def __init__(self, solver):
        self.solver, self.case, self.device = solver, solver.case, solver.device
        case, kernels = self.case, solver.program.kernels
        self.coupling, self.numbers = case.coupling, case.coupling.numbers(case)
        slab, self.averaged = solver.slab, averaged(case)
        self.grid = FieldGrid.of(case, slab.planes, *slab.shape[1:])
        self.field = self.device.allocate(self.grid.count, solver.program.compute)
        self._walls = self._wall_launch(wall_cells(case, slab, solver.geometry, self.grid))
        steps = (kernels[n] for n in self._collide_kernels(0))
        around = [access for kernel in steps for access in kernel.reads]
        self._exchange = self._prepared(around)
        self._before_walls = self._prepared(kernels["walls"].reads) if self.averaged else None
        self._looked = None

    def _prepared(self, reads):
        return self.solver.exchanger.prepare(exchange_plan(self.grid, (), reads), [self.field])

    def _collide_kernels(self, parity: int) -> list[str]:
        return [f"collide_stream_{parity}{OF.format(k)}" for k in range(len(self.case.fluids))]

    def step_kernels(self, parity: int) -> list[str]:
        """The kernels over all cells of a step."""
        return [f"show_{parity}", *self._collide_kernels(parity)]

    def reads_of(self, fluid, parity: int) -> list:
        """What `show` reads of a fluid's populations in steps of this parity."""
        end, name = OF.format(fluid.number), fluid.grid.name
        reads = self.solver.program.kernels[f"show_{parity}"].reads
        return [type(a)(name, a.slot, a.offset) for a in reads if a.buffer == name + end]

    def arrays(self) -> dict:
        """The array, and the numbers by which kernels find a value in it."""
        return {"field": self.field, **self.grid.arguments()}

    def passes(self, k: int) -> list[Pass]:
        """Those of steps t with t % period = k, before the fluids collide."""
        arrays = {
            f"{name}{fluid.suffix}": array
            for fluid in self.solver.fluids
            for name, array in fluid.arrays(k).items()
        }
        name = f"show_{k % self.solver.layout.parities}"
        return self._passes(self.solver.bind_step(name, **arrays, **self.arrays()))

    def _passes(self, launch) -> list[Pass]:
        def made(launch, exchange):
            return Pass(self.device, self.grid, self.solver.slab, launch, exchange)

        if self.averaged:
            return [made(launch, self._before_walls), made(self._walls, self._exchange)]

        def both(stream, begin, end, stride=1):
            launch(stream, begin, end, stride)
            self._walls(stream, begin, end, stride)

        return [made(both, self._exchange)]

    def _wall_launch(self, cells):
        """A launch over planes of the kernel of the wall cells in them."""
        case, upload, real = self.case, self.device.upload, self.solver.program.compute
        owners = (*one_face_each(case.boundaries), *(body.boundary for body in case.bodies))
        shown = [list(self.coupling.wall(case, each.wetting).values()) for each in owners]
        scale, add = np.array(shown or np.zeros((1, 1, 2)), real).transpose(2, 0, 1)
        arrays = {"wall_at": cells.at, "wall_owner": cells.owner, "wall_sum": add}
        arrays |= {"wall_start": cells.start, "wall_source": cells.source, "wall_scale": scale}
        arrays |= {"wall_weight": cells.weight.astype(real)}
        wanted = {argument.name for argument in self.solver.program.kernels["walls"].arguments}
        arrays = {name: upload(array) for name, array in arrays.items() if name in wanted}
        kernel = self.solver.kernels["walls"].bind(
            **arrays, **{n: v for n, v in self.arrays().items() if n in wanted}, **self._box(wanted)
        )
        first = self.grid.ghost

        def launch(stream, begin, end, stride=1):
            alone = [(plane, plane + 1) for plane in range(begin, end, stride)]
            for lower, upper in [(begin, end)] if stride == 1 else alone:
                kernel(stream, int(cells.ends[lower - first]), int(cells.ends[upper - first]))

        return launch

    def _box(self, wanted) -> dict:
        box = {"nx": self.grid.nx, "rows": self.grid.rows}
        return {name: number for name, number in box.items() if name in wanted}

    def look(self) -> None:
        """The fields of what left the cells, once a step; the first time collective."""
        solver = self.solver
        if self._looked != solver.steps:
            name = f"look_{solver.steps % solver.layout.parities}"
            for each in self._passes(solver.bind(name, **solver.current())):
                each.run()
            self.device.synchronize()
            self._looked = solver.steps

    def begin(self) -> None:
        """The state before step 0, of fluids that act on each other; collective."""
        self.forget()
        self.look()
        for fluid in self.solver.fluids:
            fluid.over_block("begin", 0, self.solver.slab.planes)
        self.forget()

    def forget(self) -> None:
        """The state is another one now, whatever its step."""
        self._looked = None
