"""The ellipsoid; in 2D the ellipse."""

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mpilbm.core.quantity import ANGLE, LENGTH
from mpilbm.core.registry import register
from mpilbm.model.case import Case
from mpilbm.solids import Floats
from mpilbm.solids.shapes import Corners, Shape, around
from mpilbm.solids.surfaces.triangles import rotated

HALVINGS = 60  # of the interval in which the nearest point of the surface is looked for


@register("shapes", "tilted_ellipsoid")
class TiltedEllipsoid(Shape):
    """Ellipsoid sum ((x - centre) / radii)^2 <= 1, turned about its centre; in 2D an ellipse."""

    centre: Annotated[tuple[float, ...], LENGTH] = Field(
        description="centre", examples=[[32, 32, 32]]
    )
    radii: Annotated[tuple[float, ...], LENGTH] = Field(
        description="half of the length of each axis", examples=[[12, 6, 6]]
    )
    rotate: Annotated[tuple[float, float, float], ANGLE] = Field(
        (0.0, 0.0, 0.0),
        description="degrees about x, then y, then z; in 2D about z only",
        examples=[[0, 0, 30]],
    )

    @property
    def _axes(self) -> Floats:
        """The directions of the axes of the ellipsoid, (D, D), one in each row."""
        D = len(self.centre)
        return rotated(np.eye(3), self.rotate)[:D, :D]

    @np.errstate(over="ignore", invalid="ignore")  # of distances that are too large
    def inside(self, x: Any, y: Any, z: Any = None) -> Any:
        """sum (offset along each axis / radius)² <= 1."""
        points = (x, y) if z is None else (x, y, z)
        offsets = [p - c for p, c in zip(points, self.centre, strict=True)]
        squares = 0.0
        for axis, radius in zip(self._axes, self.radii, strict=True):
            along = sum(a * offset for a, offset in zip(axis, offsets, strict=True))
            squares = squares + (along / radius) ** 2
        return squares <= 1

    def signed_distance(self, points: NDArray[Any]) -> Floats:
        """The distance of the nearest point x of the surface.

        With y the place in the frame of the axes and e the radii, x_k = e_k² y_k / (t + e_k²); t is
        the largest root of sum (e_k y_k / (t + e_k²))² = 1, found by bisection. [Eberly 2013,
        Distance from a Point to an Ellipse, an Ellipsoid, or a Hyperellipsoid]
        """
        order = np.argsort(self.radii)
        e = np.array(self.radii)[order][:, None]
        y = np.abs(self._axes @ (points - np.reshape(self.centre, (-1, 1))))[order]
        low = -(e[0] ** 2) + e[0] * y[0]
        high = -(e[0] ** 2) + np.sqrt(((e * y) ** 2).sum(axis=0))
        for _ in range(HALVINGS):
            t = (low + high) / 2
            outside = ((e * y / np.maximum(t + e**2, 1e-300)) ** 2).sum(axis=0) > 1
            low, high = np.where(outside, t, low), np.where(outside, high, t)
        x = e**2 * y / np.maximum(high + e**2, 1e-300)
        # Near the plane across the shortest axis its own quotient is 0/0; the surface gives it.
        x[0] = e[0] * np.sqrt(np.maximum(0, 1 - ((x[1:] / e[1:]) ** 2).sum(axis=0)))
        far = np.sqrt(((x - y) ** 2).sum(axis=0))
        found: Floats = np.where(((y / e) ** 2).sum(axis=0) <= 1, -far, far)
        return found

    def bounds(self) -> Corners:
        """centre ± sqrt(sum (component of each axis times its radius)²)."""
        lengths = self._axes * np.reshape(self.radii, (-1, 1))
        return around(self.centre, np.sqrt((lengths**2).sum(axis=0)).tolist())

    def problems(self, case: Case) -> list[str]:
        """Errors: wrong number of entries, radii that are not positive, in 2D a wrong rotation."""
        found = self.wrong_lengths(case, "centre", "radii")
        if wrong := [radius for radius in self.radii if radius <= 0]:
            found.append(f"radii: found {wrong[0]:g}; allowed: positive numbers")
        if case.dimensions == 2 and any(self.rotate[:2]):
            found.append(f"rotate: found {list(self.rotate)}; allowed in 2D: [0, 0, degrees]")
        return found
