"""An inlet half a cell outside the last cell, with the density of the cell."""

from mpilbm.plugin import Boundary, Vector, register


@register("boundaries", "velocity_inlet")
class VelocityInlet(Boundary):
    """f_i = f_out_opp(i) + 2 w_i rho c_i . u / cs2, rho of the cell, u the given velocity.

    The velocity holds half a cell outside (wall_at = "half", the default).
    [Ladd 1994, J. Fluid Mech. 271, 285]
    """

    velocity: Vector  # numbers, formulas of x, y, z and t, or a file

    def values(self):
        """Given values by the names that `incoming` uses."""
        return {f"velocity_{a}": v for a, v in zip("xyz", self.velocity, strict=False)}

    def incoming(self, cell):
        """{i: expression} for all directions that may be missing."""
        lattice, u, found = cell.lattice, list(cell.values.values()), {}
        for i in range(1, lattice.Q):
            flux = sum(c * v for c, v in zip(lattice.c[i], u, strict=True))
            push = 2 * lattice.w[i] * flux / lattice.cs2
            found[i] = cell.left[lattice.opp[i]] + cell.rho * cell.at_wall(i, push)
        return found
