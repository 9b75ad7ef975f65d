"""Intersections of parallel lines with triangles, in double precision and without gaps.

Both are given in coordinates (u, v, s), in which the lines are parallel to s. In the plane (u, v) a
line is a point. It meets a triangle if the half line from that point towards +u crosses an odd
number of the triangle's edges. An edge counts if

    v_lo <= v < v_hi   and   (u_hi - u_lo) (v - v_lo) - (v_hi - v_lo) (u - u_lo) > 0

with its end points ordered by v. The two triangles at an edge evaluate this with the same numbers.
The number of triangles that a line meets is therefore even for every closed surface, whatever the
rounding errors, and a line through an edge or a vertex is counted like one beside it. A part of
the surface that is parallel to an axis belongs to the solid at its lower end only, as in `box`.

The ray tracer Embree finds the same cells for bodies in general position, but works in single
precision without a rule for such ties: of a box of 20 x 10 x 30 cells whose faces pass through cell
centres it decides 820 of 6,000 cells differently (embreex 4.4.0).
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PAIRS = 2**19  # pairs of a line and a triangle that are evaluated together
SLACK = 1e-9  # by which the range of lines near a triangle is extended, for rounding errors


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
    pairs = [_met(triangles, lines, *block) for block in _near(triangles, lines)]
    triangle, line = (np.concatenate([np.empty(0, np.int64), *each])
                      for each in (list(zip(*pairs, strict=True)) or ((), ())))  # fmt: skip
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
    for mine, k in _expanded(count[0] * count[1]):
        u = begin[0, mine] + k // count[1, mine] - first[0]
        wanted = u * width + begin[1, mine] + k % count[1, mine] - first[1]
        at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        found = np.flatnonzero(keys[at] == wanted)
        at, mine = at[found], mine[found]
        for part, number in _expanded(ends[at] - start[at]):
            yield mine[part], order[start[at[part]] + number]


def _expanded(counts: Ints) -> Iterator[tuple[Ints, Ints]]:
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
    """Return the pairs in which the line meets the triangle."""
    u, v = lines[:, line]
    corners = [triangles[:2, k, triangle] for k in range(3)]
    met = np.zeros(line.size, bool)
    for k in range(3):
        met ^= _crosses(u, v, corners[k], corners[(k + 1) % 3])
    return triangle[met], line[met]


def _crosses(u: Floats, v: Floats, a: Floats, b: Floats) -> NDArray[np.bool_]:
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
