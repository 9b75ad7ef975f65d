"""Polygons that are not convex are divided into triangles that do not overlap."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from support.surfaces import case_of, cells, mesh

from mpilbm.solids.surfaces.triangles import triangles

SIZE = (24, 24, 24)
AT = {"scale": 1, "at": [0, 0, 0], "anchor": "origin"}
ANGLE = [[4, 4], [20, 4], [20, 8], [8, 8], [8, 20], [4, 20]]
ARROW = [[4, 4], [12, 20], [20, 4], [12, 10]]
# A square with a square hole, to which an edge leads that the boundary uses twice.
RING = [[0, 0], [10, 0], [10, 10], [0, 10], [0, 0], [3, 3], [3, 7], [7, 7], [7, 3], [3, 3]]
COMB = [[0, -1], *([k / 2, 10 * (1 - k % 2)] for k in range(41)), [20, -1]]
TURN = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]


def star(n):
    angle, radius = 2 * np.pi * np.arange(n) / n, np.random.default_rng(n).uniform(1, 9, n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def signed(points, faces):
    """Twice the areas (n, 3), as vectors, of triangles."""
    a, b, c = points[faces].transpose(1, 0, 2)
    return np.cross(b - a, c - a)


def edges(polygon) -> Counter:
    return Counter(tuple(sorted(edge)) for edge in pairwise([*polygon, polygon[0]]))


def odd(counts: Counter) -> set:
    return {edge for edge, count in counts.items() if count % 2 and edge[0] != edge[1]}


@pytest.mark.parametrize("polygon", [ANGLE, ARROW, RING, COMB, star(9), star(200)])
@pytest.mark.parametrize("reverse", [False, True])
def test_triangles_have_the_area_of_the_polygon(polygon, reverse):
    """So none covers a place outside of it, or twice; at each first corner, in any plane."""
    flat = np.array(polygon, float)[:: -1 if reverse else 1]
    x, y = flat.T
    area = abs((x * np.roll(y, -1) - y * np.roll(x, -1)).sum())
    points = np.column_stack([flat, np.zeros(len(flat))]) @ TURN + 100
    for first in range(min(len(flat), 10)):
        order = np.roll(np.arange(len(flat)), first)
        found = triangles(order, np.array([len(order)]), points)
        assert len(found) == len(order) - 2
        assert np.linalg.norm(signed(points, found), axis=1).sum() == pytest.approx(area)
        assert odd(sum(map(edges, found.tolist()), Counter())) == odd(edges(order.tolist()))


@pytest.mark.parametrize("n", [4, 5, 30, 300])
def test_edges_of_any_polygon_stay_closed(n):
    """Also of one that intersects itself and contains corners twice."""
    rng = np.random.default_rng(n)
    order = rng.integers(0, n, n)
    found = triangles(order, np.array([n]), rng.random((n, 3)))
    assert odd(sum(map(edges, found.tolist()), Counter())) == odd(edges(order.tolist()))


def test_other_polygons_are_left_as_they_are():
    points = np.array([[0, 0], [4, 0], [4, 4], [0, 4], [1, 2]])
    points = np.column_stack([points, np.zeros(5)]).astype(float)
    corners = np.array([0, 1, 2, 0, 1, 2, 3, 0, 1, 2, 3, 4, 0, 2, 3])
    found = triangles(corners, np.array([3, 4, 5, 3]), points)
    assert found[[0, 1, 2, 6]].tolist() == [[0, 1, 2], [0, 1, 2], [2, 3, 0], [0, 2, 3]]
    assert signed(points, found[3:6])[:, 2].sum() == 2 * 16 - 4
    assert (signed(points, found[3:6])[:, 2] >= 0).all()


@pytest.mark.parametrize("first", range(6))
def test_an_extruded_polygon_is_not_a_sheet(tmp_path, first):
    n = len(ANGLE)
    lines = [f"v {x}.25 {y}.25 {z}.25" for z in (8, 16) for x, y in ANGLE]
    lines += [" ".join(["f", *(str((k + first) % n + begin) for k in range(n)[::step])])
              for begin, step in ((1, -1), (n + 1, 1))]  # fmt: skip
    lines += [f"f {k + 1} {(k + 1) % n + 1} {(k + 1) % n + n + 1} {k + n + 1}" for k in range(n)]
    (tmp_path / "a.obj").write_text("\n".join(lines))
    found = mesh(tmp_path, SIZE, file="a.obj", **AT)
    assert cells(found, SIZE).sum() == 8 * (16 * 4 + 4 * 12)
    assert found.problems_in_cells(case_of(tmp_path, SIZE)) == []
    across = np.array([[14.5], [14.5], [15.5]]), np.array([[0.0], [0], [1]])
    assert np.isnan(found.first(*across))
