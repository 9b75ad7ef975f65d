"""A pressure jump between opposite periodic faces, which drives a flow in a duct."""

from typing import Annotated

from pydantic import Field

from mpilbm.core.formulas.values import Given, Value
from mpilbm.core.quantity import RHO_JUMP
from mpilbm.core.registry import register
from mpilbm.model.case import Case
from mpilbm.model.cell import Cell
from mpilbm.model.expressions import Expression
from mpilbm.physics.boundaries import Boundary
from mpilbm.physics.boundary_capabilities import Beyond, Capabilities
from mpilbm.physics.equilibria import dot


@register("boundaries", "pressure_jump")
class PressureJump(Boundary):
    """The density falls by `rho_jump` between two periodic faces, as `where` = ["x-", "x+"].

        f_i(x, t+1) = f_out_i(x - c_i, t) + s_i feq_i(rho_jump, u = 0)

    s_i = 1 for populations that enter through the lower face and -1 for populations that enter
    through the upper face. Velocity and non-equilibrium part are periodic. The mass is conserved
    exactly. The force on the flow is cs2 rho_jump per unit area of the face; a body force
    cs2 rho_jump / nx in all cells has the same effect. Second order. All other faces must be walls.
    A link that comes from a wall or a body beyond the face belongs to that wall or body. All
    lattices.
    [Kim & Pitsch 2007, Phys. Fluids 19, 108101, linearised in the velocity]
    """

    declares = Capabilities(normal=True, beyond=Beyond.OPPOSITE_FACE)
    rho_jump: Annotated[Value, RHO_JUMP] = Field(
        description="number, or formula of x, y, z, t; pressure is cs2 rho", examples=[0.001]
    )
    numbers = ("rho_jump",)

    def values(self) -> dict[str, Given]:
        """The density jump."""
        return {"rho_jump": self.rho_jump}

    def incoming(self, cell: Cell) -> dict[int, Expression]:
        """The populations from the opposite face, with the density jump added."""
        lattice, n = cell.lattice, cell.normal
        jump = sum(n) * cell.values["rho_jump"]
        step = cell.feq(jump, jump, [0] * lattice.D)
        here = (0,) * lattice.D
        return {
            i: cell.streams(here, i) + cell.at_wall(i, step[i])
            for i, c in enumerate(lattice.c)
            if dot(c, n) > 0
        }

    def problems(self, case: Case) -> list[str]:
        """Errors: faces that are not a pair, a second jump, other faces that are not walls."""
        found = super().problems(case)
        if isinstance(self.rho_jump, int | float) and abs(self.rho_jump) >= 1:
            found.append(
                f"rho_jump: found {self.rho_jump}; allowed: between -1 and 1, the density "
                "of the fluid; use at most 0.01 for errors below 1 %"
            )
        faces = {tuple(sorted(b.where)) for b in case.boundaries if b.joins_faces}
        if any(len(where) != 2 or where[0][0] != where[1][0] for where in faces):
            found.append(
                f'where: found {list(self.where)}; allowed: two opposite faces, as ["x-", "x+"]'
            )
        if sum(b.joins_faces for b in case.boundaries) > 1:
            found.append(
                "found two [[boundary]] entries 'pressure_jump'; allowed: one; drive the "
                "flow along the other axis by a force"
            )
        for b in case.boundaries:
            if not b.joins_faces and (b.wall_at != "half" or b.mirrors):
                found.append(
                    f"pressure_jump: found '{b.name}' at {', '.join(b.where)}; allowed at "
                    "other faces: walls, like bounce_back; or use a force"
                )
        return found
