"""The kernels of coupled fluids: fields of cells, fields of walls, and the collisions."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from mpilbm.codegen.coupled_cell import Acted, ActedKernels, CoupledCell
from mpilbm.codegen.diagnostics import Diagnostics, Mixture
from mpilbm.codegen.kernel_text import KernelText
from mpilbm.codegen.kernels import FluidKernels, Options
from mpilbm.codegen.model import Model
from mpilbm.codegen.program import OF, Access
from mpilbm.layouts import HERE, Place
from mpilbm.layouts.grid import FieldGrid
from mpilbm.model.case import Case
from mpilbm.model.expressions import Expression, Populations
from mpilbm.solids.box_walls import rows_end_in_walls

OfFluid = Callable[[int], Populations]  # the populations of fluid k


class CoupledKernels:
    """Generates the kernels of coupled fluids; `averaged`: fields in some walls are means."""

    def __init__(self, case: Case, averaged: bool) -> None:
        assert case.coupling is not None  # see programs.build
        self.case, self.coupling, self.averaged = case, case.coupling, averaged
        self.lattice, self.layout = case.lattice, case.layout
        self.names = self.coupling.neighbour_fields(case) + self.coupling.local_fields(case)
        self.grid = FieldGrid.of(case, 1, 1, 1)
        self.fluids: list[ActedKernels] = []
        self.plain: list[FluidKernels] = []
        periodic = case.domain.periodic[-1]
        for fluid, offset in zip(case.fluids, self.coupling.offsets(case), strict=True):
            forcing = self.coupling.forcing(fluid)
            acted = Acted(self.lattice, fluid.collision, forcing, offset)
            options = Options(walled=rows_end_in_walls(case), periodic=periodic)
            self.fluids.append(ActedKernels(acted, self.layout, options))
            model = Model(self.lattice, fluid.collision, None, offset)
            self.plain.append(FluidKernels(model, self.layout, Options(periodic=periodic)))

    def of_each(self, k: int, parity: int) -> list[KernelText]:
        """The kernels of fluid k alone; names without its number."""
        plain = self.plain[k]
        kept = [plain.initialise(parity), plain.export_state(parity), plain.import_state(parity)]
        return [self.collide_stream(k, parity), self.begin(k, parity), *kept]

    def of_all(self, parity: int) -> list[KernelText]:
        """The kernels that read all fluids."""
        diagnostics = CoupledDiagnostics(self)
        diagnostic: list[KernelText] = [diagnostics.fields(parity), diagnostics.velocity(parity)]
        outputs = range(len(self.coupling.outputs(self.case)))
        diagnostic += [diagnostics.output(k, parity) for k in outputs]
        return [self.fields(parity), self.neighbour_fields(parity), *diagnostic]

    def once(self) -> list[KernelText]:
        """Kernels that are the same in all steps."""
        return [self.walls(), *CoupledDiagnostics(self).once()]

    def collide_stream(self, k: int, parity: int) -> KernelText:
        """One step of a fluid, with the fields of neighbouring cells."""
        fluid = self.fluids[k]
        collision = fluid.model.collision
        text = f"{self.lattice.name}, layout {self.layout.name}: {collision.__doc__}"
        kernel = KernelText("collide_stream", "cells", text, parity=parity, phase="collide")
        cell = CoupledCell(
            self, kernel, lambda _: fluid.incoming(kernel, parity, fluid.pointer("in"))
        )
        return fluid.store_step(kernel, parity, self.coupling.collide(cell, k))

    def begin(self, k: int, parity: int) -> KernelText:
        """Initial outgoing populations, from populations in equilibrium without a force."""
        text, fluid = f"{self.coupling.name}: f_out before the first step", self.fluids[k]
        kernel = KernelText("begin", "cells", text, parity=parity)
        others = self.outgoing(kernel, parity)
        cell = CoupledCell(
            self, kernel, lambda n: fluid.outgoing(kernel, parity) if n == k else others(n)
        )
        before = (parity - 1) % self.layout.parities
        fluid.store(kernel, before, self.coupling.initial_populations(cell, k), "f")
        return kernel

    def fields(self, parity: int) -> KernelText:
        """All fields, from the incoming populations of the cell."""
        kernel = KernelText("show", "cells", self.coupling.__doc__ or "", parity=parity)

        def incoming(k: int) -> Populations:
            fluid = self.fluids[k]
            pointer = fluid.pointer("in") + OF.format(k)
            return fluid.incoming(kernel, parity, pointer, f"f_{k}")

        return self._fields_kernel(kernel, incoming, self.names)

    def neighbour_fields(self, parity: int) -> KernelText:
        """The fields that neighbours read, from the outgoing populations of the cell."""
        kernel = KernelText("look", "cells", self.coupling.__doc__ or "", parity=parity)
        return self._fields_kernel(
            kernel, self.outgoing(kernel, parity), self.coupling.neighbour_fields(self.case)
        )

    def _fields_kernel(
        self, kernel: KernelText, populations: OfFluid, names: Sequence[str]
    ) -> KernelText:
        cell = CoupledCell(self, kernel, self._with_number(kernel, populations))
        values = self.coupling.fields(cell)
        for name in names:
            slot = self.names.index(name)
            kernel.write("field", self.grid, Place(slot, HERE), values[name])
        return kernel

    def outgoing(self, kernel: KernelText, parity: int) -> OfFluid:
        """A function of k: the outgoing populations of fluid k in the last step."""

        def populations(k: int) -> Populations:
            read = self.fluids[k].reader(kernel, f"f{OF.format(k)}", f"f_{k}")
            return self.layout.outgoing(self.lattice, parity, read, self.fluids[k].model)

        return populations

    @staticmethod
    def _with_number(kernel: KernelText, populations: OfFluid) -> OfFluid:
        """The populations of fluid k; reads are recorded for a field whose name ends in k."""

        def read(k: int) -> Populations:
            before = len(kernel.reads)
            f = populations(k)
            kernel.reads[before:] = [
                replace(access, buffer=access.buffer + OF.format(k))
                for access in kernel.reads[before:]
            ]
            return f

        return read

    def walls(self) -> KernelText:
        """Fields in cells without fluid: scale * (mean over the fluid cells around) + sum."""
        kernel = KernelText("walls", "entries", "field = scale * sum_k weight_k field_k + sum")
        kernel.declare(wall_at="int64*", wall_owner="int32*", wall_sum="real*", field="real*")
        if self.averaged:
            kernel.declare(wall_start="int64*", wall_source="int64*")
            kernel.declare(wall_weight="real*", wall_scale="real*")
        kernel.sizes(self.grid)
        count = len(self.coupling.neighbour_fields(self.case))
        kernel.do("const int64 at = wall_at[entry]; const int owner = wall_owner[entry];")
        for slot in range(count):
            value = f"wall_sum[owner * {count} + {slot}]"
            if self.averaged:
                kernel.do(f"real mean_{slot} = R(0);")
                kernel.do(
                    "for (int64 k = wall_start[entry]; k < wall_start[entry + 1]; k++) "
                    f"mean_{slot} += wall_weight[k] * field[wall_source[k] + {slot} * field_slot];"
                )
                value += f" + wall_scale[owner * {count} + {slot}] * mean_{slot}"
                there = (Access("field", slot, (step, 0, 0)) for step in (-1, 1))
                kernel.reads += there
            text = f"STORE_REAL(field, at + {slot} * field_slot, {value});"
            kernel.do(text, writes="field")
        return kernel


class CoupledDiagnostics(Diagnostics):
    """The diagnostic kernels that read all fluids."""

    def __init__(self, kernels: CoupledKernels) -> None:
        super().__init__(kernels.plain[0], kernels.case.sloped)
        self.kernels, self.coupling = kernels, kernels.coupling

    def _cell(self, kernel: KernelText, parity: int) -> CoupledCell:
        return CoupledCell(self.kernels, kernel, self.kernels.outgoing(kernel, parity))

    def macroscopic(self, kernel: KernelText, parity: int) -> Mixture:
        """density, rho, u and momentum of the mixture."""
        cell = self._cell(kernel, parity)
        density, rho, momentum = self.coupling.mixture(cell)
        rho = kernel.let("rho", rho)
        parts = zip(cell.axes, momentum, strict=True)
        momentum = [kernel.let(f"momentum_{axis}", j) for axis, j in parts]
        u = [kernel.let(f"u_{axis}", j / rho) for axis, j in zip(cell.axes, momentum, strict=True)]
        self.cell = cell
        return density, rho, u, momentum

    def masses(self, kernel: KernelText) -> list[Expression]:
        """The mass of each fluid, if the coupling has several."""
        several = self.coupling.masses(self.kernels.case)
        return self.coupling.mass(self.cell) if several else []

    def sloped_values(self, kernel: KernelText, parity: int) -> list[Expression]:
        """The order parameters."""
        return self.coupling.order_parameters(self.cell)

    @property
    def output_count(self) -> int:
        """The number of the coupling's own outputs."""
        return len(self.coupling.outputs(self.kernels.case))

    def output_text(self, k: int) -> str:
        """The description of the coupling."""
        return self.coupling.__doc__ or ""

    def output_value(self, kernel: KernelText, k: int, parity: int) -> Expression:
        """Field k of the coupling's own outputs in the cell of a kernel."""
        return self.coupling.output(self._cell(kernel, parity))[k]
