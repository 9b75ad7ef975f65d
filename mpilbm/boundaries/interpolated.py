"""Interpolated bounce back: a wall where the shape of the body has it."""

from fractions import Fraction

from mpilbm.boundaries.wall import Wall
from mpilbm.registry import register


@register("boundaries", "interpolated")
class Interpolated(Wall):
    """The wall of a shape at q from the cell along each link, 0 < q <= 1; j = opp(i).

    f_i(x, t+1) = 2q f_out_j(x) + (1 - 2q) f_out_j(x - c_j) + d_i                 q < 1/2
    f_i(x, t+1) = (f_out_j(x) + (2q - 1) f_out_i(x) + d_i) / (2q)                 q >= 1/2
    d_i = feq_i(rho_0, u_wall) - feq_j(rho_0, u_wall), u_wall at x - q c_i, rho_0 = 1

    Linear interpolation: second order wherever the wall lies. It does not keep the mass exactly.
    Half-way (q = 1/2) at masks, at faces of the box, and where q < 1/2 and x - c_j is no fluid.
    All lattices. [Bouzidi, Firdaouss & Lallemand 2001, Phys. Fluids 13, 3452]
    """

    per_link = "distance"
    fallback = "links have no fluid behind their cell; there the wall lies half-way"

    def incoming(self, cell):
        """Between two populations before the wall, or two behind it."""
        lattice, motion, incoming = cell.lattice, self.motion(cell), {}
        for i in range(1, lattice.Q):
            j, q = lattice.opp[i], cell.link(i)
            change = cell.at_wall(i, motion[i], q)
            near = 2 * q * cell.left[j] + (1 - 2 * q) * cell.arrives[j] + change
            far = (cell.left[j] + (2 * q - 1) * cell.left[i] + change) / (2 * q)
            incoming[i] = cell.below(q, Fraction(1, 2), near, far)
        return incoming
