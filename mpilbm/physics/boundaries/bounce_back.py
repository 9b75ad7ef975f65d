"""Half-way bounce-back: a wall half a cell outside the last fluid cell, at rest or moving."""

from mpilbm.physics.boundaries.wall import Wall
from mpilbm.physics.boundary_capabilities import Capabilities, Reads
from mpilbm.registry import register


@register("boundaries", "bounce_back")
class BounceBack(Wall):
    """f_i = f_out_opp(i) + feq_i(rho_0, u_wall) - feq_opp(i)(rho_0, u_wall), rho_0 = 1.

    The difference is 2 w_i rho_0 c_i . u_wall / cs2. The wall lies half a link outside the cell;
    second order where the real wall lies there. With the constant rho_0 a wall that slides along
    itself adds no mass, including at its ends; on D3Q13, in boxes with an odd number of cells
    across the motion, this requires that the lid follows the walls beside it in the file. All
    lattices.
    [Ladd 1994, J. Fluid Mech. 271, 285]
    """

    declares = Capabilities(reads=Reads.SAME_LINK)

    def incoming(self, cell):
        """The outgoing population of the same link, plus the motion of the wall."""
        motion, opp = self.motion(cell), cell.lattice.opp
        return {i: cell.left[opp[i]] + cell.at_wall(i, motion[i]) for i in range(1, cell.lattice.Q)}
