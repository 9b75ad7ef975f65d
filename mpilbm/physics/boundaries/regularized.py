"""On-site velocity and pressure: all populations from density, velocity and stress."""

from mpilbm.core.registry import register
from mpilbm.model.cell import Cell
from mpilbm.model.expressions import Expression
from mpilbm.physics.algebra import moments_of, populations
from mpilbm.physics.boundaries.given import OnSite
from mpilbm.physics.boundary_capabilities import Capabilities


@register("boundaries", "regularized")
class Regularized(OnSite):
    """f_i = feq_i + w_i / (2 cs4) Q_i : Pi, Pi = sum_i Q_i (f_i - feq_i), for all i.

    Q_i = c_i c_i - cs2 1. In the sum, the unknown f_i - feq_i with c_i . n > 0 (n inward normal)
    are replaced by f_opp(i) - feq_opp(i). The case gives `velocity`, or `rho` with zero velocity
    along the face; the given value holds at the cell next to the face. Second order; more stable
    than `zou_he`; reflects sound.
    [Latt et al. 2008, Phys. Rev. E 77, 056703]
    """

    declares = Capabilities(normal=True, whole_cell=True)
    lattices = ("D2Q9", "D3Q15", "D3Q19", "D3Q27")

    def incoming(self, cell: Cell) -> dict[int, Expression]:
        """Equilibrium plus the stress of the arriving populations, minus half of the force."""
        lattice = cell.lattice
        density, rho, u = self.macroscopic(cell)
        feq = cell.feq(density, rho, u)
        bounced = self.bounced(cell, feq)
        beyond = [bounced.get(i, f_i) - feq[i] for i, f_i in enumerate(cell.arrives)]
        stress = [cell.let(f"stress_{k}", s) for k, s in enumerate(moments_of(lattice, beyond)[2])]
        more = populations(lattice, 0, [-F / 2 for F in cell.force], stress)
        return {i: feq[i] + more[i] for i in range(lattice.Q)}
