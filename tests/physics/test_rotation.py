"""Walls in rigid rotation: the velocity of each point, units, and what is refused."""

import numpy as np
import pytest
from support.slabs import box

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.core.formulas.parser import Formula
from mpilbm.physics.boundaries.wall import Rotation

DISC = {"name": "cylinder", "centre": [20, 20], "radius": 8}


def case(rotation, **more):
    wall = {"name": "interpolated"} | ({"rotation": rotation} if rotation else {})
    wall |= more.pop("boundary", {})
    body = {"label": "disc", "shape": DISC, "boundary": wall}
    return parse_case(box("D2Q9", [40, 40], body=[body], **more), "a.toml")


def values(rotation, points):
    """The velocity at points (n, 3)."""
    places = dict(zip("xyz", points.T, strict=True))
    names = tuple("xyz")
    return np.stack(
        [
            Formula(u, names).evaluate(**places) if isinstance(u, str) else np.full(len(points), u)
            for u in rotation.velocity()
        ],
        axis=1,
    )


@pytest.mark.parametrize("axis", [(0, 0, 1), (1, 0, 0), (0, -2, 0), (1, 2, -3)])
def test_the_velocity_is_omega_cross_r(axis):
    centre, points = (1.5, -2, 3), np.random.default_rng(1).uniform(-9, 9, (50, 3))
    found = values(Rotation(centre=centre, rate=0.02, axis=axis), points)
    omega = 0.02 * np.array(axis) / np.linalg.norm(axis)
    assert found == pytest.approx(np.cross(omega, points - centre), abs=1e-15)


def test_in_2d_a_positive_rate_is_anticlockwise():
    assert Rotation(centre=(20, 20), rate=0.5).velocity() == (
        "(-0.5)*(y - 20.0)",
        "(0.5)*(x - 20.0)",
    )


def test_it_is_the_velocity_of_the_wall():
    wall = case({"centre": [20, 20], "rate": 1e-3}).bodies[0].boundary
    given = {"velocity": ["-0.001*(y - 20)", "0.001*(x - 20)"]}
    written = case(None, boundary=given).bodies[0].boundary
    assert wall.structure() == written.structure()
    units = {"cell": "1 mm", "step": "1 ms", "density": 1000}
    rotation = {"centre": ["2 cm", "20 mm"], "rate": "300 rpm"}
    wall = case(rotation, units=units).bodies[0].boundary
    assert wall.rotation.centre == pytest.approx((20, 20))
    assert wall.rotation.rate == pytest.approx(10 * np.pi * 1e-3)


@pytest.mark.parametrize(
    ("rotation", "message"),
    [
        ({"centre": [20, 20, 20], "rate": 1e-3}, "rotation.centre: found 3 entries; allowed: 2"),
        ({"centre": [20, 20], "rate": 1e-3, "axis": [1, 0, 0]}, "rotation.axis: found .*; allowed"),
        ({"centre": [20, 20], "rate": 1e-3, "axis": [0, 0, 0]}, "rotation.axis: has length 0"),
        ({"centre": [20, 20], "rate": "300 rpm"}, "the case has no \\[units\\]"),
    ],
)
def test_refused(rotation, message):
    with pytest.raises(CaseError, match=message):
        case(rotation)


def test_one_of_velocity_and_rotation():
    with pytest.raises(CaseError, match="has both velocity and rotation; give one of them"):
        case({"centre": [20, 20], "rate": 1e-3}, boundary={"velocity": [0, 0]})
