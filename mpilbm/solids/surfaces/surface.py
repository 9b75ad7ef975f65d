"""A surface in cell coordinates: which points are inside it, and where links meet it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.solids.surfaces import lines
from mpilbm.solids.surfaces.lines import Floats, Hits, Ints

Flags = NDArray[np.bool_]

CLOSE = 1e-9  # part of a link by which rounding errors may move the surface beyond its ends
FAR = 1e12  # cells, beyond all surfaces
X = np.array([1.0, 0, 0])
ROWS = 2**20  # comparisons of a position with cell centres at a time


class Surface:
    """Triangles in cell coordinates.

    corners: float64 (3, 3, n), the coordinates x, y, z of the three corners of each triangle. In 2D
    the points lie in the plane z = 0. `inside` needs a closed surface: every edge belongs to an
    even number of triangles.
    """

    def __init__(self, corners: Floats):
        self.corners = corners
        self.lower, self.upper = corners.min(axis=1), corners.max(axis=1)  # (3, n)

    def hits(self, points: Floats, step: Floats, reach: tuple[float, float]) -> tuple[Hits, Ints]:
        """Return the intersections of the lines through points along step, and the lines' indices.

        points: (3, n); the result has one line for all points on the same line. Triangles are used
        if they are near the box around points + t step, reach[0] <= t <= reach[1]. The positions s
        of the hits are those of `lines.projected`, and their triangles are counted as in `corners`.
        """
        ends = np.stack([points + t * step[:, None] for t in reach])
        low, high = ends.min(axis=(0, 2)) - CLOSE, ends.max(axis=(0, 2)) + CLOSE
        near = np.ones(self.lower.shape[1], bool)
        for axis in range(3):
            near &= (self.upper[axis] >= low[axis]) & (self.lower[axis] <= high[axis])
        mine = np.flatnonzero(near)
        triangles, _ = lines.projected(self.corners[:, :, mine], step)
        distinct, index = lines.distinct(lines.projected(points, step)[0][:2])
        found = lines.hits(triangles, distinct)
        return found._replace(triangle=mine[found.triangle]), index

    def inside(self, x: Any, y: Any, z: Any) -> Flags:
        """Whether points are inside: an odd number of intersections at or below x along x.

        x, y, z broadcast against each other.
        """
        x, y, z = (np.asarray(each, float) for each in (x, y, z))
        shape = np.broadcast_shapes(x.shape, y.shape, z.shape)
        if 0 in shape:
            return np.zeros(shape, bool)
        x, y, z = (each.reshape((1,) * (len(shape) - each.ndim) + each.shape) for each in (x, y, z))
        if not shape or y.shape[-1] > 1 or z.shape[-1] > 1 or not (np.diff(x) > 0).all():
            return self._points_inside(x, y, z).reshape(shape)
        return self._rows_inside(x, y, z).reshape(shape)

    def _points_inside(self, x: Floats, y: Floats, z: Floats) -> Flags:
        points = np.stack(np.broadcast_arrays(x, y, z)).reshape(3, -1)
        found, line = self.hits(points, X, (-FAR, 0))
        first = np.searchsorted(found.line, line)
        return (lines.ranks(found, line, points[0]) - first) % 2 == 1

    def _rows_inside(self, x: Floats, y: Floats, z: Floats) -> Flags:
        """As `inside`, for ascending x along the last axis, where y and z are constant."""
        n = x.shape[-1]
        rows = np.broadcast_shapes(x.shape[:-1], y.shape[:-1], z.shape[:-1])
        points = np.stack([np.broadcast_to(each[..., 0], rows).reshape(-1) for each in (x, y, z)])
        found, line = self.hits(points, X, (-FAR, FAR))
        row = np.empty(line.size, np.int64)
        row[line] = np.arange(line.size)
        if not np.array_equal(row[line], np.arange(line.size)):  # rows on the same line
            return self._points_inside(x, y, z)
        row = row[found.line]
        if x.size == n:
            k = np.searchsorted(x.reshape(-1), found.s)
        else:
            k = _counted_below(np.broadcast_to(x, (*rows, n)).reshape(-1, n), row, found.s)
        toggles = np.bincount(row * (n + 1) + k, minlength=line.size * (n + 1))
        odd = (toggles % 2).astype(bool).reshape(-1, n + 1)[:, :n]
        return np.logical_xor.accumulate(odd, axis=1)

    def first(self, points: Floats, step: Floats) -> Floats:
        """Return t, 0 <= t <= 1, (n,), of the first intersection with points + t step; or nan.

        points, step: (3, n).
        """
        return _by_direction(self._first, points, step)

    def crossing(self, points: Floats, step: Floats) -> Floats:
        """As `first`, with a rule for ends on the surface that is the same for a link's reverse.

        A point on a triangle counts as if it were on the side to which the first component of the
        triangle's normal that is not 0 points, if this is positive, otherwise on the other side.
        For closed surfaces this agrees with `inside`.
        """
        return _by_direction(self._crossing, points, step)

    def _first(self, points: Floats, step: Floats) -> Floats:
        """As `first`, for links with the same step (3,)."""
        found, line = self.hits(points, step, (0, 1))
        axis = int(np.abs(step).argmax())
        start = points[axis]
        k = lines.ranks(found, line, start - CLOSE * step[axis]) - (step[axis] < 0)
        exists = (k >= 0) & (k < found.line.size)
        k = np.where(exists, k, 0)
        result = np.full(start.size, np.nan)
        if found.line.size:
            t = (found.s[k] - start) / step[axis]
            met = exists & (found.line[k] == line) & (t <= 1 + CLOSE)
            result[met] = np.clip(t[met], 0, 1)
        return result

    def _crossing(self, points: Floats, step: Floats) -> Floats:
        """As `crossing`, for links with the same step (3,)."""
        found, line = self.hits(points, step, (0, 1))
        axis = int(np.abs(step).argmax())
        up = step if step[axis] > 0 else -step
        lower = points[axis] + min(step[axis], 0)
        sides = self._sides(found.triangle)
        # > 0: to the positive side of the triangle. Not `@`, whose bits may depend on the length.
        rises = sides[:, 0] * up[0] + sides[:, 1] * up[1] + sides[:, 2] * up[2]
        k = lines.ranks(found, line, lower - CLOSE * up[axis])
        result = np.full(lower.size, np.nan)
        left = np.arange(lower.size)
        while left.size:
            left = left[k[left] < found.line.size]
            at = k[left]
            t = (found.s[at] - lower[left]) / up[axis]
            here = (found.line[at] == line[left]) & (t <= 1 + CLOSE)
            left, at, t = left[here], at[here], t[here]
            counts = np.where(t <= CLOSE, rises[at] < 0, (t < 1 - CLOSE) | (rises[at] > 0))
            mine, t = left[counts], np.clip(t[counts], 0, 1)
            result[mine] = np.fmin(result[mine], t if step[axis] > 0 else 1 - t)
            k[left] += 1
        return result

    def _sides(self, triangle: Ints) -> Floats:
        """The normals (n, 3) of triangles, whose first component that is not 0 is positive."""
        normal = lines.normals(self.corners, triangle).T
        normal[np.abs(normal) < CLOSE] = 0
        first = np.take_along_axis(normal, (normal != 0).argmax(axis=1)[:, None], 1)
        return normal * np.where(first < 0, -1, 1)


def _by_direction(of: Callable[[Floats, Floats], Floats], points: Floats, step: Floats) -> Floats:
    """Return of(points, step) of links, one step (3,) after another; points, step: (3, n)."""
    result = np.full(points.shape[1], np.nan)
    if not points.size:
        return result
    directions, group = _directions(step)
    for k, direction in enumerate(directions):
        mine = np.flatnonzero(group == k)
        result[mine] = of(points[:, mine], direction)
    return result


def _counted_below(x: Floats, row: Ints, s: Floats) -> Ints:
    """Return the number of entries of x[row] below s, for x (rows, n)."""
    step = max(1, ROWS // x.shape[1])
    parts = [
        np.count_nonzero(x[row[k : k + step]] < s[k : k + step, None], axis=1)
        for k in range(0, row.size, step)
    ]
    return np.concatenate([np.empty(0, np.int64), *parts])


def _directions(step: Floats) -> tuple[Floats, Ints]:
    """Return the distinct columns of step, (k, 3), and the number of each column in them."""
    directions, group = np.unique(step.T, axis=0, return_inverse=True)
    return directions, group.reshape(-1)
