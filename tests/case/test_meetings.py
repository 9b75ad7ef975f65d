"""Findings about bodies that move and come near other bodies."""

import numpy as np
import pytest
from support.body_forces import flow

from mpilbm.case.case import parse_case
from mpilbm.case.meetings import meetings
from mpilbm.solids.rigid_shape import RigidShape

IN_CELLS = {"name": "partially_saturated"}
BALL = {"name": "sphere", "centre": [10.0, 15.0], "radius": 4.0}
BAR = {"name": "box", "lower": [6, 13], "upper": [18, 16]}


def goes(*velocity):
    return {"name": "translation", "velocity": list(velocity)}


def turns(rate, **more):
    return {"name": "rotation", "rate": rate} | more


def case(*parts, size=(40, 30), steps=99):
    bodies = []
    for label, (shape, motion) in zip("abc", parts, strict=False):
        more = {"motion": motion} if motion else {}
        bodies.append({"label": label, "shape": shape, "boundary": IN_CELLS} | more)
    lattice = "D2Q9" if len(size) == 2 else "D3Q19"
    tables = flow(lattice, size=list(size), body=bodies, run={"steps": steps})
    return parse_case(tables, "test.toml")


def at(*centre, **more):
    return BALL | {"centre": list(centre)} | more


ROD = {"name": "cylinder", "centre": [29, 15, 10], "radius": 4.0, "axis": "z"}
WALL = {"name": "box", "lower": [17, 0], "upper": [20, 30]}
TWO = {"rate": 0.01, "point": [20, 15]}
PAIRS = {
    "towards each other": ([(BALL, goes(0.05, 0)), (at(22, 15), goes(-0.03, 0))], "overlaps", 51),
    "a gap": ([(BALL, goes(0.05, 0)), (at(24.5, 15), goes(0, 0))], "is 1.5 cells", 100),
    "far enough": ([(BALL, goes(0.05, 0)), (at(26, 15), goes(0, 0))], None, 0),
    "periodic": ([(at(37, 15), goes(0.05, 0)), (at(8, 15), goes(0.02, 0))], "is 0 cells", 100),
    "bars": ([(BAR, turns(0.02)), (at(23, 15), goes(0.01, 0))], "is 0.963 cells", 13),
    "bar turns away": (
        [(BAR, turns(0.02)), (at(12, 24), goes(0.01, 0))],
        "overlaps",
        50,
    ),  # its corner at (1.98, 5.86), the ball at (0.5, 9.5)
    "hub and blade": ([(BAR, turns(**TWO)), (at(16, 15), turns(**TWO))], None, 0),
    "wall": ([(BALL, goes(0.05, 0)), (WALL, None)], "overlaps body 'b'", 61),
    "gap to wall": ([(BALL, goes(0.02, 0)), (WALL, None)], "is below 2 cells", 51),
    "around a small body": ([(BALL, goes(0.01, 0)), (at(10, 15, radius=1), None)], "overlaps", 0),
    "only at rest": ([(BALL, None), (WALL, None)], None, 0),
    "endless": ([(at(20, 15, 10), goes(0.01, 0, 0)), (ROD, turns(0.01))], "is 0 cells", 100),
}


@pytest.mark.parametrize("name", PAIRS)
def test_findings(name):
    parts, message, t = PAIRS[name]
    D = len(parts[0][0].get("centre", [0, 0]))
    texts = [str(each) for each in meetings(case(*parts, size=(40, 30, 20)[:D]))]
    if message is None:
        assert not texts
        return
    (text,) = texts
    assert message in text
    time = float(text.split("at t = ")[1].split(":")[0].split(";")[0])
    assert time == pytest.approx(t, abs=2)


def test_many_steps_and_several_bodies():
    """A meeting of 2 steps in 200 000 is found for round bodies."""
    peak = "4.1*exp(-((t - 131072)/60)**2)"
    parts = [(BALL, {"name": "translation", "displacement": [peak, 0]}), (at(22, 15), goes(0, 0))]
    texts = [str(each) for each in meetings(case(*parts, steps=200_000))]
    assert "overlaps body 'b', first at t = 131" in texts[0]


SHAPES = [
    RigidShape((5.0, 6.0, 7.0), radius=3.0, round_axes=(0, 1, 2)),
    RigidShape((5.0, 6.0), radius=3.0, round_axes=(0, 1)),
    RigidShape((5.0, 6.0, 7.0), (2.0, 1.0, 4.0)),
    RigidShape((5.0, 6.0), (2.0, 1.0)),
    RigidShape((5.0, 6.0, 7.0), (np.inf, 4.0, np.inf), 2.0, (0, 2)),
    RigidShape((5.0, 6.0, 7.0), radius=2.0, round_axes=(0, 2)),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_points_lie_on_the_surface(shape):
    """At the distance 0; twice as far out they are outside, half as far within."""
    points = shape.points((20, 20, 20))
    assert np.abs(shape.distance(points)).max() < 1e-12
    assert shape.distance(1.5 * points).min() > 0.3
    assert shape.distance(0.5 * points).max() < -0.3
