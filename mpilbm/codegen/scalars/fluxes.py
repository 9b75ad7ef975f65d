"""The kernels of the fluxes of a scalar through links that leave the fluid."""

from collections.abc import Collection, Iterator

from mpilbm.codegen.bodies.chunks import ChunkText
from mpilbm.codegen.boundary_cell import BoundaryCell
from mpilbm.codegen.kernels import FluidKernels
from mpilbm.physics.boundaries import Condition


class FluxText(ChunkText):
    """A kernel that adds what the links of a list bring into the fluid in a step."""

    @property
    def columns(self) -> list[str]:
        """The flux into the fluid."""
        return ["flux"]

    def link(self, i: int, values: dict[str, str]) -> Iterator[str]:
        """C text that adds the incoming population less the outgoing one of the link."""
        yield f"sum_flux += (double){self.stored.format(values['in'])} - (double)({values['out']});"


def flux_kernel(
    scalar: FluidKernels, boundary: Condition, name: str, parity: int, beside: Collection[str] = ()
) -> FluxText:
    """Sum g_i - g_out_opp(i) over the links of a list; `beside`: wall_effects."""
    text = "flux = g_i_in - g_opp_out"
    kernel = FluxText(f"{name}_measured", text, scalar, boundary, parity)
    cell = BoundaryCell(kernel, scalar, boundary, parity, beside)
    for i, incoming in boundary.incoming(cell).items():
        kernel.wanted[i] = {"in": incoming, "out": cell.left[scalar.lattice.opp[i]]}
    return kernel
