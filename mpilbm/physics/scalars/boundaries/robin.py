"""Exchange with surroundings: a flux proportional to the difference at the wall."""

from typing import Annotated, Any

from numpy.typing import NDArray
from pydantic import Field

from mpilbm.core.formulas.values import Value
from mpilbm.core.quantity import KELVIN, TRANSFER
from mpilbm.core.registry import register
from mpilbm.model.case import Case
from mpilbm.model.cell import Cell
from mpilbm.model.expressions import Expression
from mpilbm.physics.scalars.boundaries import HALF_WAY, WITH_AREA, Numbers, ScalarBoundary


@register("scalar_boundaries", "robin")
class Robin(ScalarBoundary):
    """The flux h (ambient - phi_wall) enters the fluid, phi_wall half a link outside the cell.

    With j = opp(i), phi_wall = g_out_j / w_i + flux / cs2 follows from the populations of the link,
    so that flux = h (ambient - g_out_j / w_i) / (1 + h / cs2), and g_i = g_out_j + 2 w_i flux / cs2
    as for a given flux. Second order on faces of the box. On a body with a surface the terms with
    flux and h have the factor c_i.n, see `flux`.
    """

    h: Annotated[Value, TRANSFER] = Field(
        description="transfer coefficient, cells/step", examples=[0.01]
    )
    ambient: Annotated[Value, KELVIN] = Field(
        0.0, description="value of the surroundings", examples=[0.5]
    )

    numbers = ("h", "ambient")
    declares = HALF_WAY
    on_body = WITH_AREA

    def problems(self, case: Case) -> list[str]:
        """Errors of all conditions, and a negative transfer coefficient."""
        negative = isinstance(self.h, int | float) and self.h < 0
        found = [f"h: found {self.h:g}; allowed: 0 or more; remove the sign"] if negative else []
        return super().problems(case) + found

    def held(self, values: Numbers) -> NDArray[Any] | None:
        """The values of the surroundings; None where a coefficient is negative."""
        return values["ambient"] if (values["h"] >= 0).all() else None

    def incoming(self, cell: Cell) -> dict[int, Expression]:
        """The outgoing population of the same link, and the flux."""
        lattice, (h, ambient), found = cell.lattice, cell.values.values(), {}
        for i in range(1, lattice.Q):
            w, left = lattice.w[i], cell.left[lattice.opp[i]]
            area = cell.link(i) if self._uses_body else 1
            flux = h * (ambient - left / w) / (1 + area * h / lattice.cs2)
            found[i] = left + cell.at_wall(i, 2 * w * area * flux / lattice.cs2)
        return found
