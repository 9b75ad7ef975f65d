"""Faces whose populations are taken from the cells inwards of them."""

from mpilbm.boundaries import Boundary
from mpilbm.boundaries.given import Given
from mpilbm.equilibria import dot
from mpilbm.registry import register


class FromInside(Boundary):
    """f_i at the face from f_i of the cells inwards along the normal, at the same time."""

    wall_at = "node"
    oriented = True

    def entering(self, cell) -> list[int]:
        """The directions that lead inwards."""
        return [i for i, c in enumerate(cell.lattice.c) if dot(c, cell.normal) > 0]


@register("boundaries", "copy")
class Copy(FromInside):
    """Outflow: f_i(x) = f_i(x + n) where c_i . n > 0, n being the inward normal.

    First order; holds neither density nor velocity. All lattices. [paper 2: nearest-neighbour copy]
    """

    reach = 1

    def incoming(self, cell):
        """Those of the next cell."""
        return {i: cell.inward(1).arrives[i] for i in self.entering(cell)}


@register("boundaries", "neumann")
class Neumann(FromInside):
    """Outflow: f_i(x) = (4 f_i(x + n) - f_i(x + 2n)) / 3 where c_i . n > 0.

    The normal derivative is zero to second order, by one-sided differences; holds neither density
    nor velocity. All lattices. [Junk & Yang 2008, Prog. Comput. Fluid Dyn. 8, 38]
    """

    reach = 2

    def incoming(self, cell):
        """Those at which the derivative vanishes."""
        one, two = cell.inward(1).arrives, cell.inward(2).arrives
        return {i: (4 * one[i] - two[i]) / 3 for i in self.entering(cell)}


@register("boundaries", "yu")
class Yu(FromInside):
    """Outflow: f_i(x) = 2 f_i(x + n) - f_i(x + 2n) where c_i . n > 0.

    Linear extrapolation; holds neither density nor velocity, so that the inlet must. All lattices.
    [Yu, Mei & Shyy 2005, Prog. Comput. Fluid Dyn. 5, 3]
    """

    reach = 2

    def incoming(self, cell):
        """Extrapolated along the normal."""
        one, two = cell.inward(1).arrives, cell.inward(2).arrives
        return {i: 2 * one[i] - two[i] for i in self.entering(cell)}


@register("boundaries", "do_nothing")
class DoNothing(FromInside):
    """Outflow: what left along c_i comes in again, where c_i . n > 0.

    Extrapolation in time: uniform flow goes through. First order, nothing is read of other cells;
    holds neither density nor velocity. All lattices. [paper 2]
    """

    def incoming(self, cell):
        """Those that left."""
        return {i: cell.left[i] for i in self.entering(cell)}


@register("boundaries", "guo")
class Guo(FromInside, Given):
    """f_i(x) = feq_i(rho, u) + (f_i - feq_i)(x + n) where c_i . n > 0.

    `velocity` given and rho that of the cell inwards, or `rho` given and u that of the cell
    inwards. The cell next to the face takes the value (wall_at = "node"). Second order; reflects
    sound. All lattices. [Guo, Zheng & Shi 2002, Phys. Fluids 14, 2007]
    """

    reach = 1

    def incoming(self, cell):
        """Equilibrium at the given value, non-equilibrium from inside."""
        f, given = cell.inward(1).arrives, list(cell.values.values())
        density, rho, u = cell.macroscopic(f)
        density = cell.let("density_inside", density)
        u = [cell.let(f"u_inside_{a}", v) for a, v in enumerate(u)]
        rho = cell.let("rho_inside", rho)
        beyond = [f_i - feq_i for f_i, feq_i in zip(f, cell.feq(density, rho, u), strict=True)]
        if self.velocity is None:
            feq = cell.feq(cell.stored(given[0]), given[0], u)
        else:
            feq = cell.feq(density, rho, given)
        return {i: feq[i] + beyond[i] for i in self.entering(cell)}
