"""A given flux of the scalar through a wall; 0 is an adiabatic wall."""

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mpilbm.core.formulas.values import Given, Value
from mpilbm.core.quantity import SCALAR_FLUX
from mpilbm.core.registry import register
from mpilbm.model.cell import Cell
from mpilbm.model.expressions import Expression
from mpilbm.physics.boundary_capabilities import Capabilities
from mpilbm.physics.scalars.boundaries import RETURNING, WITH_AREA, Numbers, ScalarBoundary


@register("scalar_boundaries", "flux")
class GivenFlux(ScalarBoundary):
    """Bounce-back with a source: g_i = g_out_opp(i) + 2 w_i flux / cs2.

    `flux` is the flux into the fluid, per area of the wall and step, -D d(phi)/dn with the normal n
    into the fluid; in a fluid without motion normal to the wall. The wall lies half a link outside
    the cell. Second order on faces of the box; the scalar is conserved exactly. On a body with a
    surface the source is 2 w_i (c_i.n) flux / cs2, so that the links together have the area of the
    surface. On a mask the area is that of the faces of its cells, up to 1.5 times as large.
    """

    flux: Annotated[Value, SCALAR_FLUX] = Field(
        0.0, description="flux into the fluid; 0: adiabatic", examples=[0.001]
    )

    numbers = ("flux",)
    declares = RETURNING
    on_body = WITH_AREA

    @property
    def capabilities(self) -> Capabilities:
        """With a flux from a body, the normal of its surface at each link."""
        return super().capabilities if self.flux != 0 else RETURNING

    def values(self) -> dict[str, Given]:
        """The flux; empty for an adiabatic wall, which only reflects."""
        return super().values() if self.flux != 0 else {}

    def held(self, values: Numbers) -> NDArray[Any] | None:
        """No value at an adiabatic wall; None with a flux."""
        return None if any(np.any(flux) for flux in values.values()) else np.empty(0)

    def incoming(self, cell: Cell) -> dict[int, Expression]:
        """The outgoing population of the same link, and the flux."""
        lattice, flux, found = cell.lattice, cell.values.get("flux", 0), {}
        for i in range(1, lattice.Q):
            area = cell.link(i) if self.capabilities.per_link else 1
            added = 2 * lattice.w[i] * area * flux / lattice.cs2
            found[i] = cell.left[lattice.opp[i]] + cell.at_wall(i, added)
        return found
