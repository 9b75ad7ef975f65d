"""The box; in 2D the rectangle."""

from functools import reduce
from operator import and_, mul
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mpilbm.core.quantity import LENGTH
from mpilbm.core.registry import register
from mpilbm.model.case import Case
from mpilbm.solids import Floats
from mpilbm.solids.rigid_shape import RigidShape
from mpilbm.solids.shapes import Corners, Shape
from mpilbm.solids.shares import overlap


@register("shapes", "box")
class Box(Shape):
    """Box lower <= x < upper along each axis; adjacent boxes do not share cells."""

    lower: Annotated[tuple[float, ...], LENGTH] = Field(
        description="lower corner", examples=[[10, 0, 0]]
    )
    upper: Annotated[tuple[float, ...], LENGTH] = Field(
        description="upper corner", examples=[[20, 8, 8]]
    )

    def inside(self, x: Any, y: Any, z: Any = None) -> Any:
        """Lower <= x < upper."""
        sides = zip((x, y) if z is None else (x, y, z), self.lower, self.upper, strict=True)
        return reduce(and_, [(lower <= at) & (at < upper) for at, lower, upper in sides])

    def share(self, points: NDArray[Any]) -> Floats:
        """The product of the overlaps along the axes: exact."""
        sides = zip(points, self.lower, self.upper, strict=True)
        return reduce(mul, (overlap(*side) for side in sides))

    def signed_distance(self, points: NDArray[Any]) -> Floats:
        """The distance from the surface, negative inside, (n,), of points (D, n)."""
        rigid = self.rigid(len(points))
        return rigid.distance(np.pad(points, ((0, 3 - len(points)), (0, 0))).T - rigid.middle)

    def rigid(self, dimensions: int) -> RigidShape:
        """The sides; the share at an edge is the product of those at the sides."""
        ends = list(zip(self.lower, self.upper, strict=True))
        centre = tuple((a + b) / 2 for a, b in ends)
        return RigidShape(centre, tuple((b - a) / 2 for a, b in ends))

    def bounds(self) -> Corners:
        """The two corners."""
        return self.lower, self.upper

    def problems(self, case: Case) -> list[str]:
        """Errors: wrong number of entries, or lower corner not below the upper corner."""
        problems = self.wrong_lengths(case, "lower", "upper")
        if not problems and any(a >= b for a, b in zip(self.lower, self.upper, strict=True)):
            problems = [
                f"lower = {list(self.lower)} is not below upper = {list(self.upper)} along every "
                "axis; give the smaller corner as lower"
            ]
        return problems
