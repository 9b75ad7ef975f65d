"""Scales, rotates and moves the vertices of a surface from its file into the box."""

from collections.abc import Sequence
from math import cos, radians, sin

import numpy as np

from mpilbm.solids.surfaces.triangles import Floats

QUARTER = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))  # cosine and sine of k 90 degrees


def placed(
    vertices: Floats, scale: float, rotate: Sequence[float], at: Sequence[float], anchor: str
) -> Floats:
    """Return the vertices (m, 3) in cell coordinates.

    They are scaled, rotated by `rotate` degrees about x, then y, then z, and moved so that the
    anchor (see `mesh`) is at `at`. In 2D, where `at` has two entries, the plane z = 0 leads
    through the anchor.
    """
    x, y, z = (scale * vertices).T
    for axis, angle in enumerate(rotate):
        c, s = _turn(angle)
        if axis == 0:
            y, z = c * y - s * z, s * y + c * z
        elif axis == 1:
            z, x = c * z - s * x, s * z + c * x
        else:
            x, y = c * x - s * y, s * x + c * y
    turned = np.stack([x, y, z], axis=1)
    if anchor == "origin":
        start = np.zeros(3)
    else:
        lower, upper = turned.min(axis=0), turned.max(axis=0)
        start = (lower + upper) / 2
        if anchor == "bottom":
            start[len(at) - 1] = lower[len(at) - 1]
    return turned + (np.append(at, [0.0] * (3 - len(at))) - start)


def _turn(angle: float) -> tuple[float, float]:
    """Cosine and sine of an angle in degrees, exact for multiples of 90."""
    if angle % 90 == 0:
        return QUARTER[int(angle // 90) % 4]
    return cos(radians(angle)), sin(radians(angle))


def longest_side(vertices: Floats) -> float:
    """The longest side of the bounding box of the vertices."""
    return float((vertices.max(axis=0) - vertices.min(axis=0)).max())
