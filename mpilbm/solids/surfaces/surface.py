"""A surface in cell coordinates: which points are inside it, and where links meet it.

Both follow from intersections of parallel lines with triangles, in double precision and without
gaps. These are given in coordinates (u, v, s), in which the lines are parallel to s. In the plane
(u, v) a line is a point. It meets a triangle if the half line from that point towards +u crosses an
odd number of the triangle's edges. An edge counts if

    v_lo <= v < v_hi   and   (u_hi - u_lo) (v - v_lo) - (v_hi - v_lo) (u - u_lo) > 0

with its end points ordered by v. The two triangles at an edge evaluate this with the same numbers.
The number of triangles that a line meets is therefore even for every closed surface, whatever the
rounding errors, and a line through an edge or a vertex is counted like one beside it. A part of
the surface that is parallel to an axis belongs to the solid at its lower end only, as in `box`.

The ray tracer Embree finds the same cells for bodies in general position, but works in single
precision without a rule for such ties: of a box of 20 x 10 x 30 cells whose faces pass through cell
centres it decides 820 of 6,000 cells differently (embreex 4.4.0).
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from mpilbm.solids import Flags, Floats, Ints

PAIRS = 2**19  # pairs of a line and a triangle that are evaluated together
SLACK = 1e-9  # by which the range of lines near a triangle is extended, for rounding errors
CLOSE = 1e-9  # part of a link by which rounding errors may move the surface beyond its ends
FAR = 1e12  # cells, beyond all surfaces
X = np.array([1.0, 0, 0])
ROWS = 2**20  # comparisons of a position with cell centres at a time


class Hits(NamedTuple):
    """Intersections, each (n,), sorted by line and s.

    line      index of the line
    s         position along the line
    triangle  index of the triangle
    """

    line: Ints
    s: Floats
    triangle: Ints


def hits(triangles: Floats, lines: Floats) -> Hits:
    """Return the intersections of lines with triangles.

    triangles: (3, 3, n), the coordinates u, v, s of the three corners. lines: (2, m), u and v.
    """
    none = np.empty(0, np.int64)
    pairs = [_met(triangles, lines, *block) for block in _near(triangles, lines)]
    triangle, line = (np.concatenate(each) for each in zip((none, none), *pairs, strict=True))
    s = _positions(triangles, lines, triangle, line)
    order = np.lexsort((triangle, s, line))
    return Hits(line[order], s[order], triangle[order])


def _near(triangles: Floats, lines: Floats) -> Iterator[tuple[Ints, Ints]]:
    """Yield blocks of pairs (triangle, line) whose bounding rectangles overlap.

    Lines are sorted into unit squares of the plane (u, v). A triangle is compared with the squares
    that contain lines in reach of it, which for lines on a grid are the lines themselves.
    """
    if not lines.size or not triangles.size:
        return
    square = np.floor(lines).astype(np.int64)
    inside = lines - square
    first, last = square.min(axis=1), square.max(axis=1)
    low, high = triangles[:2].min(axis=1), triangles[:2].max(axis=1)
    with np.errstate(invalid="ignore"):
        begin = np.ceil(low - inside.max(axis=1)[:, None] - SLACK)
        end = np.floor(high - inside.min(axis=1)[:, None] + SLACK)
    begin = np.maximum(begin, first[:, None]).astype(np.int64)
    count = np.maximum(np.minimum(end, last[:, None]).astype(np.int64) - begin + 1, 0)
    width = last[1] - first[1] + 1
    key = (square[0] - first[0]) * width + square[1] - first[1]
    order = np.argsort(key, kind="stable")
    keys, start = np.unique(key[order], return_index=True)
    ends = np.append(start[1:], order.size)
    for mine, k in expanded(count[0] * count[1]):
        u = begin[0, mine] + k // count[1, mine] - first[0]
        wanted = u * width + begin[1, mine] + k % count[1, mine] - first[1]
        at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        found = np.flatnonzero(keys[at] == wanted)
        at, mine = at[found], mine[found]
        for part, number in expanded(ends[at] - start[at]):
            yield mine[part], order[start[at[part]] + number]


def expanded(counts: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield blocks (index, k) with k = 0 … counts[index] - 1 for each index, of about PAIRS."""
    some = np.flatnonzero(counts)
    total = np.cumsum(counts[some])
    begin = 0
    while begin < some.size:
        before = total[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(total, before + PAIRS, "right")))
        mine = some[begin:end]
        index = np.repeat(mine, counts[mine])
        first = np.repeat(total[begin:end] - counts[mine] - before, counts[mine])
        yield index, np.arange(index.size) - first
        begin = end


def _met(triangles: Floats, lines: Floats, triangle: Ints, line: Ints) -> tuple[Ints, Ints]:
    u, v = lines[:, line]
    corners = [triangles[:2, k, triangle] for k in range(3)]
    met = np.zeros(line.size, bool)
    for k in range(3):
        met ^= _crosses(u, v, corners[k], corners[(k + 1) % 3])
    return triangle[met], line[met]


def _crosses(u: Floats, v: Floats, a: Floats, b: Floats) -> Flags:
    """Whether the half line from (u, v) towards +u crosses the edge from a to b, (2, n) each."""
    up = a[1] <= b[1]
    low, high = np.where(up, a, b), np.where(up, b, a)
    side = (high[0] - low[0]) * (v - low[1]) - (high[1] - low[1]) * (u - low[0])
    return (low[1] <= v) & (v < high[1]) & (side > 0)


def _positions(triangles: Floats, lines: Floats, triangle: Ints, line: Ints) -> Floats:
    """Return s of the plane of each triangle at a line, within the triangle's range of s."""
    u, v, s = triangles[:, :, triangle]
    (du, eu), (dv, ev), (ds, es) = ((w[1] - w[0], w[2] - w[0]) for w in (u, v, s))
    area = du * ev - dv * eu
    with np.errstate(divide="ignore", invalid="ignore"):
        slope_u, slope_v = (ds * ev - dv * es) / area, (du * es - ds * eu) / area
        found = s[0] + slope_u * (lines[0, line] - u[0]) + slope_v * (lines[1, line] - v[0])
    low, high = s.min(axis=0), s.max(axis=0)
    return np.clip(np.where(np.isfinite(found), found, (low + high) / 2), low, high)


def ranks(found: Hits, line: Ints, s: Floats) -> Ints:
    """Return for each point (line, s) the number of hits that precede it in `found`.

    These are the hits of lower lines, and those of its line at or below s.
    """
    hits_first = np.concatenate([np.zeros(found.line.size, np.int8), np.ones(line.size, np.int8)])
    both = np.concatenate([found.s, s]), np.concatenate([found.line, line])
    order = np.lexsort((hits_first, *both))
    is_point = order >= found.line.size
    before = np.cumsum(~is_point)
    result = np.empty(line.size, np.int64)
    result[order[is_point] - found.line.size] = before[is_point]
    return result


def distinct(lines: Floats) -> tuple[Floats, Ints]:
    """Return the distinct columns of (2, m) lines, and the index of each given line in them."""
    order = np.lexsort(lines[::-1])
    ordered = lines[:, order]
    new = np.append(True, (ordered[:, 1:] != ordered[:, :-1]).any(axis=0))[: order.size]
    index = np.empty(order.size, np.int64)
    index[order] = np.cumsum(new) - 1
    return ordered[:, new], index


def projected(corners: Any, step: Floats) -> tuple[Floats, int]:
    """Return coordinates (u, v, s) in which lines along `step` are parallel to s, and the axis s.

    corners: (3, …), coordinates x, y, z. s is the coordinate along the axis of the largest
    component of `step`; u and v are the others, sheared along s.
    """
    axis = int(np.abs(step).argmax())
    s = corners[axis]
    others = [k for k in range(3) if k != axis]
    sheared = [corners[k] - step[k] / step[axis] * s if step[k] else corners[k] for k in others]
    return np.stack([*sheared, s]), axis


def normals(corners: Floats, triangle: Ints) -> Floats:
    """Return the unit normals (3, n) of triangles; 0 for those without area. corners: (3, 3, m)."""
    a, b, c = (corners[:, k, triangle] for k in range(3))
    normal = np.cross(b - a, c - a, axis=0)
    length = np.sqrt((normal * normal).sum(axis=0))
    return normal / np.where(length > 0, length, 1)


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
        of the hits are those of `projected`, and their triangles are counted as in `corners`.
        """
        ends = np.stack([points + t * step[:, None] for t in reach])
        low, high = ends.min(axis=(0, 2)) - CLOSE, ends.max(axis=(0, 2)) + CLOSE
        near = np.ones(self.lower.shape[1], bool)
        for axis in range(3):
            near &= (self.upper[axis] >= low[axis]) & (self.lower[axis] <= high[axis])
        mine = np.flatnonzero(near)
        triangles, _ = projected(self.corners[:, :, mine], step)
        rows, index = distinct(projected(points, step)[0][:2])
        found = hits(triangles, rows)
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
        return (ranks(found, line, points[0]) - first) % 2 == 1

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
        """The first crossings of links with the same step (3,)."""
        found, line = self.hits(points, step, (0, 1))
        axis = int(np.abs(step).argmax())
        start = points[axis]
        k = ranks(found, line, start - CLOSE * step[axis]) - (step[axis] < 0)
        exists = (k >= 0) & (k < found.line.size)
        k = np.where(exists, k, 0)
        result = np.full(start.size, np.nan)
        if found.line.size:
            t = (found.s[k] - start) / step[axis]
            met = exists & (found.line[k] == line) & (t <= 1 + CLOSE)
            result[met] = np.clip(t[met], 0, 1)
        return result

    def _crossing(self, points: Floats, step: Floats) -> Floats:
        """The crossings of links with the same step (3,)."""
        found, line = self.hits(points, step, (0, 1))
        axis = int(np.abs(step).argmax())
        up = step if step[axis] > 0 else -step
        lower = points[axis] + min(step[axis], 0)
        sides = self._sides(found.triangle)
        # > 0: to the positive side of the triangle. Not `@`, whose bits may depend on the length.
        rises = sides[:, 0] * up[0] + sides[:, 1] * up[1] + sides[:, 2] * up[2]
        k = ranks(found, line, lower - CLOSE * up[axis])
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
        normal = normals(self.corners, triangle).T
        normal[np.abs(normal) < CLOSE] = 0
        first = np.take_along_axis(normal, (normal != 0).argmax(axis=1)[:, None], 1)
        return normal * np.where(first < 0, -1, 1)


def _by_direction(of: Callable[[Floats, Floats], Floats], points: Floats, step: Floats) -> Floats:
    """Return of(points, step) of links, one step (3,) after another; points, step: (3, n)."""
    result = np.full(points.shape[1], np.nan)
    if not points.size:
        return result
    directions, group = np.unique(step.T, axis=0, return_inverse=True)
    for k, direction in enumerate(directions):
        mine = np.flatnonzero(group.reshape(-1) == k)
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
