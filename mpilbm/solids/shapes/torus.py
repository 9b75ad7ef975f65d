"""The torus; in 2D the ring."""

from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mpilbm.core.quantity import LENGTH
from mpilbm.core.registry import register
from mpilbm.model.case import Case
from mpilbm.solids import Floats
from mpilbm.solids.shapes import Corners, Shape, along_and_across, around, number_of, wrong_axis


@register("shapes", "torus")
class Torus(Shape):
    """Tube of radius `tube` around a circle of `radius` about `axis`; in 2D a ring without axis."""

    centre: Annotated[tuple[float, ...], LENGTH] = Field(
        description="centre", examples=[[32, 32, 32]]
    )
    radius: Annotated[float, LENGTH] = Field(
        gt=0, description="radius of the circle", examples=[12]
    )
    tube: Annotated[float, LENGTH] = Field(gt=0, description="radius of the tube", examples=[4])
    axis: Literal["x", "y", "z"] | None = Field(None, description="axis of symmetry; 3D only")

    @np.errstate(over="ignore", invalid="ignore")  # of distances that are too large
    def inside(self, x: Any, y: Any, z: Any = None) -> Any:
        """(distance from the axis - radius)² + (distance along it)² <= tube²."""
        points = (x, y) if z is None else (x, y, z)
        along, squares = along_and_across(points, self.centre, self.axis)
        return (squares**0.5 - self.radius) ** 2 + along**2 <= self.tube * self.tube

    def signed_distance(self, points: NDArray[Any]) -> Floats:
        """Distance from the circle - tube."""
        along, squares = along_and_across(points, self.centre, self.axis)
        found: Floats = np.sqrt((np.sqrt(squares) - self.radius) ** 2 + along**2) - self.tube
        return found

    def bounds(self) -> Corners:
        """centre ± (radius + tube), along the axis ± tube."""
        half = [self.radius + self.tube] * len(self.centre)
        if len(half) == 3:
            half[number_of(self.axis)] = self.tube
        return around(self.centre, half)

    def problems(self, case: Case) -> list[str]:
        """Errors: wrong number of entries, no axis in 3D, an axis in 2D."""
        wrong = wrong_axis(self, case, "a torus is a ring", "axis")
        return self.wrong_lengths(case, "centre") + wrong
