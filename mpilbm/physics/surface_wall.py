"""Base class of no-slip walls at the surface of a shape, at a distance along each link."""

from dataclasses import replace

from pydantic import Field

from mpilbm.model.cell import Cell
from mpilbm.model.expressions import Expression
from mpilbm.physics.boundaries.wall import Wall
from mpilbm.physics.boundary_capabilities import Capabilities


class SurfaceWall(Wall):
    """A no-slip wall at the distance q_i along each link, 0 < q_i <= 1; j = opp(i).

    A subclass defines `per_link` and `at_surface`, the incoming population g_i of a link. The
    motion of the wall has the density rho of the outgoing populations of the cell:

    d_i = feq_i(rho, u_wall) - feq_j(rho, u_wall), u_wall at x - q_i c_i

    The sum of g_i - f_out_j over all links of a body is not exactly 0. With `conserve_mass` each
    cell corrects its population at rest by the difference to half-way walls, which conserve mass:

    f_0 = f_out_0 + sum_i (f_out_j + d_i(rho_0, x - c_i / 2) - g_i),   rho_0 = 1

    where i are the links of the cell that cross the wall. In a cell whose population at rest
    another boundary sets, the sum is divided among these links, in proportion to w_i.
    """

    conserve_mass: bool = Field(
        False,
        description="conserve the mass exactly, with two to four times the error; for closed flows",
    )

    @property
    def capabilities(self) -> Capabilities:
        """`declares`, and whether the population at rest is set and the mass conserved."""
        return replace(self.declares, rest=self.conserve_mass, conserves=self.conserve_mass)

    def at_surface(self, cell: Cell, i: int, q: Expression, change: Expression) -> Expression:
        """The incoming population g_i of a link; `change` is d_i."""
        raise NotImplementedError

    def distance(self, cell: Cell, i: int) -> Expression:
        """The distance q_i."""
        return cell.link(i)

    def incoming(self, cell: Cell) -> dict[int, Expression]:
        """The g_i of all links; with `conserve_mass` corrected, and the population at rest."""
        found, motion = {}, self.motion(cell, local=True)
        for i in range(1, cell.lattice.Q):
            q = self.distance(cell, i)
            found[i] = self.at_surface(cell, i, q, cell.at_wall(i, motion[i], q))
        return self._conserving(cell, found) if self.conserve_mass else found

    def _conserving(self, cell: Cell, found: dict[int, Expression]) -> dict[int, Expression]:
        """The populations g_i, corrected by the mass that half-way walls would not add."""
        lattice, half_way, excess, weight = cell.lattice, self.motion(cell), 0, 0
        for i, g in found.items():
            found[i] = g = cell.let(f"surface_{i}", g)
            back = cell.left[lattice.opp[i]] + cell.at_wall(i, half_way[i])
            excess += cell.supplies(i, g - back, 0)
            weight += cell.supplies(i, lattice.w[i], 0)
        excess = cell.let("excess", excess)
        share = cell.let("share", cell.supplies(0, 0, excess / weight))
        corrected = {i: g - lattice.w[i] * share for i, g in found.items()}
        return {0: cell.left[0] - excess} | corrected
