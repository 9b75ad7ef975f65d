"""The kernels that compute rho, u and the fields of the coupling at listed cells.

They compute the same expressions as the kernels over all cells of `codegen.diagnostics`, so that
the results have the same bits. Only fluid cells are listed. Fields that need the velocity of
neighbours are computed in whole planes; `point_gather` copies their values at the listed cells.
"""

from mpilbm.codegen.diagnostics import Diagnostics
from mpilbm.codegen.kernel_text import KernelText
from mpilbm.codegen.kernels import FluidKernels
from mpilbm.codegen.program import POINTS
from mpilbm.codegen.text.parts import entry_place
from mpilbm.layouts.grid import LISTED


class PointKernels:
    """Generates the kernels over listed cells."""

    def __init__(self, diagnostics: Diagnostics):
        self.diagnostics, self.fluid = diagnostics, diagnostics.fluid

    def basic(self) -> list[KernelText]:
        """The kernels of rho and u, by which runs check their flow (run/checks)."""
        return [self.fields(parity) for parity in range(self.fluid.layout.parities)]

    def others(self) -> list[KernelText]:
        """The kernels of all other fields."""
        parities, outputs = range(self.fluid.layout.parities), range(self.diagnostics.output_count)
        return [self.gather(), *(self.output(k, p) for p in parities for k in outputs)]

    def fields(self, parity: int) -> KernelText:
        """rho_out[entry], u_out[entry, a] of the outgoing populations."""
        text = "rho = sum_i f_i, rho u = sum_i c_i f_i - F/2, after the collision"
        kernel, D = PointText(POINTS, text, self.fluid, parity), self.fluid.lattice.D
        kernel.argument("rho_out", "real*")
        kernel.argument("u_out", "real*")
        _, rho, u, _ = self.diagnostics.macroscopic(kernel, parity)
        kernel.do("STORE_REAL(rho_out, entry, {0});", rho, writes="rho_out")
        for a, value in enumerate(u):
            kernel.do(f"STORE_REAL(u_out, entry * {D} + {a}, {{0}});", value, writes="u_out")
        return kernel

    def output(self, number: int, parity: int) -> KernelText:
        """derived_out[entry] of a field of the coupling."""
        text = "a field of the coupling, from the outgoing populations"
        kernel = PointText(f"point_output_{number}", text, self.fluid, parity)
        kernel.argument("derived_out", "real*")
        value = self.diagnostics.output_value(kernel, number, parity)
        kernel.do("STORE_REAL(derived_out, entry, {0});", value, writes="derived_out")
        return kernel

    @staticmethod
    def gather() -> KernelText:
        """derived_out[entry] = plane_values[place[entry]]."""
        kernel = KernelText("point_gather", "entries", "derived_out[k] = plane_values[place[k]]")
        kernel.optional = True
        for name, type in {"plane_values": "real*", "place": "int64*"}.items():
            kernel.argument(name, type)
        kernel.argument("derived_out", "real*")
        kernel.do("STORE_REAL(derived_out, entry, plane_values[place[entry]]);",
                  writes="derived_out")  # fmt: skip
        return kernel


class PointText(KernelText):
    """A kernel over listed cells: `cells` holds their packed indices (layouts/packed_cells.py)."""

    cell = LISTED

    def __init__(self, role: str, equations: str, fluid: FluidKernels, parity: int) -> None:
        super().__init__(role, "entries", equations, parity=parity)
        self.optional = True
        self.listed = fluid.grid.over == "nodes"
        self.sizes(fluid.grid)
        self.argument("cells", "int64*")
        self.argument("first", "int64")
        for name in ("rows", "nx"):
            self.argument(name, "int")
        self._place = entry_place(fluid.grid.over, self.cell, "cells[entry]")

    def body(self) -> list[str]:
        """The place of the cell, then the values."""
        return [*self._place.splitlines(), *super().body()]
