"""The half space; in 2D the half plane."""

from math import hypot, inf
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mpilbm.core.quantity import LENGTH
from mpilbm.core.registry import register
from mpilbm.model.case import Case
from mpilbm.solids import Floats
from mpilbm.solids.shapes import Corners, Shape
from mpilbm.solids.shares import share_behind


@register("shapes", "half_space")
class HalfSpace(Shape):
    """All points on one side of a plane through `point`: (x - point) . normal <= 0.

    `normal` points to the fluid and may have any length. The solid ends at the faces of the box,
    also at periodic ones.
    """

    point: Annotated[tuple[float, ...], LENGTH] = Field(
        description="a point of the plane", examples=[[0, 10]]
    )
    normal: tuple[float, ...] = Field(
        description="normal of the plane, from the solid to the fluid", examples=[[0, 1]]
    )

    def inside(self, x: Any, y: Any, z: Any = None) -> Any:
        """(x - point) . normal <= 0."""
        points = (x, y) if z is None else (x, y, z)
        triples = zip(points, self.point, self.normal, strict=True)
        return sum((x - p) * n for x, p, n in triples) <= 0

    def share(self, points: NDArray[Any]) -> Floats:
        """The share of a cell on one side of the plane: exact."""
        normal = np.reshape(self.normal, (-1, 1)) / hypot(*self.normal)
        distance = ((points - np.reshape(self.point, (-1, 1))) * normal).sum(axis=0)
        return share_behind(distance, np.broadcast_to(normal, points.shape))

    def signed_distance(self, points: NDArray[Any]) -> Floats:
        """The distance from the plane, negative inside, (n,), of points (D, n)."""
        normal = np.reshape(self.normal, (-1, 1)) / hypot(*self.normal)
        found: Floats = ((points - np.reshape(self.point, (-1, 1))) * normal).sum(axis=0)
        return found

    def bounds(self) -> Corners:
        """Infinite, except where the plane is perpendicular to an axis."""
        lower, upper = [-inf] * len(self.point), [inf] * len(self.point)
        across = [a for a, n in enumerate(self.normal) if n]
        if len(across) == 1:
            (a,) = across
            (upper if self.normal[a] > 0 else lower)[a] = self.point[a]
        return tuple(lower), tuple(upper)

    def problems(self, case: Case) -> list[str]:
        """Errors: wrong number of entries, or a normal of length zero."""
        problems = self.wrong_lengths(case, "point", "normal")
        if not any(self.normal):
            problems.append(
                f"normal = {list(self.normal)} has the length zero; give a vector that points "
                "from the solid to the fluid"
            )
        return problems
