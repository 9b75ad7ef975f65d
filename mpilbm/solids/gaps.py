"""The gaps between two rigid shapes: how far their surfaces are from each other, and where.

Formulas give the distance of any point from a shape. A field of distances gives it within BAND, so
the gap between a shape with formulas and one with a field follows from the points of the surface of
the latter, and beyond BAND the gap between two shapes with fields is not known.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mpilbm.solids import Floats
from mpilbm.solids.near_parts import near_parts
from mpilbm.solids.sampled_shape import Rigid


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
    """A part of a surface near another one, see near_parts.py.

    share   of this part in the force, 0 to 1
    gap     the least distance; negative where they overlap
    normal  (3,), towards the first one. A mean over the points of the part near its nearest one,
            shorter than 1 where the surface turns between them; so it moves continuously with the
            bodies.
    point   (3,), the mean of these points, moved to the middle of the gap, from the centre of the
            first one
    """

    share: float
    gap: float
    normal: Floats
    point: Floats


def gaps(
    one: Placed, two: Placed, offset: Floats, size: tuple[int, ...], within: float
) -> list[Near]:
    """The gaps between two shapes in a box that are known and smaller than `within`.

    One for each part of the surface that is near; a round shape has one gap to a shape with a
    formula. offset: (3,), from the centre of the second shape to that of the first.
    """
    ball = one.shape.radius, two.shape.radius
    if _exact(one.shape, two.shape):
        gap, normal = _distance(two, offset)
        at = -(ball[0] + gap) / 2 * normal
        found = [Near(1.0, gap - ball[0], normal, at)]
    elif _exact(two.shape, one.shape):
        gap, normal = _distance(one, -offset)
        at = -(ball[1] + gap) / 2 * normal - offset
        found = [Near(1.0, gap - ball[1], -normal, at)]
    else:
        ways = ((one, two, offset, 1), (two, one, -offset, -1))
        of_points = [_of_points(a, b, r, sign, size, within) for a, b, r, sign in ways]
        found = min(of_points, key=lambda each: min((n.gap for n in each), default=within))
    return [near for near in found if near.gap < within]


def _of_points(
    one: Placed, two: Placed, r: Floats, sign: int, size: tuple[int, ...], within: float
) -> list[Near]:
    """The gaps between the points of the surface of one shape and the other shape.

    r: (3,), from the centre of the second shape. sign: 1 if the first shape is that of `Near`.
    """
    outline = one.shape.outline(size)
    points = outline @ one.rotation.T
    across = [axis not in two.shape.endless for axis in range(3)]
    away = ((points + r)[:, across] ** 2).sum(axis=1)
    some = away <= (two.shape.reach + within) ** 2
    if not some.any():
        return []
    points = points[some]
    distance, normals = two.shape.beside((points + r) @ two.rotation, within)
    found = []
    for part in near_parts(distance, outline[some], one.shape.spacing(size), within):
        normal = two.rotation @ part.mean(normals)
        at = part.mean(points) - part.gap / 2 * normal
        place = at if sign > 0 else at + r
        found.append(Near(part.share, part.gap, sign * normal, place))
    return found


def _exact(ball: Rigid, shape: Rigid) -> bool:
    """Whether the distance of the centre of a round shape from another shape gives their gap.

    Not that of an endless cylinder from a finite shape, which may be nearest at another height.
    """
    return ball.is_round and not shape.field and (not ball.endless or bool(shape.endless))


def _distance(shape: Placed, r: Floats) -> tuple[float, Floats]:
    """The distance of a place, from the centre of a shape, from its surface; and its gradient."""
    distance, normals = shape.shape.beside((r @ shape.rotation)[None], np.inf)
    return float(distance[0]), shape.rotation @ normals[0]
