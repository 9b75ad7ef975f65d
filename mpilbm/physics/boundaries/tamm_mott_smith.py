"""Tamm-Mott-Smith: equilibria at a velocity interpolated between the wall and the flow."""

from mpilbm.core.registry import register
from mpilbm.model.case import Case
from mpilbm.model.cell import Cell
from mpilbm.model.expressions import Expression
from mpilbm.physics.boundaries.wall import Wall
from mpilbm.physics.boundary_capabilities import Behind, Capabilities, LinkValue, PerLink
from mpilbm.physics.equilibria import dot


@register("boundaries", "tamm_mott_smith")
class TammMottSmith(Wall):
    """f_k = f*_k + feq_k(rho_t, u_t) - feq_k(rho*, u*) for all k.

    f*_k is feq_k(rho_t, u_t) along links that cross the wall, and the arriving population along
    all others; rho* and u* are density and velocity of f*. The wall lies at the distance q_i along
    each link, 0 < q_i <= 1. The target velocity u_t and the target density rho_t are

        u_t   = mean over the links that cross the wall of
                (q_i u(x + c_i) + u_wall) / (1 + q_i),       u_wall at x - q_i c_i
        rho_t = sum of the arriving populations, with
                f_out_opp(i) + feq_i(rho_0, u_wall) - feq_opp(i)(rho_0, u_wall) on these links

    u(x + c_i) is the velocity in the previous step; rho_0 = 1. First order, because most of the
    stress in the cell is lost: intended for turbulence on coarse grids. Use `interpolated` in
    resolved flow. At walls at rest the mass is conserved, except in cells next to two walls of
    different entries of the case file. q = 1/2 (half-way wall) for masks and faces of the box. Each
    rank needs at least two planes, and sends about four times as much data. All lattices.
    [Chikatamarla & Karlin 2013, Physica A 392, 1925]
    """

    declares = Capabilities(
        whole_cell=True,
        per_link=PerLink(
            value=LinkValue.DISTANCE_ONLY,
            behind=Behind.VELOCITY,
            fallbacks=(
                "links have no fluid behind their cell; it uses the velocity of the cell there",
            ),
        ),
    )

    def warnings(self, case: Case) -> list[str]:
        """Warnings: adjacent faces that prescribe values at the node, in cells that both set."""
        axes = {face[0] for face in self.where}
        on_site = ((b, face) for b in case.boundaries if b.wall_at == "node" for face in b.where)
        beside = [f"'{b.name}' at {face}" for b, face in on_site if axes - {face[0]}]
        if not beside:
            return []
        return [
            f"where: in the cells shared with {', '.join(beside)}, tamm_mott_smith treats that "
            "face as a wall at rest: in a channel 16 cells wide an inlet lost 4 % of its flux, and "
            "8 % between walls that moved with the flow; use bounce_back or interpolated"
        ]

    def incoming(self, cell: Cell) -> dict[int, Expression]:
        """All Q populations, with density and velocity shifted to the target values."""
        lattice, each = cell.lattice, range(1, cell.lattice.Q)
        motion, u_wall = self.motion(cell), list(cell.values.values()) or [0] * lattice.D
        count, density, total = 0, cell.arrives[0], [0] * lattice.D
        for i in each:
            q = cell.link(i)
            near = cell.u_behind(i)
            count += cell.owns(i, 1, 0)
            back = cell.left[lattice.opp[i]] + cell.at_wall(i, motion[i], q)
            density += cell.owns(i, back, cell.arrives[i])
            for a in range(lattice.D):
                u = (q * near[a] + cell.at_wall(i, u_wall[a], q)) / (1 + q)
                total[a] += cell.owns(i, u, 0)
        density = cell.let("density_target", density)
        u = [cell.let(f"u_target_{a}", sum_a / count) for a, sum_a in enumerate(total)]
        target = cell.feq(density, cell.rest(density), u)
        target = [cell.let(f"target_{k}", f) for k, f in enumerate(target)]
        f = [cell.arrives[0]]
        f += [cell.let(f"star_{i}", cell.owns(i, target[i], cell.arrives[i])) for i in each]
        density = cell.let("density_star", sum(f))
        momentum = [dot([c[a] for c in lattice.c], f) for a in range(lattice.D)]
        u = cell.velocity(momentum, cell.rest(density))
        u = [cell.let(f"u_star_{a}", v) for a, v in enumerate(u)]
        before = cell.feq(density, cell.rest(density), u)
        return {k: f[k] + target[k] - before[k] for k in range(lattice.Q)}
