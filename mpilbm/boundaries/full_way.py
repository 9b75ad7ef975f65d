"""Full-way bounce back: the wall is a layer of cells, in which populations stay for a step."""

from pydantic import Field

from mpilbm.boundaries import VELOCITY, Boundary, by_axis
from mpilbm.cell_values import Vector
from mpilbm.registry import register


@register("boundaries", "full_way")
class FullWay(Boundary):
    """f_i(x, t+1) = f_out_opp(i)(x, t-1) + feq_i(rho_0, u_wall) - feq_opp(i)(rho_0, u_wall).

    What left goes on to the next cell, turns round there, and comes back a step later: it is kept
    in between. In steady flow this is `bounce_back`, the wall half a cell out and second order; in
    unsteady flow it lags by a step, first order in time. Mass is kept with that in the wall, and
    rho_0 = 1. All lattices. [Sukop & Thorne 2006, Lattice Boltzmann Modeling, 4.4]
    """

    velocity: Vector | None = Field(None, description=VELOCITY)

    def structure(self):
        """A wall at rest reads less."""
        return super().structure() | {"moving": self.velocity is not None}

    def values(self):
        """The wall's velocity."""
        return by_axis("velocity", self.velocity or ())

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
        lattice, u = cell.lattice, list(cell.values.values())
        feq = cell.feq(cell.stored(1), 1, u) if u else [0] * lattice.Q
        return {
            i: cell.state[f"left_{lattice.opp[i]}"]
            + cell.at_wall(i, feq[i] - feq[lattice.opp[i]])
            for i in range(1, lattice.Q)
        }  # fmt: skip
