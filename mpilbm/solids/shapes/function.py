"""A shape that a function of a Python program defines."""

from math import inf
from typing import Any, Self

from pydantic import Field, PrivateAttr

from mpilbm.core.formulas.given_functions import GivenFunction
from mpilbm.core.registry import register
from mpilbm.model.case import Case
from mpilbm.solids.shapes import Corners, Shape


@register("shapes", "function")
class Function(Shape):
    """The points where a function f(x, y[, z]) of a Python program is True.

    In Python: `{"shape": f, "boundary": …}`. The function gets float64 arrays of one shape and
    returns a bool for each point; with `&` and `|` it combines conditions. The surface between
    cells is found by bisection. Torques are taken about the centre of the box unless the output
    gives another point. A case file cannot contain a function.
    """

    function: str = Field(
        description="reference to the function, which Python sets",
        examples=["<function ball of body.0.shape>"],
    )
    _given: GivenFunction | None = PrivateAttr(None)
    _size: tuple[int, ...] = PrivateAttr(())

    def resolved(self, case: Case) -> Self:
        """Find the function among the objects of the case."""
        given = case.given.get(self.function)
        if given is None or not isinstance(given.object, GivenFunction):
            raise ValueError(
                f"'{self.function}' is a function of a Python program, which a case file cannot "
                "contain; use another shape, or a mask file"
            )
        found = self.model_copy()
        found._given, found._size = given.object, tuple(case.domain.size)
        return found

    def inside(self, x: Any, y: Any, z: Any = None) -> Any:
        """The values of the function."""
        assert self._given is not None  # by `resolved`
        return self._given.truth((x, y) if z is None else (x, y, z))

    def bounds(self) -> Corners:
        """Infinite: a function has no images, and is evaluated in the box only."""
        return (-inf,) * len(self._size), (inf,) * len(self._size)
