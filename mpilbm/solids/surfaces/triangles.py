"""Triangles of a surface: edges, repetitions, connected parts, polygons, place in the box."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import cos, radians, sin

import numpy as np

from mpilbm.solids import Flags, Floats, Ints

FLAT = 1e-6  # part of the area of a polygon by which it may be concave at a corner of a fan
INSIDE = 1e-12  # part of the area of a polygon by which a corner lies inside an ear
BLOCK = 2**18  # polygons that are examined together
QUARTER = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))  # cosine and sine of k 90 degrees


@dataclass(frozen=True, eq=False)
class Triangles:
    """A surface in the units of its file.

    vertices  float64 (m, 3)
    faces     int64 (n, 3), indices of the corners of each triangle
    repaired  a sentence on what was changed; empty if nothing was
    closed    whether every edge belongs to an even number of triangles
    """

    vertices: Floats
    faces: Ints
    repaired: str = ""
    closed: bool = True


def merged(vertices: Floats, faces: Ints) -> Triangles:
    """The surface with one vertex for all with the same coordinates."""
    used = vertices[faces].reshape(-1, 3) + 0.0  # -0 becomes 0
    bits = used.view(np.uint64) * np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 1], np.uint64)
    mixed = bits ^ (bits >> np.uint64(29))
    digest = mixed[:, 0] * np.uint64(0x165667B19E3779F9) + mixed[:, 1] ^ mixed[:, 2] << np.uint64(1)
    _, first, index = np.unique(digest, return_index=True, return_inverse=True)
    if not np.array_equal(used[first][index], used):  # two vertices with the same digest
        _, first, index = np.unique(used, axis=0, return_index=True, return_inverse=True)
    return Triangles(used[first], index.reshape(-1, 3).astype(np.int64))


def open_edges(faces: Ints) -> Ints:
    """Return the edges (k, 2) that belong to an odd number of triangles, in order."""
    keys, size = _edges(faces)
    found, counts = np.unique(keys, return_counts=True)
    odd = found[(counts % 2 == 1) & (found // size != found % size)]
    return np.stack([odd // size, odd % size], 1)


def has_edge(faces: Ints, edges: Ints) -> Flags:
    """Whether the edges 01, 12 and 20 of each triangle are among the edges (k, 2), (n, 3)."""
    keys, size = _edges(faces)
    return np.isin(keys, edges[:, 0] * size + edges[:, 1]).reshape(-1, 3)


def _edges(faces: Ints) -> tuple[Ints, int]:
    """A number for each edge (a, b), a <= b, of each triangle: a * size + b; and the size."""
    edges = np.sort(faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    size = int(faces.max(initial=0)) + 1
    return edges[:, 0] * size + edges[:, 1], size


def collapsed(faces: Ints) -> Flags:
    """Whether two corners of each triangle are the same."""
    return (faces == faces[:, [1, 2, 0]]).any(axis=1)


def repeated(faces: Ints) -> Flags:
    """Whether each triangle repeats an earlier one by mistake.

    A triangle that two touching parts share is no mistake: without one of its copies their edges
    would be open. So the copies, first those with the same orientation and then all, are
    repetitions only if there are not more open edges without them.
    """
    ordered = np.sort(faces, axis=1)
    order = np.lexsort(ordered.T)  # stable
    same = (ordered[order[1:]] == ordered[order[:-1]]).all(axis=1)
    nothing = np.zeros(len(faces), bool)
    if not same.any():
        return nothing
    group = np.empty(len(faces), np.int64)
    group[order] = np.cumsum(np.append(True, ~same)[: len(faces)])
    before = len(open_edges(faces))
    k = faces.argmin(axis=1)[:, None]
    second, third = (np.take_along_axis(faces, (k + n) % 3, 1)[:, 0] for n in (1, 2))
    for what in (2 * group + (second < third), group):
        _, first = np.unique(what, return_index=True)
        copies = nothing.copy()
        copies[:] = True
        copies[first] = False
        copies &= ~collapsed(faces)
        if copies.any() and len(open_edges(faces[~copies])) <= before:
            return copies
    return nothing


def components(pairs: Ints | Sequence[Ints], size: int) -> Ints:
    """Return for each of `size` points the smallest one to which pairs, two (k,), connect it."""
    root, (a, b) = np.arange(size), pairs
    while a.size:
        low, high = np.minimum(root[a], root[b]), np.maximum(root[a], root[b])
        apart = low < high
        a, b = a[apart], b[apart]
        np.minimum.at(root, high[apart], low[apart])
        while (root[root] != root).any():
            root = root[root]
    return root


def triangles(corners: Ints, lengths: Ints, vertices: Floats) -> Ints:
    """Return the triangles (n, 3) of polygons, of each two fewer than it has corners.

    A convex polygon becomes a fan around its first corner. From other polygons ears are cut: a
    corner and its neighbours, if the polygon is convex there and no other corner lies in this
    triangle. A fan would cover places outside such a polygon twice, which look like a sheet.

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


def placed(
    vertices: Floats, scale: float, rotate: Sequence[float], at: Sequence[float], anchor: str
) -> Floats:
    """Return the vertices (m, 3) in cell coordinates.

    They are scaled, rotated by `rotate` degrees about x, then y, then z, and moved so that the
    anchor (see `mesh`) is at `at`. In 2D, where `at` has two entries, the plane z = 0 leads
    through the anchor.
    """
    turned = rotated(scale * vertices, rotate)
    if anchor == "origin":
        start = np.zeros(3)
    else:
        lower, upper = turned.min(axis=0), turned.max(axis=0)
        start = (lower + upper) / 2
        if anchor == "bottom":
            start[len(at) - 1] = lower[len(at) - 1]
    return turned + (np.append(at, [0.0] * (3 - len(at))) - start)


def rotated(points: Floats, rotate: Sequence[float]) -> Floats:
    """Points (m, 3) rotated by `rotate` degrees about x, then y, then z; exact by right angles."""
    x, y, z = points.T
    for axis, angle in enumerate(rotate):
        c, s = _turn(angle)
        if axis == 0:
            y, z = c * y - s * z, s * y + c * z
        elif axis == 1:
            z, x = c * z - s * x, s * z + c * x
        else:
            x, y = c * x - s * y, s * x + c * y
    return np.stack([x, y, z], axis=1)


def _turn(angle: float) -> tuple[float, float]:
    """Cosine and sine of an angle in degrees, exact for multiples of 90."""
    if angle % 90 == 0:
        return QUARTER[int(angle // 90) % 4]
    return cos(radians(angle)), sin(radians(angle))


def longest_side(vertices: Floats) -> float:
    """The longest side of the bounding box of the vertices."""
    return float((vertices.max(axis=0) - vertices.min(axis=0)).max())
