"""Full-way bounce-back: the wall is a layer of cells in which populations stay for a step."""

from mpilbm.core.registry import register
from mpilbm.model.cell import Cell
from mpilbm.model.expressions import Expression, Incoming
from mpilbm.physics.boundaries.wall import Wall
from mpilbm.physics.boundary_capabilities import Capabilities, Reads
from mpilbm.physics.lattices import Lattice


@register("boundaries", "full_way")
class FullWay(Wall):
    """f_i(x, t+1) = f_out_opp(i)(x, t-1) + feq_i(rho_0, u_wall) - feq_opp(i)(rho_0, u_wall).

    An outgoing population moves into the wall, reverses there and returns one step later; the
    entry stores it in between. In steady flow this equals `bounce_back`: the wall lies half a link
    outside the cell, and the condition is second order. In unsteady flow it lags by one step:
    first order in time. The mass, including the mass stored in the wall, is conserved. rho_0 = 1.
    All lattices.
    [Sukop & Thorne 2006, Lattice Boltzmann Modeling, 4.4]
    """

    declares = Capabilities(reads=Reads.OUTGOING)

    def state(self, lattice: Lattice) -> tuple[str, ...]:
        """The outgoing populations of the previous step."""
        return tuple(f"left_{i}" for i in range(1, lattice.Q))

    def begin(self, cell: Cell) -> dict[str, Expression]:
        """The outgoing populations of the first step, in place of those of a step before it."""
        return {f"left_{i}": cell.left[i] for i in range(1, cell.lattice.Q)}

    def follow(self, cell: Cell, enters: Incoming) -> dict[str, Expression]:
        """The outgoing populations of this step."""
        return self.begin(cell)

    def incoming(self, cell: Cell) -> dict[int, Expression]:
        """The outgoing populations of the previous step, plus the motion of the wall."""
        motion, opp = self.motion(cell), cell.lattice.opp
        return {
            i: cell.state[f"left_{opp[i]}"] + cell.at_wall(i, motion[i])
            for i in range(1, cell.lattice.Q)
        }
