"""Equilibrium at a given velocity or density: the simplest inlet and outlet."""

from pydantic import model_validator

from mpilbm.boundaries import Boundary, by_axis
from mpilbm.registry import register


@register("boundaries", "equilibrium")
class Equilibrium(Boundary):
    """f_i = feq_i(rho, u): `velocity` given and rho the cell's, or `rho` given and u the cell's.

    The cell next to the face takes the value (wall_at = "node"). First order, robust; it
    reflects sound. All lattices. [Mohamad & Succi 2009, Eur. Phys. J. Special Topics 171, 213]
    """

    wall_at = "node"
    velocity: tuple[float, ...] | None = None
    rho: float | None = None

    @model_validator(mode="after")
    def _one_value(self):
        if (self.velocity is None) == (self.rho is None):
            raise ValueError("needs either velocity or rho; give one of them")
        return self

    def structure(self):
        """A given velocity and a given density are two kernels."""
        return super().structure() | {"given": "rho" if self.velocity is None else "velocity"}

    def values(self):
        """The velocity or the density."""
        return {"rho": self.rho} if self.velocity is None else by_axis("velocity", self.velocity)

    def incoming(self, cell):
        """The equilibrium, whatever left."""
        given = list(cell.values.values())
        if self.velocity is None:
            rho, u, density = given[0], cell.u, cell.stored(given[0])
        else:
            rho, u, density = cell.rho, given, cell.density
        feq = cell.feq(density, rho, u)
        return {i: feq[i] for i in range(1, cell.lattice.Q)}
