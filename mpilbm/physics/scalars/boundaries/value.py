"""A given value of the scalar at a wall or an inlet."""

from fractions import Fraction
from typing import Annotated, Any

from numpy.typing import NDArray
from pydantic import Field

from mpilbm.core.formulas.values import Value
from mpilbm.core.quantity import KELVIN
from mpilbm.core.registry import register
from mpilbm.model.cell import Cell
from mpilbm.model.expressions import Expression
from mpilbm.physics.scalars.boundaries import AT_SURFACE, HALF_WAY, Numbers, ScalarBoundary

HALF = Fraction(1, 2)


@register("scalar_boundaries", "value")
class GivenValue(ScalarBoundary):
    """Anti-bounce-back: g_i = -g_out_opp(i) + 2 w_i phi_wall, half a link outside the cell.

    Second order. On a body whose own boundary interpolates, so does this condition: with the
    distance q of the wall along the link, 0 < q <= 1, and j = opp(i)

        g_i(x) = -2q g_out_j(x) - (1 - 2q) g_out_j(x - c_j) + 2 w_i phi_wall          q < 1/2
        g_i(x) = (-g_out_j(x) + (2q - 1) g_out_i(x) + 2 w_i phi_wall) / (2q)          q >= 1/2

    [Ginzburg 2005, Adv. Water Resour. 28, 1196; Li, Mei & Klausner 2013, J. Comput. Phys. 237, 366]
    """

    value: Annotated[Value, KELVIN] = Field(
        description="value at the wall: number, formula or file", examples=[1.0]
    )

    numbers = ("value",)
    declares = HALF_WAY
    on_body = AT_SURFACE

    def held(self, values: Numbers) -> NDArray[Any] | None:
        """The given values."""
        return values["value"]

    def incoming(self, cell: Cell) -> dict[int, Expression]:
        """The value at the wall, from the outgoing population of the same link."""
        found = {}
        for i in range(1, cell.lattice.Q):
            j, twice = cell.lattice.opp[i], 2 * cell.lattice.w[i] * cell.values["value"]
            if not self._uses_body:
                found[i] = -cell.left[j] + cell.at_wall(i, twice)
                continue
            q = cell.link(i)
            given = cell.at_wall(i, twice, q)
            near = -2 * q * cell.left[j] - (1 - 2 * q) * cell.arrives[j] + given
            far = (-cell.left[j] + (2 * q - 1) * cell.left[i] + given) / (2 * q)
            found[i] = cell.below(q, HALF, near, far)
        return found
