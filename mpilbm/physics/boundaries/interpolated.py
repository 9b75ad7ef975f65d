"""Interpolated bounce-back: the wall lies at the surface of the body's shape."""

from dataclasses import replace
from fractions import Fraction
from typing import Literal

from pydantic import Field

from mpilbm.core.registry import register
from mpilbm.core.units import tau_from_viscosity
from mpilbm.model.case import Case
from mpilbm.model.cell import Cell
from mpilbm.model.expressions import Expression
from mpilbm.model.findings import NOTE, Finding
from mpilbm.physics.boundaries.wall import SurfaceWall
from mpilbm.physics.boundary_capabilities import Behind, Capabilities, LinkValue, PerLink

HALF = Fraction(1, 2)
HALF_WAY_FALLBACK = "links have no fluid behind their cell; there the wall lies half-way"
LINEAR_FALLBACK = (
    "links lack one of two fluid cells behind their cell; the interpolation is linear there"
)


@register("boundaries", "interpolated")
class Interpolated(SurfaceWall):
    """Interpolated bounce-back at a wall at the distance q along each link, 0 < q <= 1.

    q is measured from the cell in units of the link; j = opp(i).

    f_i(x, t+1) = 2q f_out_j(x) + (1 - 2q) f_out_j(x - c_j) + d_i                 q < 1/2
    f_i(x, t+1) = (f_out_j(x) + (2q - 1) f_out_i(x) + d_i) / (2q)                 q >= 1/2
    d_i = feq_i(rho, u_wall) - feq_j(rho, u_wall), u_wall at x - q c_i

    rho is the density of the outgoing populations of the cell. These equations are linear
    interpolations. With `order` = 2 they are quadratic and use a third cell:

    f_i = q (2q + 1) f_out_j(x) + (1 - 4q^2) f_out_j(x - c_j)
          - q (1 - 2q) f_out_j(x - 2c_j) + d_i                                    q < 1/2
    f_i = (f_out_j(x) + d_i) / (q (2q + 1)) + (2q - 1) / q f_out_i(x)
          - (2q - 1) / (2q + 1) f_out_i(x - c_j)                                  q >= 1/2

    Both are second order for any q. Neither error is the smaller one in general: the quadratic
    interpolation is better with `trt` at `magic` = 1/12, the linear one in an array of spheres with
    `magic` = 3/16. The quadratic one needs at least two planes per rank, and each rank sends two to
    three times as much data. With both the effective position of the wall depends on the viscosity,
    which matters where tau is large or a permeability is wanted: use `central_linear` there.
    Both conserve the mass exactly with `conserve_mass`. q = 1/2 (half-way wall) for masks and
    voxels, for faces of the box, and where q < 1/2 and x - c_j is not a fluid cell. The
    interpolation is linear where x - c_j or x - 2c_j is not a fluid cell. All lattices.
    [Bouzidi, Firdaouss & Lallemand 2001, Phys. Fluids 13, 3452]
    """

    order: Literal[1, 2] = Field(1, description="1 linear, 2 quadratic")

    declares = Capabilities(
        per_link=PerLink(value=LinkValue.DISTANCE, fallbacks=(HALF_WAY_FALLBACK,)),
        read_by_others=True,
    )

    @property
    def capabilities(self) -> Capabilities:
        """With `order` = 2 the boundary reads two more cells, away from the wall."""
        found = super().capabilities
        if self.order == 1:
            return found
        per_link = PerLink(
            value=LinkValue.DISTANCE_QUADRATIC,
            behind=Behind.POPULATIONS,
            fallbacks=(HALF_WAY_FALLBACK, LINEAR_FALLBACK),
        )
        return replace(found, per_link=per_link)

    def warnings(self, case: Case) -> list[Finding]:
        """Notes on bodies in flows whose result depends on the viscosity through this boundary."""
        tau = max(tau_from_viscosity(fluid.viscosity, case.lattice.cs2) for fluid in case.fluids)
        driven = any(fluid.force for fluid in case.fluids) and case.single_fluid
        driven = driven or any(boundary.joins_faces for boundary in case.boundaries)
        if self.where or not (driven or tau > 1):
            return []
        sentence = (
            "the effective position of the wall depends on the viscosity: in an array of spheres "
            "18 cells across the drag changed by 1 % up to tau = 1 and by 4 % up to tau = 2 (here "
            f"{tau:.3g}; mpilbm manual boundaries); for permeabilities use central_linear or "
            "bounce_back, with trt"
        )
        return [Finding(NOTE, "", sentence)]

    def distance(self, cell: Cell, i: int) -> Expression:
        """The distance q_i, which is negative in the data where the third cell is missing."""
        q = cell.link(i)
        return q if self.order == 1 else cell.let(f"distance_{i}", cell.below(q, 0, -q, q))

    def at_surface(self, cell: Cell, i: int, q: Expression, change: Expression) -> Expression:
        """Interpolate between outgoing populations of the cell and of the cells behind it."""
        j = cell.lattice.opp[i]
        near = 2 * q * cell.left[j] + (1 - 2 * q) * cell.arrives[j] + change
        far = (cell.left[j] + (2 * q - 1) * cell.left[i] + change) / (2 * q)
        linear = cell.below(q, HALF, near, far)
        if self.order == 1:
            return linear
        near = (
            q * (2 * q + 1) * cell.left[j]
            + (1 - 4 * q**2) * cell.arrives[j]
            - q * (1 - 2 * q) * cell.behind(i, 2, j)
            + change
        )
        far = (
            (cell.left[j] + change) / (q * (2 * q + 1))
            + (2 * q - 1) / q * cell.left[i]
            - (2 * q - 1) / (2 * q + 1) * cell.behind(i, 1, i)
        )
        return cell.below(cell.link(i), 0, linear, cell.below(q, HALF, near, far))
