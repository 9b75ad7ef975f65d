"""Equilibrium at a given velocity or density: the simplest inlet and outlet."""

from mpilbm.physics.given_boundary import Given
from mpilbm.registry import register


@register("boundaries", "equilibrium")
class Equilibrium(Given):
    """f_i = feq_i(rho, u), with a given `velocity` u or a given density `rho`.

    The other quantity is that of the outgoing populations of the cell. The given value holds at
    the cell next to the face. First order; in a channel with a parabolic inlet the velocity does
    not converge (see the chapter Boundaries). Robust; reflects sound. All lattices.
    [Mohamad & Succi 2009, Eur. Phys. J. Special Topics 171, 213]
    """

    def incoming(self, cell):
        """The equilibrium for all i > 0."""
        given = list(cell.values.values())
        if self.velocity is None:
            rho, u, density = given[0], cell.u, cell.stored(given[0])
        else:
            rho, u, density = cell.rho, given, cell.density
        feq = cell.feq(density, rho, u)
        return {i: feq[i] for i in range(1, cell.lattice.Q)}
