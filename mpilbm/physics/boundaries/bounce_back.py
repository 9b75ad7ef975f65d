"""Half-way bounce-back: a wall half a cell outside the last fluid cell, at rest or moving."""

from mpilbm.core.registry import register
from mpilbm.model.case import Case
from mpilbm.model.cell import Cell
from mpilbm.model.expressions import Expression
from mpilbm.physics.boundaries.wall import Wall
from mpilbm.physics.boundary_capabilities import Capabilities, EdgeRank, Reads


@register("boundaries", "bounce_back")
class BounceBack(Wall):
    """f_i = f_out_opp(i) + feq_i(rho_0, u_wall) - feq_opp(i)(rho_0, u_wall), rho_0 = 1.

    With a second-order equilibrium (`compressible`, `incompressible`) the difference is
    2 w_i rho_0 c_i . u_wall / cs2. The wall lies half a link outside the cell. The condition is
    second order if the wall of the problem lies there. Since rho_0 is constant, a wall that moves
    parallel to itself adds no mass, not even at its ends; on D3Q13, in boxes with an odd number of
    cells across the motion, this requires a larger `priority` than that of the adjacent walls. All
    lattices.
    [Ladd 1994, J. Fluid Mech. 271, 285]
    """

    declares = Capabilities(reads=Reads.SAME_LINK, returns=True)

    def warnings(self, case: Case) -> list[str]:
        """On D3Q13: ends of a sliding wall with an odd number of nodes, owned by other walls."""
        if not case.lattice.staggered or self.edge_rank is not EdgeRank.MOVING_WALL:
            return []
        stronger = {
            face[0]
            for other in case.boundaries
            for face in other.where
            if other.precedence > self.precedence
        }
        moved = {axis for axis, u in zip("xyz", self.velocity or (), strict=False) if u}
        size = dict(zip("xyz", case.domain.size, strict=True))
        odd = (
            across
            for face in self.where
            for along in sorted(moved & stronger)
            for across in sorted({*"xyz"} - {face[0], along})
            if size[across] % 2
        )
        return [
            f"priority: the ends of this sliding wall belong to other walls and have an odd number "
            f"of cells along {axis}, {size[axis]}, so that the mass drifts on {case.lattice.name}; "
            f"set priority = {self.priority + 1}, or use an even number"
            for axis in dict.fromkeys(odd)
        ]

    def incoming(self, cell: Cell) -> dict[int, Expression]:
        """The outgoing population of the same link, plus the motion of the wall."""
        motion, opp = self.motion(cell), cell.lattice.opp
        return {i: cell.left[opp[i]] + cell.at_wall(i, motion[i]) for i in range(1, cell.lattice.Q)}
