"""Partially saturated cells: the body acts in each cell by the share of the cell that is solid."""

from mpilbm.core.registry import register
from mpilbm.model.case import Case
from mpilbm.model.cell import PartialCell
from mpilbm.model.expressions import Expression
from mpilbm.physics.boundaries import Boundary
from mpilbm.physics.boundary_capabilities import Capabilities

WEIGHT = "solid_weight"


@register("boundaries", "partially_saturated")
class PartiallySaturated(Boundary):
    """f_i* = (1 - B) g_i + B (feq_i(rho, u_s) + f_opp(i) - feq_opp(i)(rho, u)).

    g_i are the populations after the collision of the fluid, f_i those that arrive; u_s is the
    velocity of the body, 0 at rest. B follows from the solid share e of the cell and from tau, the
    relaxation time of the shear stress in the cell:

        B = e (tau - 1/2) / ((1 - e) + (tau - 1/2)),   0 <= B <= 1

    In fluid cells the collision is that of the fluid; in solid cells the populations return to the
    side from which they came, in equilibrium at u_s. The fluid gives the momentum rho B (u - u_s)
    to the body in each cell and step. The force of the case acts with the factor 1 - e. With
    collisions whose populations follow from density, velocity and second moments (`regularized`),
    f - feq is reduced to these, so that the layout `moments` has the same flow:

        u* = u + B (u_s - u),   A* = (1 - (1 - B)/tau) A + rho B (1 - B) (u_s - u)(u_s - u)

    With `recursive_regularized` only the layout `moments` has these; the walls differ slightly.

    For bodies, which have no boundary lists: a step costs one byte per cell and the same time for
    any number of bodies. Their outputs show the cells as solid whose centre is in the body. The
    position of the wall depends on tau: at larger tau it moves into the body (a channel of 16 cells
    carries 0.2 % more at tau = 0.55, 3 % at 0.8, 10 % at 1.5), where `bounce_back` and
    `interpolated` are better. Not for meshes with `thin`. All lattices that store every node.
    [Noble & Torczynski 1998, Int. J. Mod. Phys. C 9, 1189]
    """

    conducts = True
    declares = Capabilities(in_cells=True, weight=WEIGHT)

    def weight(self, cell: PartialCell) -> Expression:
        """B, with omega = 1 / tau: e (2 - omega) / (2 + omega - 2 omega e)."""
        e, omega = cell.share, cell.omega
        return cell.let(WEIGHT, e * (2 - omega) / (2 + omega - 2 * omega * e))

    def collided(self, cell: PartialCell) -> list[Expression]:
        """The outgoing populations, from those of the fluid and from those that return."""
        B, opp = self.weight(cell), cell.lattice.opp
        at_rest = cell.feq(cell.u_body)
        returned = [at_rest[i] + cell.beyond[opp[i]] for i in range(cell.lattice.Q)]
        pairs = zip(cell.collided, returned, strict=True)
        return [(1 - B) * g + B * back for g, back in pairs]

    def taken(self, cell: PartialCell) -> list[Expression]:
        """rho B (u - u_s)."""
        B, slip = self.weight(cell), [u - v for u, v in zip(cell.u, cell.u_body, strict=True)]
        return [B * each for each in cell.momentum(slip)]

    def problems(self, case: Case) -> list[str]:
        """Errors, also: faces of the box, sheets, scalars, several fluids, unsuitable lattices."""
        found = super().problems(case)
        walls = "allowed there: bounce_back, interpolated and others, see the manual"
        if self.where and self in case.boundaries:
            found.append(f"where: {self.name} acts in the cells of a body, not at a face; {walls}")
        if any(body.boundary is self and body.shape and body.shape.cuts for body in case.bodies):
            found.append(f"{self.name} needs cells in the body, sheets (thin) have none; {walls}")
        without = {"scalars": case.scalars, "several fluids": case.coupling}
        for what in (name for name, given in without.items() if given):
            found.append(f"{self.name} is defined for one fluid, not with {what}; {walls}")
        if case.lattice.staggered:
            found.append(
                f"{self.name} needs a lattice that stores every node, {case.lattice.name} stores "
                "every other one; use D3Q19"
            )
        return found
