"""Divides polygons into triangles."""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def triangles(corners: Ints, lengths: Ints) -> Ints:
    """Return the triangles (n, 3) of polygons, which are fans around their first corners.

    corners: the vertices of all polygons, one polygon after another; lengths: their numbers of
    corners, 3 or more. Of a quadrilateral a b c d they are a b c and c d a.
    """
    if (lengths == 3).all():
        return corners.reshape(-1, 3)
    polygon = np.repeat(np.arange(lengths.size), lengths - 2)
    begin = np.cumsum(lengths) - lengths
    number = np.arange(polygon.size) - np.repeat(np.cumsum(lengths - 2) - lengths + 2, lengths - 2)
    a = corners[begin[polygon]]
    b, c = (corners[begin[polygon] + number + k] for k in (1, 2))
    found = np.stack([a, b, c], axis=1)
    second = (lengths[polygon] == 4) & (number == 1)
    found[second] = found[second][:, [1, 2, 0]]
    return found
