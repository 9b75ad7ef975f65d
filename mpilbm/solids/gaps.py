"""The gap between two rigid shapes: how far their surfaces are from each other, and where.

Formulas give the distance of any point from a shape. A field of distances gives it within BAND, so
the gap between a shape with formulas and one with a field follows from the points of the surface of
the latter, and beyond BAND the gap between two shapes with fields is not known.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mpilbm.solids import Floats
from mpilbm.solids.sampled_shape import FLAT, Rigid


class Placed(Protocol):
    """A shape in the box, with its centre and rotation."""

    @property
    def shape(self) -> Rigid:
        """The shape."""

    @property
    def rotation(self) -> Floats:
        """From the frame of the shape to that of the box, (3, 3)."""


@dataclass(frozen=True, eq=False)
class Near:
    """Two surfaces near each other.

    gap     the least distance; negative where they overlap
    normal  (3,), towards the first one. A mean over the points of the surface that are at most FLAT
            cells further away, shorter than 1 where the surface turns between them; so it moves
            continuously with the bodies.
    point   (3,), the mean of these points, moved to the middle of the gap, from the centre of the
            first one
    """

    gap: float
    normal: Floats
    point: Floats


def nearest(
    one: Placed, two: Placed, offset: Floats, size: tuple[int, ...], within: float
) -> Near | None:
    """The gap between two shapes in a box; None where it is larger than `within`, or not known.

    offset: (3,), from the centre of the second shape to that of the first.
    """
    found: list[Near] = []
    ball = one.shape.radius, two.shape.radius
    if one.shape.is_round and not two.shape.field:
        gap, normal = _distance(two, offset)
        at = -(ball[0] + gap) / 2 * normal
        found.append(Near(gap - ball[0], normal, at))
    elif two.shape.is_round and not one.shape.field:
        gap, normal = _distance(one, -offset)
        at = -(ball[1] + gap) / 2 * normal - offset
        found.append(Near(gap - ball[1], -normal, at))
    else:
        for a, b, r, sign in ((one, two, offset, 1), (two, one, -offset, -1)):
            points = a.shape.outline(size) @ a.rotation.T
            points = points[((points + r) ** 2).sum(axis=1) <= (b.shape.reach + within) ** 2]
            if near := _points_near(b, points, r, within):
                at = near.point - near.gap / 2 * near.normal
                found.append(Near(near.gap, sign * near.normal, at if sign > 0 else at - offset))
    near = min(found, key=lambda each: each.gap, default=None)
    return near if near and near.gap < within else None


def _points_near(shape: Placed, points: Floats, r: Floats, within: float) -> Near | None:
    """The gap between points (n, 3) of a surface, of which r is the centre, and a shape.

    r and the points are in the frame of the box, r from the centre of the shape. None if no point
    is nearer than `within`.
    """
    if not len(points):
        return None
    distance, normals = shape.shape.beside((points + r) @ shape.rotation)
    gap = float(distance.min())
    if not gap < within:
        return None
    weight = np.maximum(0, 1 - (distance - gap) / FLAT)
    weight /= weight.sum()
    return Near(gap, shape.rotation @ (weight @ normals), weight @ points)


def _distance(shape: Placed, r: Floats) -> tuple[float, Floats]:
    """The distance of a place, from the centre of a shape, from its surface; and its gradient."""
    distance, normals = shape.shape.beside((r @ shape.rotation)[None])
    return float(distance[0]), shape.rotation @ normals[0]
