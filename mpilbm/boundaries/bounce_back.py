"""Half-way bounce back: a wall half a cell outside the last fluid cell, at rest or moving."""

from pydantic import Field

from mpilbm.boundaries import VELOCITY, Boundary, by_axis
from mpilbm.cell_values import Vector
from mpilbm.registry import register


@register("boundaries", "bounce_back")
class BounceBack(Boundary):
    """f_i = f_out_opp(i) + feq_i(rho_0, u_wall) - feq_opp(i)(rho_0, u_wall), rho_0 = 1.

    The difference is 2 w_i rho_0 c_i . u_wall / cs2. The wall lies half a cell out; second order
    where it lies there. With the constant rho_0 a wall that slides along itself adds no mass, also
    not at its ends; on D3Q13, in boxes with an odd number of cells across the motion, this takes a
    lid that stands in the file after the walls beside it. All lattices.
    [Ladd 1994, J. Fluid Mech. 271, 285]
    """

    velocity: Vector | None = Field(None, description=VELOCITY)

    def structure(self):
        """A wall at rest reads less."""
        return super().structure() | {"moving": self.velocity is not None}

    @property
    def returns(self):
        """Off a wall at rest."""
        return self.velocity is None

    def values(self):
        """The wall's velocity."""
        return by_axis("velocity", self.velocity or ())

    def incoming(self, cell):
        """What left comes back, changed by the wall's motion."""
        lattice, u = cell.lattice, list(cell.values.values())
        incoming = {i: cell.left[lattice.opp[i]] for i in range(1, lattice.Q)}
        if u:
            feq = cell.feq(cell.stored(1), 1, u)
            for i, f in incoming.items():
                incoming[i] = f + cell.at_wall(i, feq[i] - feq[lattice.opp[i]])
        return incoming
