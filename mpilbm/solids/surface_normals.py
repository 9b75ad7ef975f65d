"""Normals of the surface of a shape where links cross it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]

ASIDE = 1e-3  # cells between a link and those beside it whose distances give the slope


def along_normal(shape: Any, points: Floats, c: NDArray[Any]) -> Floats:
    """Return c.n, (n,), n being the unit normal, out of the shape, where links leave the shape.

    points, c: (D, n); points are outside the shape, points - c inside. The distances of the surface
    on links beside a link give the slopes of the surface over the plane normal to c, s_k along its
    unit vector k, and c.n = |c| / sqrt(1 + sum_k s_k^2).
    """
    length = np.sqrt((c * c).sum(axis=0))
    steepness = np.zeros(length.shape)
    for beside in _beside(c / length):
        steepness += (length * _slope(shape, points, c, ASIDE * beside) / ASIDE) ** 2
    return length / np.sqrt(1 + steepness)


def _beside(unit: Floats) -> list[Floats]:
    """D - 1 unit vectors, (D, n) each, normal to given ones and to each other."""
    if len(unit) == 2:
        return [np.stack([-unit[1], unit[0]])]
    axis = np.zeros(unit.shape)  # the axis that is closest to the plane normal to a vector
    np.put_along_axis(axis, np.abs(unit).argmin(axis=0)[None], 1.0, axis=0)
    one = np.cross(unit, axis, axis=0)
    one /= np.sqrt((one * one).sum(axis=0))
    return [one, np.cross(unit, one, axis=0)]


def _slope(shape: Any, points: Floats, c: Floats, aside: Floats) -> Floats:
    """The increase of the distance, in links, from a link to one that is `aside` of it.

    By a central difference, one-sided where a link beside it does not cross the surface, and 0
    where neither does.
    """
    middle = shape.distance(points, -c)
    total, count = np.zeros(middle.shape), np.zeros(middle.shape)
    for sign in (1, -1):
        near = points + sign * aside
        crosses = ~shape.inside(*near) & shape.inside(*(near - c))
        mine = np.flatnonzero(crosses)
        total[mine] += sign * (shape.distance(near[:, mine], -c[:, mine]) - middle[mine])
        count += crosses
    return total / np.maximum(count, 1)
