"""On-site velocity and pressure: bounce-back of the non-equilibrium."""

from fractions import Fraction

from mpilbm.core.registry import register
from mpilbm.model.cell import Cell
from mpilbm.model.expressions import Expression
from mpilbm.physics.boundaries.given import OnSite
from mpilbm.physics.boundary_capabilities import Capabilities
from mpilbm.physics.equilibria import dot


@register("boundaries", "zou_he")
class ZouHe(OnSite):
    """f_i = feq_i + f_opp(i) - feq_opp(i) + w_i c_i . N where c_i . n > 0, n inward normal.

    The vector N lies along the face and makes the momentum sum_i c_i f_i agree with the velocity:
    on D2Q9 this is the condition of Zou and He, and on D3Q19 N is the transverse momentum
    correction of Hecht and Harting. The case gives `velocity`, or `rho` with zero velocity along
    the face; the given value holds at the cell next to the face. Where two such faces meet, f_i =
    f_out_opp(i) + feq_i(rho_0, u) - feq_opp(i)(rho_0, u), rho_0 = 1. Second order; reflects sound;
    unstable at high Reynolds numbers. All lattices.
    [Zou & He 1997, Phys. Fluids 9, 1591; Hecht & Harting 2010, J. Stat. Mech. P01018]
    """

    # D2Q9, bgk and mrt at Mach 0.17: model/test_stability.py
    declares = Capabilities(normal=True, fails_from=8)

    def incoming(self, cell: Cell) -> dict[int, Expression]:
        """Bounce-back of the non-equilibrium part, corrected to the momentum of the face."""
        lattice, n = cell.lattice, cell.normal
        density, rho, u = self.macroscopic(cell)
        enters = self.bounced(cell, cell.feq(density, rho, u))
        f = [enters.get(i, f_i) for i, f_i in enumerate(cell.arrives)]
        momentum = cell.momentum(rho, u)
        more = dict.fromkeys(enters, 0)
        for a in range(lattice.D):
            lack = cell.let(f"lack_{a}", momentum[a] - dot([c[a] for c in lattice.c], f))
            # normal correction: over all populations; tangential: over those with c_a != 0
            share = {i: lattice.w[i] * (n[a] or lattice.c[i][a]) for i in enters}
            whole = sum(share[i] * lattice.c[i][a] for i in enters)
            more = {i: more[i] + share[i] / whole * lack for i in enters}
        edge = self.returned(cell)
        return {
            i: cell.below(cell.meeting, Fraction(1, 2), f_i + more[i], edge[i])
            for i, f_i in enters.items()
        }
