"""Equilibrium at a given velocity or density: the simplest inlet and outlet."""

from mpilbm.physics.boundaries.given import Given
from mpilbm.registry import register


@register("boundaries", "equilibrium")
class Equilibrium(Given):
    """f_i = feq_i(rho, u): `velocity` given and rho the cell's, or `rho` given and u the cell's.

    The cell next to the face takes the value (wall_at = "node"). First order, robust; it
    reflects sound. All lattices. [Mohamad & Succi 2009, Eur. Phys. J. Special Topics 171, 213]
    """

    def incoming(self, cell):
        """The equilibrium, independent of the outgoing populations."""
        given = list(cell.values.values())
        if self.velocity is None:
            rho, u, density = given[0], cell.u, cell.stored(given[0])
        else:
            rho, u, density = cell.rho, given, cell.density
        feq = cell.feq(density, rho, u)
        return {i: feq[i] for i in range(1, cell.lattice.Q)}
