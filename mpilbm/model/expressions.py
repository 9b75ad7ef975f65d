"""Expressions in the cells of a kernel, and the function that names them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

Expression = Any
"""A number or a SymPy expression. SymPy is imported by codegen and formulas only, and its operators
have no types."""

Populations = Sequence[Expression]
"""Q expressions, one for each direction."""

Vector = Sequence[Expression]
"""D expressions, one for each axis."""

Rates = Mapping[str, Expression]
"""The relaxation rates of a collision, by name."""

Stress = Mapping[tuple[int, int], Expression]
"""Second moments by the numbers of their axes (a, b) with a <= b."""

Moments = Mapping[tuple[int, ...], Expression]
"""Moments by their orders along the axes (n_x, n_y, …)."""

Incoming = Mapping[int, Expression]
"""Incoming populations by the numbers of their directions."""


class Let(Protocol):
    """Defines a named value in a kernel, so that its expression is computed once."""

    def __call__(self, name: str, expression: Expression, /) -> Expression:
        """Return the symbol of the value."""


class Equations(Protocol):
    """What a layout uses of the equations of a fluid."""

    def rest(self, density: Expression, /) -> Expression:
        """The density rho of a stored density."""

    def rebuilt(
        self, density: Expression, u: Vector, A: Sequence[Expression], only: Iterable[int] | None
    ) -> list[Expression]:
        """Outgoing populations from their moments; parameters as of `Collision.rebuilt`."""
