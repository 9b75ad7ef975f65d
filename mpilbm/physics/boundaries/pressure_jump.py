"""A pressure jump between opposite periodic faces, which drives a flow in a duct."""

from pydantic import Field

from mpilbm.formulas.values import Value
from mpilbm.physics.boundaries import Boundary
from mpilbm.physics.boundary_capabilities import Beyond, Capabilities
from mpilbm.physics.equilibria import dot
from mpilbm.registry import register


@register("boundaries", "pressure_jump")
class PressureJump(Boundary):
    """Between `where` = ["x-", "x+"], periodic, the density falls by `rho_jump` along x.

    f_i(x, t+1) = f_out_i(x - c_i, t) + s_i feq_i(rho_jump, u = 0), s_i = 1 for populations that
    enter through the lower face, -1 for those through the upper one. It is the periodic pressure
    condition that keeps velocity and non-equilibrium, linear in the velocity; so the mass is
    conserved exactly, and the force on the flow is cs2 rho_jump per unit area of the face, like
    that of a body force cs2 rho_jump / nx in all cells. Second order. Only between walls; links
    that start in a wall or a body beyond the face belong to these. All lattices.
    [Kim & Pitsch 2007, Phys. Fluids 19, 108101]
    """

    declares = Capabilities(normal=True, beyond=Beyond.OPPOSITE_FACE)
    rho_jump: Value = Field(
        description="number, or formula of x, y, z, t; pressure is cs2 rho", examples=[0.001]
    )

    def structure(self):
        """Without the jump, which is a number that the kernel reads."""
        return {key: v for key, v in super().structure().items() if key != "rho_jump"}

    def values(self):
        """The density jump."""
        return {"rho_jump": self.rho_jump}

    def incoming(self, cell):
        """Populations from the opposite face, at the pressure of this one."""
        lattice, n = cell.lattice, cell.normal
        jump = sum(n) * cell.values["rho_jump"]
        step = cell.feq(jump, jump, [0] * lattice.D)
        here = (0,) * lattice.D
        return {
            i: cell.streams(here, i) + cell.at_wall(i, step[i])
            for i, c in enumerate(lattice.c)
            if dot(c, n) > 0
        }

    def problems(self, case):
        """Refuse faces that are not a pair, two jumps, and other faces without no-slip walls."""
        found = super().problems(case)
        if isinstance(self.rho_jump, int | float) and abs(self.rho_jump) >= 1:
            found.append(f"rho_jump: found {self.rho_jump}; allowed: less than the density of the "
                         "fluid, 1, and for errors below a percent 0.01 of it")  # fmt: skip
        faces = {tuple(sorted(b.where)) for b in case.boundaries if b.joins_faces}
        if any(len(where) != 2 or where[0][0] != where[1][0] for where in faces):
            found.append(f'where: found {list(self.where)}; allowed: two opposite faces, as '
                         f'["x-", "x+"]')  # fmt: skip
        if sum(b.joins_faces for b in case.boundaries) > 1:
            found.append("pressure_jump occurs twice; keep one, and drive the flow along the other "
                         "axis by a force")  # fmt: skip
        for b in case.boundaries:
            if not b.joins_faces and (b.wall_at != "half" or b.mirrors):
                found.append(f"is next to '{b.name}' at {', '.join(b.where)}, but needs walls "
                             "there, like bounce_back; use a force instead")  # fmt: skip
        return found
