"""Divides polygons into triangles.

A convex polygon becomes a fan around its first corner. From other polygons ears are cut: a corner
and its neighbours, if the polygon is convex there and no other corner lies in this triangle. A fan
would cover places outside such a polygon twice, which look like a sheet.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FLAT = 1e-6  # part of the area of a polygon by which it may be concave at a corner of a fan
INSIDE = 1e-12  # part of the area of a polygon by which a corner lies inside an ear
BLOCK = 2**18  # polygons that are examined together


def triangles(corners: Ints, lengths: Ints, vertices: Floats) -> Ints:
    """Return the triangles (n, 3) of polygons, of each two fewer than it has corners.

    corners: the vertices of all polygons, one polygon after another; lengths: their numbers of
    corners, 3 or more; vertices (m, 3). Of a convex quadrilateral a b c d they are a b c and c d a.
    """
    if (lengths == 3).all():
        return corners.reshape(-1, 3)
    found = _fans(corners, lengths)
    if corners.min() < 0 or corners.max() >= len(vertices):  # an error that the caller reports
        return found
    begin, row = np.cumsum(lengths) - lengths, np.cumsum(lengths - 2) - (lengths - 2)
    for k in _concave(corners, lengths, vertices):
        mine = corners[begin[k] : begin[k] + lengths[k]]
        found[row[k] : row[k] + lengths[k] - 2] = mine[_ears(vertices[mine])]
    return found


def _fans(corners: Ints, lengths: Ints) -> Ints:
    """The triangles around the first corners."""
    polygon = np.repeat(np.arange(lengths.size), lengths - 2)
    begin = np.cumsum(lengths) - lengths
    number = np.arange(polygon.size) - np.repeat(np.cumsum(lengths - 2) - lengths + 2, lengths - 2)
    a = corners[begin[polygon]]
    b, c = (corners[begin[polygon] + number + k] for k in (1, 2))
    found = np.stack([a, b, c], axis=1)
    second = (lengths[polygon] == 4) & (number == 1)
    found[second] = found[second][:, [1, 2, 0]]
    return found


def _concave(corners: Ints, lengths: Ints, vertices: Floats) -> Iterator[int]:
    """Yield the polygons with a corner at which they turn against their normal."""
    begin = np.cumsum(lengths) - lengths
    larger = np.flatnonzero(lengths > 3)
    for at in range(0, larger.size, BLOCK):
        mine = larger[at : at + BLOCK]
        n = lengths[mine]
        first = np.cumsum(n) - n
        after = np.arange(n.sum()) + 1
        after[first + n - 1] = first
        points = vertices[corners[np.arange(n.sum()) + np.repeat(begin[mine] - first, n)]]
        with np.errstate(over="ignore", invalid="ignore"):  # the caller reports such numbers
            spokes = points - np.repeat(points[first], n, axis=0)
            normal = np.add.reduceat(np.cross(spokes, spokes[after]), first)
            edges = points[after] - points
            turn = (np.cross(edges, edges[after]) * np.repeat(normal, n, axis=0)).sum(axis=1)
            against = turn < -FLAT * np.repeat((normal**2).sum(axis=1), n)
        yield from mine[np.logical_or.reduceat(against, first)].tolist()


def _ears(points: Floats) -> Ints:
    """The triangles (n - 2, 3) of a polygon with corners (n, 3), as numbers of its corners.

    Where no ear is left, as in a polygon that intersects itself, the rest becomes a fan.
    """
    spokes = points - points[0]
    normal = np.cross(spokes, np.roll(spokes, -1, axis=0)).sum(axis=0)
    axis = int(np.abs(normal).argmax())
    x, y = spokes[:, [(axis + 1) % 3, (axis + 2) % 3]].T * [[1], [np.sign(normal[axis])]]
    margin = INSIDE * abs(normal[axis])
    left = np.arange(len(points))
    found: list[tuple[int, int, int]] = []
    k = tries = 0
    while len(left) > 3 and tries < len(left):
        a, b, c = (int(left[(k + n) % len(left)]) for n in (-1, 0, 1))
        if not _is_ear(x, y, (a, b, c), left, margin):
            k, tries = (k + 1) % len(left), tries + 1
            continue
        found.append((a, b, c))
        left = np.delete(left, k)
        k, tries = k % len(left), 0
    first, *others = left.tolist()
    return np.array([*found, *((first, a, b) for a, b in pairwise(others))])


def _is_ear(x: Floats, y: Floats, ear: tuple[int, int, int], corners: Ints, margin: float) -> bool:
    """Whether a polygon is convex or straight at the middle of three corners, and their triangle
    contains no other of `corners`.

    margin: twice the area that a corner inside spans with each side, at least.
    """
    a, b, c = ear
    if (x[b] - x[a]) * (y[c] - y[a]) < (y[b] - y[a]) * (x[c] - x[a]):
        return False
    sides = [
        (x[b] - x[a]) * (y[corners] - y[a]) - (y[b] - y[a]) * (x[corners] - x[a])
        for a, b in zip(ear, ear[1:] + ear[:1], strict=True)
    ]
    return not (np.min(sides, axis=0) > margin).any()
