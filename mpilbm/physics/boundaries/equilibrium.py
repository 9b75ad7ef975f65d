"""Equilibrium at a given velocity or density: the simplest inlet and outlet."""

from mpilbm.core.registry import register
from mpilbm.model.case import Case
from mpilbm.model.cell import Cell
from mpilbm.model.expressions import Expression
from mpilbm.physics.boundaries.given import Prescribed
from mpilbm.physics.boundary_capabilities import Capabilities, FaceFlow

MOST = 0.03  # viscosity below which channels with a given density at the inlet failed


@register("boundaries", "equilibrium")
class Equilibrium(Prescribed):
    """f_i = feq_i(rho, u), with a given `velocity` u or a given density `rho`.

    The other quantity is that of the outgoing populations of the cell. The given value holds at
    the cell next to the face. First order; in a channel with a parabolic inlet the velocity does
    not converge (see the chapter Boundaries). Robust, except with a given density where the flow
    enters, see `warnings`; reflects sound. All lattices.
    [Mohamad & Succi 2009, Eur. Phys. J. Special Topics 171, 213]
    """

    declares = Capabilities(read_by_others=True)

    def warnings(self, case: Case) -> list[str]:
        """A given density where the flow enters: its speed grows without bound, from u/nu = 1 on.

        Measured in channels, D2Q9, 9 cells across, `tools/face_stability`.
        """
        if not isinstance(self.rho, float):
            return []
        nu = min(fluid.viscosity for fluid in case.fluids)
        others = [each for each in case.boundaries if each.face_flow.crosses and each is not self]
        driven = any(each.face_flow is FaceFlow.GIVEN for each in others)
        given = [rho for each in others if (rho := getattr(each, "rho", None)) is not None]
        unknown = any(not isinstance(rho, float) for rho in given)
        if driven or unknown or max(given, default=0) > self.rho or nu > MOST:
            return []
        return [
            f"rho: the flow enters here; with 'equilibrium' and a given density its speed grew "
            f"without bound at viscosities of {MOST:g} and less, found {nu:g}; use zou_he, "
            "regularized or guo"
        ]

    def incoming(self, cell: Cell) -> dict[int, Expression]:
        """The equilibrium for all i > 0."""
        given = self.prescribed(cell)
        if self.velocity is None:
            rho, u, density = given[0], cell.u, cell.stored(given[0])
        else:
            rho, u, density = cell.rho, given, cell.density
        feq = cell.feq(density, rho, u)
        return {i: feq[i] for i in range(1, cell.lattice.Q)}
