"""Facets of any rigid shape: area, volume, orientation, edges, ends of endless shapes."""

import numpy as np
import pytest

from mpilbm.core.registry import make
from mpilbm.outputs.facets import normals
from mpilbm.solids import surface_net
from mpilbm.solids.sampled_shape import rigid_of
from mpilbm.solids.surface_net import facets_of

PI, SIZE = np.pi, (40, 40, 30)
BALL = {"name": "sphere", "centre": [20.3, 21.2, 15.1], "radius": 8.2}
BLOCK = {"name": "box", "lower": [5.2, 6.1, 7.7], "upper": [15.9, 10.2, 22.1]}
PIPE = {"name": "cylinder", "centre": [20.2, 20.4, 15], "radius": 6.3, "axis": "z"}
RING = {"name": "torus", "centre": [20, 20, 15], "radius": 8.3, "tube": 3.1, "axis": "y"}
SHAPES = {  # area, volume, the relative tolerance of both
    "ball": (BALL, 4 * PI * 8.2**2, 4 / 3 * PI * 8.2**3, 5e-3),
    "block": (BLOCK, 2 * (10.7 * 4.1 + 10.7 * 14.4 + 4.1 * 14.4), 10.7 * 4.1 * 14.4, 1e-5),
    "rod": (PIPE | {"length": 17.2}, 2 * PI * 6.3 * (17.2 + 6.3), PI * 6.3**2 * 17.2, 5e-3),
    "ring": (RING, 4 * PI**2 * 8.3 * 3.1, 2 * PI**2 * 8.3 * 3.1**2, 5e-3),
    "disc": ({**BALL, "centre": [20.3, 21.2]}, 2 * PI * 8.2, PI * 8.2**2, 5e-3),
    "bar": ({**BLOCK, "lower": [5.2, 6.1], "upper": [15.9, 10.2]}, 29.6, 10.7 * 4.1, 1e-5),
}


def net(table, size=SIZE):
    """The corners, and the area and the normal of each facet."""
    D = len(table.get("centre", table.get("lower")))
    corners = facets_of(rigid_of(make("shapes", table), size[:D]), (*size[:D], 1)[:3])
    return corners, sizes(corners), normals(corners)


def sizes(corners):
    if corners.shape[1] == 2:
        return np.linalg.norm(corners[:, 1] - corners[:, 0], axis=1)
    diagonals = corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1]
    return np.linalg.norm(np.cross(*diagonals), axis=1) / 2


@pytest.mark.parametrize("name", SHAPES)
def test_area_and_volume(name):
    """The volume by the divergence of x, with normals that point outwards; edges are sharp."""
    table, area, volume, tolerance = SHAPES[name]
    corners, areas, normal = net(table)
    D = corners.shape[2]
    assert areas.sum() == pytest.approx(area, rel=tolerance)
    flux = (corners.mean(axis=1) * normal).sum(axis=1) @ areas / D
    assert flux == pytest.approx(volume, rel=tolerance)
    assert np.abs(areas @ normal).max() < 1e-9 * area  # closed
    assert areas.max() < 2


def test_an_endless_cylinder_ends_at_the_faces_of_the_box():
    corners, areas, normal = net(PIPE)
    assert areas.sum() == pytest.approx(2 * PI * 6.3 * SIZE[2], rel=5e-3)
    assert np.abs(normal[:, 2]).max() < 1e-6
    assert corners[..., 2].min() + 15 == pytest.approx(0, abs=1e-6)
    assert corners[..., 2].max() + 15 == pytest.approx(SIZE[2], abs=1e-6)


@pytest.mark.parametrize("thickness", [0.1, 1.05, 1.6, 2.05])
def test_small_and_thin_shapes_have_facets(thickness):
    radius = thickness / 2
    ball = BALL | {"radius": radius}
    plate = BLOCK | {"upper": [15.9, 6.1 + thickness, 22.1]}
    rod = PIPE | {"radius": radius, "length": 17.2}
    _, areas, _ = net(ball)
    assert areas.sum() == pytest.approx(4 * PI * radius**2, rel=0.06)
    _, areas, _ = net(plate)
    sides = 10.7 * thickness + 10.7 * 14.4 + thickness * 14.4
    assert areas.sum() == pytest.approx(2 * sides, rel=1e-5)
    _, areas, _ = net(rod)
    assert areas.sum() == pytest.approx(2 * PI * radius * (17.2 + radius), rel=0.03)


def test_large_shapes_have_larger_facets(monkeypatch):
    monkeypatch.setattr(surface_net, "MOST", 8)
    table, area, _, _ = SHAPES["ball"]
    _, areas, _ = net(table)
    assert 2 < np.median(areas) < 6
    assert areas.sum() == pytest.approx(area, rel=0.05)
