"""The cylinder; in 2D the disc."""

from math import inf
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mpilbm.core.quantity import LENGTH
from mpilbm.core.registry import register
from mpilbm.model.case import Case
from mpilbm.solids import Floats
from mpilbm.solids.rigid_shape import RigidShape
from mpilbm.solids.shapes import Corners, Shape, along_and_across, around, number_of, wrong_axis
from mpilbm.solids.shares import SMALL, overlap, share_behind


@register("shapes", "cylinder")
class Cylinder(Shape):
    """Circular cylinder along an axis, in 2D a disc.

    `length` is measured along the axis, with half of it on each side of `centre`; without `length`
    the cylinder extends through the whole box. `axis` and `length` are for 3D only.
    """

    centre: Annotated[tuple[float, ...], LENGTH] = Field(
        description="a point of the axis", examples=[[32, 32]]
    )
    radius: Annotated[float, LENGTH] = Field(gt=0, description="radius", examples=[6.5])
    axis: Literal["x", "y", "z"] | None = Field(None, description="direction of the axis; 3D only")
    length: Annotated[float | None, LENGTH] = Field(
        None, gt=0, description="length along the axis; none: through the box", examples=[20]
    )

    @np.errstate(over="ignore", invalid="ignore")  # of distances that are too large
    def inside(self, x: Any, y: Any, z: Any = None) -> Any:
        """Distance from the axis <= radius, distance along it from the centre <= length/2."""
        points = (x, y) if z is None else (x, y, z)
        along, squares = along_and_across(points, self.centre, self.axis)
        result = squares <= self.radius * self.radius
        return result if self.length is None else result & (abs(along) <= self.length / 2)

    def share(self, points: NDArray[Any]) -> Floats:
        """The share of the disc, see `sphere`, times the part of the cell between both ends."""
        offset = points - np.reshape(self.centre, (-1, 1))
        axis = None if len(points) == 2 else number_of(self.axis)
        across = offset if axis is None else np.delete(offset, axis, axis=0)
        far = np.sqrt((across**2).sum(axis=0))
        distance = far - self.radius + 1 / (24 * self.radius)
        found = share_behind(distance, across / np.maximum(far, SMALL))
        if axis is None or self.length is None:
            return found
        return found * overlap(offset[axis], -self.length / 2, self.length / 2)

    def signed_distance(self, points: NDArray[Any]) -> Floats:
        """The distance from the surface, negative inside, (n,), of points (D, n)."""
        rigid = self.rigid(len(points))
        return rigid.distance(np.pad(points, ((0, 3 - len(points)), (0, 0))).T - rigid.middle)

    def rigid(self, dimensions: int) -> RigidShape:
        """The surface at the radius from the axis, and the two ends."""
        if dimensions == 2:
            return RigidShape(tuple(self.centre), radius=self.radius, round_axes=(0, 1))
        axis = number_of(self.axis)
        half = [inf] * 3
        half[axis] = inf if self.length is None else self.length / 2
        across = tuple(a for a in range(3) if a != axis)
        return RigidShape(tuple(self.centre), tuple(half), self.radius, across)

    def bounds(self) -> Corners:
        """centre ± radius, along the axis centre ± length/2."""
        half = [self.radius] * len(self.centre)
        if len(half) == 3:
            half[number_of(self.axis)] = inf if self.length is None else self.length / 2
        return around(self.centre, half)

    def problems(self, case: Case) -> list[str]:
        """Errors: wrong number of entries, no axis in 3D, axis or length in 2D."""
        wrong = wrong_axis(self, case, "a cylinder is a disc", "axis", "length")
        return self.wrong_lengths(case, "centre") + wrong
