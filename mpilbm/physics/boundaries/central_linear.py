"""Central linear interpolation: a wall at the surface of a shape, independent of the viscosity."""

from mpilbm.core.registry import register
from mpilbm.model.cell import Cell
from mpilbm.model.expressions import Expression
from mpilbm.physics.boundaries.wall import SurfaceWall
from mpilbm.physics.boundary_capabilities import Capabilities, LinkValue, PerLink

HALF_WAY_FALLBACK = (
    "links have no fluid cell behind their cell; there the wall lies half-way along the link"
)


@register("boundaries", "central_linear")
class CentralLinear(SurfaceWall):
    """Central linear interpolation (CLI) at a wall at the distance q along each link, 0 < q <= 1.

    q is measured from the cell in units of the link; j = opp(i).

    f_i(x, t+1) = f_out_j(x) + k (f_out_j(x - c_j) - f_out_i(x)) + 2 d_i / (1 + 2q)
    k   = (1 - 2q) / (1 + 2q)
    d_i = feq_i(rho, u_wall) - feq_j(rho, u_wall), u_wall at x - q c_i

    rho is the density of the outgoing populations of the cell. One equation for all q; with q = 1/2
    and rho = 1 it is `bounce_back`. It is exact for a linear profile of
    the velocity and second order for curved walls. With `trt` at a fixed `magic` number the steady
    flow at low Reynolds numbers does not depend on the viscosity, in contrast to `interpolated`:
    use it for permeabilities. It conserves the mass exactly with `conserve_mass`. q = 1/2 (half-way
    wall) for masks and voxels, for faces of the box, and where x - c_j is not a fluid cell. All
    lattices.
    [Ginzburg, Verhaeghe & d'Humieres 2008, Commun. Comput. Phys. 3, 427]
    """

    declares = Capabilities(
        per_link=PerLink(value=LinkValue.DISTANCE_CENTRAL, fallbacks=(HALF_WAY_FALLBACK,)),
        read_by_others=True,
    )

    def at_surface(self, cell: Cell, i: int, q: Expression, change: Expression) -> Expression:
        """The outgoing population of the same link, corrected by those on both sides of the cell.

        At a wall with e = (f_i - f_opp(i)) / 2 linear along the link, all terms with a relaxation
        time cancel, and the equation is 4 (e(x) - q c_i . grad e) / (1 + 2q) = 2 d_i / (1 + 2q).
        """
        j, k = cell.lattice.opp[i], (1 - 2 * q) / (1 + 2 * q)
        return cell.left[j] + k * (cell.arrives[j] - cell.left[i]) + 2 * change / (1 + 2 * q)
