"""Shapes of bodies. A [[body]] has either a shape or a mask.

Imports physics and lower layers. To add a shape, write one file with a class derived from `Shape`
and `@register("shapes", name)`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mpilbm.geometry.periodic_images import Corners, ShapeInBox, bisected
from mpilbm.registry import Parameters
from mpilbm.units import counted


class Shape(Parameters):
    """A set of points; a cell is solid if its centre is in the set.

    Lengths are in cells, the box extends from 0 to nx, ny, nz, cell centres are 0.5, 1.5, …
    Its methods treat a shape as if there were no box: `in_box` adds the images of a shape that
    reaches through a periodic face.
    """

    @property
    def has_surface(self) -> bool:
        """Whether the shape has a surface between cells; otherwise all walls are half-way."""
        return True

    def files(self) -> list[Path]:
        """The files that the shape reads."""
        return []

    def resolved(self, case) -> Self:
        """Return the shape as it is used in this case, such as with the path of its file.

        It is called once, before anything else; `case.directory` is the folder to which paths are
        relative. Raises ValueError for an invalid file.
        """
        return self

    def inside(self, x: Any, y: Any, z: Any = None) -> Any:
        """Return a bool array: whether each point (x, y, z) is in the shape.

        x, y, z: arrays that broadcast against each other; z is None in 2D.
        """
        raise NotImplementedError

    def distance(self, points: NDArray[Any], step: NDArray[Any]) -> NDArray[np.float64]:
        """Return q, (n,), 0 <= q <= 1, such that points + q * step lies on the surface.

        points, step: (D, n); `points` are outside the shape, points + step inside. Computed by
        bisection, which finds one of the surfaces if there are several.
        """
        return bisected(self.inside, points, step)

    def in_box(self, domain: Any) -> ShapeInBox:
        """Return the shape with its images in a box, `case.domain`; see periodic_images.py."""
        return ShapeInBox(self, domain)

    def bounds(self) -> Corners:
        """Return the corners (x, y[, z]) of a box that contains the shape; may be infinite."""
        raise NotImplementedError

    def problems(self, case) -> list[str]:
        """Errors in the parameters, one line each."""
        return []

    def wrong_lengths(self, case, *keys: str) -> list[str]:
        """A line for each of the keys whose vector does not have one entry per dimension."""
        wanted = case.dimensions
        axes = ", ".join("xyz"[:wanted])
        return [
            f"{key} = {list(getattr(self, key))} has {counted(len(getattr(self, key)), 'entry')}; "
            f"give {wanted} ({axes}) in {wanted}D"
            for key in keys
            if len(getattr(self, key)) != wanted
        ]


def around(centre: Sequence[float], half: Sequence[float]) -> Corners:
    """Return the corners of a box, from its centre and half of its size along each axis."""
    lower = tuple(c - h for c, h in zip(centre, half, strict=True))
    return lower, tuple(c + h for c, h in zip(centre, half, strict=True))


def number_of(axis: str | None) -> int:
    """Return 0, 1, 2 for x, y, z; raise ValueError for None, which `problems` refuses in 3D."""
    if axis is None:
        raise ValueError("a shape in 3D has no axis")
    return "xyz".index(axis)
