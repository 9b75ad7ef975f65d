"""Half-way bounce back: a wall half a cell outside the last fluid cell, at rest or moving."""

from mpilbm.boundaries import Boundary, by_axis
from mpilbm.equilibria import dot
from mpilbm.registry import register


@register("boundaries", "bounce_back")
class BounceBack(Boundary):
    """f_i = f_out_opp(i) + 2 w_i rho_0 c_i . u_wall / cs2, the wall half a cell out, rho_0 = 1.

    Second order where the wall lies half-way. With the constant rho_0 a wall that slides along
    itself adds no mass, also not at its ends. All lattices. [Ladd 1994, J. Fluid Mech. 271, 285]
    """

    velocity: tuple[float, ...] | None = None

    def structure(self):
        """A wall at rest reads less."""
        return {"name": self.name, "moving": self.velocity is not None}

    def values(self):
        """The wall's velocity."""
        return by_axis("velocity", self.velocity or ())

    def incoming(self, cell):
        """What left comes back, changed by the wall's motion."""
        lattice, u = cell.lattice, [cell.values[name] for name in self.values()]
        moving = [
            2 * w * dot(c, u) / lattice.cs2 if u else 0
            for w, c in zip(lattice.w, lattice.c, strict=True)
        ]
        return {i: cell.left[lattice.opp[i]] + moving[i] for i in range(1, lattice.Q)}
