"""The sphere; in 2D the disc."""

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mpilbm.core.quantity import LENGTH
from mpilbm.core.registry import register
from mpilbm.model.case import Case
from mpilbm.solids import Floats
from mpilbm.solids.rigid_shape import RigidShape
from mpilbm.solids.shapes import Corners, Shape, around
from mpilbm.solids.shares import SMALL, share_behind


@register("shapes", "sphere")
class Sphere(Shape):
    """Sphere |x - centre| <= radius, in 2D a disc."""

    centre: Annotated[tuple[float, ...], LENGTH] = Field(
        description="centre", examples=[[32, 32, 32]]
    )
    radius: Annotated[float, LENGTH] = Field(gt=0, description="radius", examples=[6.5])

    @np.errstate(over="ignore", invalid="ignore")  # of distances that are too large
    def inside(self, x: Any, y: Any, z: Any = None) -> Any:
        """|x - centre|² <= radius²."""
        points = (x, y) if z is None else (x, y, z)
        squares = [(p - c) ** 2 for p, c in zip(points, self.centre, strict=True)]
        return sum(squares) <= self.radius * self.radius

    def share(self, points: NDArray[Any]) -> Floats:
        """From the plane at |x - centre| = radius - (D - 1) / (24 radius).

        This is where a plane cuts the same volume as the sphere, on average over the cells, to
        order radius^-4.
        """
        offset = points - np.reshape(self.centre, (-1, 1))
        far = np.sqrt((offset**2).sum(axis=0))
        distance = far - self.radius + (len(points) - 1) / (24 * self.radius)
        return share_behind(distance, offset / np.maximum(far, SMALL))

    def signed_distance(self, points: NDArray[Any]) -> Floats:
        """|x - centre| - radius."""
        offset = points - np.reshape(self.centre, (-1, 1))
        found: Floats = np.sqrt((offset**2).sum(axis=0)) - self.radius
        return found

    def rigid(self, dimensions: int) -> RigidShape:
        """The surface at the radius from the centre."""
        round_axes = tuple(range(dimensions))
        return RigidShape(tuple(self.centre), radius=self.radius, round_axes=round_axes)

    def bounds(self) -> Corners:
        """centre ± radius."""
        return around(self.centre, [self.radius] * len(self.centre))

    def problems(self, case: Case) -> list[str]:
        """Errors: wrong number of entries."""
        return self.wrong_lengths(case, "centre")
