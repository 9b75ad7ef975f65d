"""A given flux of the scalar through a wall; 0 is an adiabatic wall."""

from typing import Annotated

from pydantic import Field

from mpilbm.formulas.values import Value
from mpilbm.physics.scalars.boundaries import HALF_WAY, ScalarBoundary
from mpilbm.quantity import SCALAR_FLUX
from mpilbm.registry import register


@register("scalar_boundaries", "flux")
class GivenFlux(ScalarBoundary):
    """Bounce-back with a source: g_i = g_out_opp(i) + 2 w_i flux / cs2.

    `flux` is the flux into the fluid, per area of the wall and step, -D d(phi)/dn with the normal n
    into the fluid; in a fluid without motion normal to the wall. The wall lies half a link outside
    the cell. Second order on faces of the box; the scalar is conserved exactly. On a body of
    cells the area is that of the faces of its cells, 1.27 times that of a circle and 1.5 times that
    of a sphere; a flux of 0 is not affected.
    """

    flux: Annotated[Value, SCALAR_FLUX] = Field(
        0.0, description="flux into the fluid; 0: adiabatic", examples=[0.001]
    )

    given_keys = ("flux",)
    declares = HALF_WAY

    def structure(self):
        """As in the base class, and whether there is a flux."""
        return super().structure() | {"given": self.flux != 0}

    def values(self):
        """The flux; empty for an adiabatic wall, which only reflects."""
        return super().values() if self.flux != 0 else {}

    def incoming(self, cell):
        """The outgoing population of the same link, and the flux."""
        lattice, flux, found = cell.lattice, cell.values.get("flux", 0), {}
        for i in range(1, lattice.Q):
            added = 2 * lattice.w[i] * flux / lattice.cs2
            found[i] = cell.left[lattice.opp[i]] + cell.at_wall(i, added)
        return found
