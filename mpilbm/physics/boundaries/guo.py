"""On-site velocity and pressure by extrapolation of the non-equilibrium."""

from mpilbm.core.registry import register
from mpilbm.model.cell import Cell
from mpilbm.model.expressions import Expression
from mpilbm.physics.boundaries.given import Prescribed, lagged
from mpilbm.physics.boundary_capabilities import Capabilities


@register("boundaries", "guo")
class Guo(Prescribed):
    """f_i(x) = feq_i(rho, u) + (f_i - feq_i)(x + n) for all i, where n is the inward normal.

    The case gives `velocity` u or density `rho`; the other quantity is copied from the cell x + n,
    the velocity with a share of 1/16 of its previous value at x (see `lagged`). The given value
    holds at the cell next to the face. Second order; reflects sound. All lattices.
    [Guo, Zheng & Shi 2002, Phys. Fluids 14, 2007]
    """

    declares = Capabilities(normal=True, whole_cell=True, inward=1)

    def incoming(self, cell: Cell) -> dict[int, Expression]:
        """Equilibrium at the given value plus the non-equilibrium part of the cell inwards."""
        f, given = cell.inward(1).arrives, self.prescribed(cell)
        density, rho, u = cell.macroscopic(f)
        density = cell.let("density_inside", density)
        u = [cell.let(f"u_inside_{a}", v) for a, v in enumerate(u)]
        rho = cell.let("rho_inside", rho)
        beyond = [f_i - feq_i for f_i, feq_i in zip(f, cell.feq(density, rho, u), strict=True)]
        if self.velocity is None:
            u = [cell.let(f"u_face_{a}", lagged(v, cell.u[a])) for a, v in enumerate(u)]
            feq = cell.feq(cell.stored(given[0]), given[0], u)
        else:
            feq = cell.feq(density, rho, given)
        return {i: feq[i] + beyond[i] for i in range(cell.lattice.Q)}
