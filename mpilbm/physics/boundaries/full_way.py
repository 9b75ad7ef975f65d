"""Full-way bounce back: the wall is a layer of cells, in which populations stay for a step."""

from mpilbm.physics.boundaries.wall import Wall
from mpilbm.registry import register


@register("boundaries", "full_way")
class FullWay(Wall):
    """f_i(x, t+1) = f_out_opp(i)(x, t-1) + feq_i(rho_0, u_wall) - feq_opp(i)(rho_0, u_wall).

    What left goes on to the next cell, turns round there, and comes back a step later: it is kept
    in between. In steady flow this is `bounce_back`, the wall half a cell out and second order; in
    unsteady flow it lags by a step, first order in time. Mass is kept with that in the wall, and
    rho_0 = 1. All lattices. [Sukop & Thorne 2006, Lattice Boltzmann Modeling, 4.4]
    """

    plain = True

    def state(self, lattice):
        """What left at the step before."""
        return tuple(f"left_{i}" for i in range(1, lattice.Q))

    def begin(self, cell):
        """As if it had left twice."""
        return {f"left_{i}": cell.left[i] for i in range(1, cell.lattice.Q)}

    def follow(self, cell, enters):
        """What left now."""
        return self.begin(cell)

    def incoming(self, cell):
        """What left a step ago comes back, changed by the wall's motion."""
        motion, opp = self.motion(cell), cell.lattice.opp
        return {
            i: cell.state[f"left_{opp[i]}"] + cell.at_wall(i, motion[i])
            for i in range(1, cell.lattice.Q)
        }
