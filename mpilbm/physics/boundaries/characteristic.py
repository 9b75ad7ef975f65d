"""Non-reflecting outflow: sound leaves the box."""

from pydantic import Field

from mpilbm.core.formulas.values import Given
from mpilbm.core.registry import register
from mpilbm.model.cell import Cell
from mpilbm.model.expressions import Expression
from mpilbm.physics.boundaries.outflow import FromInside
from mpilbm.physics.boundary_capabilities import Capabilities
from mpilbm.physics.equilibria import dot


@register("boundaries", "characteristic")
class Characteristic(FromInside):
    """Non-reflecting outflow: rho and u of the face follow the outgoing characteristic waves.

    s is the outward coordinate, v the velocity along s, u_t the velocity along the face. With
    one-sided differences from the cells inwards,

        L = (v + cs) cs (cs d(rho)/ds + rho dv/ds)      amplitude of the outgoing sound wave
        d(rho)/dt = -(L + K) / (2 cs2)
        dv/dt     = -(L - K) / (2 rho cs)
        du_t/dt   = -v du_t/ds

    K is the amplitude of the incoming sound wave. With a given `rho` = rho_0,
    K = relaxation cs2 (rho - rho_0), so the density of the face relaxes towards rho_0 at the rate
    relaxation / 2: a disturbance, such as that of an inlet at its start, decays in about
    2 / relaxation steps. A usual value of `relaxation` is 0.6 cs / length of the box; a larger
    value reflects more sound. Where the fluid enters, rho_0 is lower, see FromInside. Without
    `rho`, K = 0 and the mass is not fixed. All populations of the cell become feq_i(rho, u) +
    (f_i - feq_i)(x + n), where n is the inward normal. All lattices.
    [Izquierdo & Fueyo 2008, Phys. Rev. E 78, 046707; K: Poinsot & Lele 1992, J. Comput. Phys. 101,
    104]
    """

    declares = Capabilities(normal=True, whole_cell=True, inward=2)
    relaxation: float = Field(
        0.001, ge=0, lt=1, description="twice the rate at which the density relaxes to `rho`"
    )
    numbers = ("relaxation",)

    def values(self) -> dict[str, Given]:
        """The given density and `relaxation`; empty if no density is given."""
        return super().values() | ({} if self.rho is None else {"relaxation": self.relaxation})

    def incoming(self, cell: Cell) -> dict[int, Expression]:
        """Equilibrium after one step of the equations plus non-equilibrium of the cell inwards."""
        lattice, rho, u, n = cell.lattice, cell.rho, cell.u, cell.normal
        one, two = cell.inward(1), cell.inward(2)
        fields = zip([rho, *u], [one.rho, *one.u], [two.rho, *two.u], strict=True)
        slope = [
            cell.let(f"slope_{k}", (3 * a - 4 * b + c) / (2 * lattice.volume))
            for k, (a, b, c) in enumerate(fields)
        ]
        cs, v = cell.cs, cell.let("v", -dot(n, u))
        leaving = cell.let("leaving", (v + cs) * cs * (cs * slope[0] - rho * dot(n, slope[1:])))
        back = 0
        if self.rho is not None:
            back = cell.values["relaxation"] * lattice.cs2 * (rho - self.held(cell, u))
        change = -(leaving + back) / (2 * lattice.cs2)
        along = -(leaving - back) / (2 * rho * cs)
        density = cell.let("density_next", cell.density + change)
        u = [
            cell.let(f"u_next_{a}", u[a] + F / rho + (-n[a] * along if n[a] else -v * slope[1 + a]))
            for a, F in enumerate(cell.force)
        ]
        feq, f = cell.feq(density, cell.rest(density), u), one.arrives
        inside = cell.macroscopic(f)
        density, u = cell.let("density_inside", inside[0]), inside[2]
        u = [cell.let(f"u_inside_{a}", each) for a, each in enumerate(u)]
        before = cell.feq(density, cell.rest(density), u)
        return {i: feq[i] + f[i] - before[i] for i in range(lattice.Q)}
