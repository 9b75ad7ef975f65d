"""On-site velocity and pressure: bounce-back of the non-equilibrium."""

from fractions import Fraction

from mpilbm.physics.boundaries.given import OnSite
from mpilbm.physics.boundary_capabilities import Capabilities
from mpilbm.physics.equilibria import dot
from mpilbm.registry import register


@register("boundaries", "zou_he")
class ZouHe(OnSite):
    """f_i - feq_i = f_opp(i) - feq_opp(i) where c_i . n > 0, corrected along the face.

    To each f_i is added w_i c_i . N, the vector N along the face such that sum_i c_i f_i is that of
    the given velocity: on D2Q9 this is Zou and He's condition, on D3Q19 N is Hecht and Harting's
    transverse momentum correction. `velocity`, or `rho` with no velocity along the face. The cell
    next to the face takes the value (wall_at = "node"); where two such faces meet it is
    bounce-back, f_i = f_out_opp(i) + feq_i(rho_0, u) - feq_opp(i)(rho_0, u). Second order; reflects
    sound; unstable at high Reynolds numbers. All lattices.
    [Zou & He 1997, Phys. Fluids 9, 1591; Hecht & Harting 2010, J. Stat. Mech. P01018]
    """

    # D2Q9, bgk and mrt at Mach 0.17: verdicts/test_stability.py
    declares = Capabilities(normal=True, fails_from=8)

    def incoming(self, cell):
        """Bounce-back of the non-equilibrium, with the momentum of the given velocity."""
        lattice, n = cell.lattice, cell.normal
        density, rho, u = self.macroscopic(cell)
        enters = self.bounced(cell, cell.feq(density, rho, u))
        f = [enters.get(i, f_i) for i, f_i in enumerate(cell.arrives)]
        momentum = cell.momentum(rho, u)
        more = dict.fromkeys(enters, 0)
        for a in range(lattice.D):
            lack = cell.let(f"lack_{a}", momentum[a] - dot([c[a] for c in lattice.c], f))
            # across the face all populations share the correction, along it those with c_a != 0
            share = {i: lattice.w[i] * (n[a] or lattice.c[i][a]) for i in enters}
            whole = sum(share[i] * lattice.c[i][a] for i in enters)
            more = {i: more[i] + share[i] / whole * lack for i in enters}
        edge = self.returned(cell)
        return {
            i: cell.below(cell.meeting, Fraction(1, 2), f_i + more[i], edge[i])
            for i, f_i in enters.items()
        }
