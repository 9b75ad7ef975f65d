"""The nearest point of a surface, for points that are close to it."""

from collections.abc import Iterator

import numpy as np

from mpilbm.solids import Flags, Floats, Ints
from mpilbm.solids.surfaces.surface import expanded, normals

EDGE = 4.0  # cells; longer triangles are divided, so that boxes around them hold few points
ROUNDING = 1e-6  # of the distance from the plane of a triangle


def divided(corners: Floats, longest: float = EDGE) -> Floats:
    """Triangles (3, 3, m), of which those with an edge above `longest` are cut in halves."""
    done = []
    while corners.shape[2]:
        edges = corners[:, (1, 2, 0)] - corners
        squares = (edges**2).sum(axis=0)
        first = squares.argmax(axis=0)
        long = squares.max(axis=0) > longest**2
        done.append(corners[:, :, ~long])
        corners, first = corners[:, :, long], first[long]
        a, b, c = (corners[:, (first + k) % 3, np.arange(first.size)] for k in range(3))
        middle = (a + b) / 2
        halves = [np.stack(each, axis=1) for each in ((a, middle, c), (middle, b, c))]
        corners = np.concatenate(halves, axis=2)
    return np.concatenate([np.empty((3, 3, 0)), *done], axis=2)


def from_surface(corners: Floats, points: Floats, reach: float) -> Floats:
    """The vectors (3, n) from the nearest point of triangles to points (3, n).

    corners: (3, 3, m). nan where no triangle is within `reach`; of several that are equally near
    the first in `corners` counts.
    """
    low, high = points.min(axis=1) - reach, points.max(axis=1) + reach
    lower, upper = corners.min(axis=1), corners.max(axis=1)
    near = ((low <= upper.T) & (high >= lower.T)).all(axis=1)
    corners = corners[:, :, near]
    best = np.full(points.shape[1], reach**2)
    vectors = np.full(points.shape, np.nan)
    normal = normals(corners, np.arange(corners.shape[2]))
    for triangle, point in _pairs(corners, points, reach):
        height = ((points[:, point] - corners[:, 0, triangle]) * normal[:, triangle]).sum(axis=0)
        near = np.flatnonzero(np.abs(height) <= reach * (1 + ROUNDING))
        triangle, point = triangle[near], point[near]
        found = points[:, point] - _closest(corners[:, :, triangle], points[:, point])
        squares = (found**2).sum(axis=0)
        order = np.lexsort((triangle, squares, point))
        first = order[np.flatnonzero(np.diff(point[order], prepend=-1))]
        first = first[squares[first] < best[point[first]]]
        best[point[first]], vectors[:, point[first]] = squares[first], found[:, first]
    return vectors


def _pairs(corners: Floats, points: Floats, reach: float) -> Iterator[tuple[Ints, Ints]]:
    """Yield blocks of pairs (triangle, point) whose boxes, larger by `reach`, hold each other."""
    cell = np.floor(points).astype(np.int64)
    first, last = cell.min(axis=1), cell.max(axis=1)
    begin = np.floor(corners.min(axis=1) - reach).T.clip(first, last + 1).astype(np.int64).T
    end = np.floor(corners.max(axis=1) + reach).T.clip(first - 1, last).astype(np.int64).T
    count = np.maximum(end - begin + 1, 0)
    _, ny, nz = last - first + 1
    key = _number(cell - first[:, None], ny, nz)
    order = np.argsort(key, kind="stable")
    keys, start = np.unique(key[order], return_index=True)
    ends = np.append(start[1:], order.size)
    for mine, k in expanded(count.prod(axis=0)):
        _, cy, cz = count[:, mine]
        there = np.stack([k // (cy * cz), k // cz % cy, k % cz]) + begin[:, mine] - first[:, None]
        wanted = _number(there, ny, nz)
        at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        found = np.flatnonzero(keys[at] == wanted)
        at, mine = at[found], mine[found]
        for part, number in expanded(ends[at] - start[at]):
            yield mine[part], order[start[at[part]] + number]


def _number(cell: Ints, ny: int, nz: int) -> Ints:
    return (cell[0] * ny + cell[1]) * nz + cell[2]


def _closest(corners: Floats, points: Floats) -> Floats:
    """The nearest point (3, n) of each triangle (3, 3, n) to a point (3, n): a face or an edge."""
    a, b, c = (corners[:, k] for k in range(3))
    u, v, w = b - a, c - a, points - a
    uu, uv, vv = (u * u).sum(axis=0), (u * v).sum(axis=0), (v * v).sum(axis=0)
    uw, vw = (u * w).sum(axis=0), (v * w).sum(axis=0)
    area = uu * vv - uv * uv
    some = np.where(area > 0, area, 1)
    s, t = (vv * uw - uv * vw) / some, (uu * vw - uv * uw) / some
    within: Flags = (area > 0) & (s >= 0) & (t >= 0) & (s + t <= 1)
    nearest = a + s * u + t * v
    other = np.flatnonzero(~within)
    a, b, c, points = (each[:, other] for each in (a, b, c, points))
    edges = [_on_edge(*ends, points) for ends in ((a, b), (b, c), (c, a))]
    squares = np.stack([((points - each) ** 2).sum(axis=0) for each in edges])
    nearest[:, other] = np.stack(edges)[squares.argmin(axis=0), :, np.arange(other.size)].T
    return nearest


def _on_edge(a: Floats, b: Floats, points: Floats) -> Floats:
    """The nearest points of edges from a to b."""
    along = b - a
    length = (along**2).sum(axis=0)
    t = ((points - a) * along).sum(axis=0) / np.where(length > 0, length, 1)
    return a + np.clip(t, 0, 1) * along
