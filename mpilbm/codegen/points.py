"""The kernels that compute rho, u and the fields of the coupling at listed cells.

The expressions, and so the bits, are those of `codegen.diagnostics`. Only fluid cells are listed.
Fields that need the velocity of neighbours are computed in whole planes; `point_gather` copies
their values at the listed cells.
"""

from mpilbm.codegen.diagnostics import Diagnostics
from mpilbm.codegen.kernel_text import KernelText
from mpilbm.codegen.kernels import FluidKernels
from mpilbm.codegen.program import POINTS
from mpilbm.codegen.values import entry_place
from mpilbm.layouts.cells import LISTED


def fields(diagnostics: Diagnostics, parity: int) -> "PointText":
    """rho_out[entry], u_out[entry, a] of the outgoing populations; runs check their flow by it."""
    text = "rho = sum_i f_i, rho u = sum_i c_i f_i - F/2, after the collision"
    kernel = PointText(POINTS, text, diagnostics.fluid, parity)
    kernel.declare(rho_out="real*", u_out="real*")
    _, rho, u, _ = diagnostics.macroscopic(kernel, parity)
    kernel.do("STORE_REAL(rho_out, entry, {0});", rho, writes="rho_out")
    for a, value in enumerate(u):
        kernel.do(f"STORE_REAL(u_out, entry * {len(u)} + {a}, {{0}});", value, writes="u_out")
    return kernel


def output(diagnostics: Diagnostics, number: int, parity: int) -> "PointText":
    """derived_out[entry] of a field of the coupling, of a scalar, or of the pressure."""
    text = "a field of the coupling, from the outgoing populations"
    kernel = PointText(f"point_output_{number}", text, diagnostics.fluid, parity)
    kernel.argument("derived_out", "real*")
    value = diagnostics.output_value(kernel, number, parity)
    kernel.do("STORE_REAL(derived_out, entry, {0});", value, writes="derived_out")
    return kernel


def gather() -> KernelText:
    """derived_out[entry] = plane_values[place[entry]]."""
    kernel = KernelText("point_gather", "entries", "derived_out[k] = plane_values[place[k]]")
    kernel.optional = True
    kernel.declare(plane_values="real*", place="int64*", derived_out="real*")
    text = "STORE_REAL(derived_out, entry, plane_values[place[entry]]);"
    kernel.do(text, writes="derived_out")
    return kernel


class PointText(KernelText):
    """A kernel over listed cells: `cells` holds their packed indices (layouts/cells.py)."""

    cell = LISTED

    def __init__(self, role: str, equations: str, fluid: FluidKernels, parity: int) -> None:
        super().__init__(role, "entries", equations, parity=parity)
        self.optional = True
        self.listed = fluid.grid.over == "nodes"
        self.sizes(fluid.grid)
        self.declare(cells="int64*", first="int64", rows="int", nx="int")
        self._place = entry_place(fluid.grid.over, self.cell, "cells[entry]")

    def body(self) -> list[str]:
        """The place of the cell, then the values."""
        return [*self._place.splitlines(), *super().body()]
