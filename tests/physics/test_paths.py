"""The motion `path`: rows of a file, between which a body moves and turns."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

from mpilbm.core.registry import make
from mpilbm.core.units import Units
from mpilbm.physics.motions import Floats

CENTRE = np.array([20.0, 14.0, 9.0])
TIMES = [0.0, 10.0, 25.0, 60.0]
PLACES = [[20, 14, 9], [23, 14, 8], [23, 18, 8.5], [20.0, 14, 9]]


def path(folder, rows, D=3, of_case=None, **more):
    np.savetxt(folder / "path.csv", rows, delimiter=",", header="t,x", comments="")
    motion = make("motions", {"name": "path", "file": "path.csv", **more})
    return motion.resolved(SimpleNamespace(directory=folder, dimensions=D, units=of_case))


def rows(*directions) -> Floats:
    return np.column_stack([TIMES, PLACES, *directions])


TURNS = Rotation.random(4, random_state=3)
QUATERNIONS = TURNS.as_quat()[:, [3, 0, 1, 2]]
FORMS = {"quaternions": -2 * QUATERNIONS, "angles": TURNS.as_euler("xyz", degrees=True)}


@pytest.mark.parametrize("form", FORMS)
def test_places_and_directions(tmp_path, form):
    """Those of the rows at their times, between them linear and those of SciPy's slerp."""
    motion = path(tmp_path, rows(FORMS[form]))
    times = np.array([0.0, 4.0, 10.0, 17.3, 59.0, 60.0])
    found = motion.placement(times, CENTRE)
    assert found.rotation == pytest.approx(Slerp(TIMES, TURNS)(times).as_matrix(), abs=1e-9)
    linear = [np.interp(times, TIMES, column) for column in np.array(PLACES, float).T]
    assert found.of(CENTRE) == pytest.approx(np.transpose(linear))
    one = motion.placement(17.3, CENTRE)
    assert one.rotation == pytest.approx(found.rotation[3], abs=1e-14)
    assert one.velocity == pytest.approx(found.velocity[3], abs=1e-14)


@pytest.mark.parametrize("form", FORMS)
def test_the_velocity_is_the_derivative_of_the_position(tmp_path, form):
    motion, X, h = path(tmp_path, rows(FORMS[form])), np.array([23.0, 12.0, 14.0]), 1e-4
    for t in (0.5, 13.25, 39.0):
        before, at, after = (motion.placement(t + k * h, CENTRE) for k in (-1, 0, 1))
        difference = (after.of(X) - before.of(X)) / (2 * h)
        assert at.velocity_at(at.of(X)) == pytest.approx(difference, abs=1e-8)
        assert np.linalg.norm(difference) > 1e-3


def test_rest_before_and_after_the_rows(tmp_path):
    motion = path(tmp_path, rows(QUATERNIONS) + np.eye(1, 8) * 5)
    for t, k in ((0.0, 0), (99.0, -1)):
        at = motion.placement(t, CENTRE)
        assert at.point == pytest.approx(PLACES[k])
        assert not at.velocity.any()
        assert not at.spin.any()


def test_in_2d_the_angle_may_exceed_a_turn_and_si_is_converted(tmp_path):
    """A turn of 720 degrees in 20 steps of 0.1 s, over 3 cells of 0.5 m; about another point."""
    units = Units(cell=0.5, step=0.1, density=1000.0)
    given = {"units": "si", "point": [8.0, 6.0]}
    motion = path(tmp_path, [[0, 4, 3, 0], [2, 5.5, 3, 720]], 2, units, **given)
    at = motion.placement(5.0, CENTRE)
    assert at.point == pytest.approx([8.75, 6, 0])
    assert at.velocity == pytest.approx([0.15, 0, 0])
    assert at.spin == pytest.approx([0, 0, 4 * np.pi / 20])
    assert at.angle == pytest.approx(np.pi)
    assert at.of(np.array([9.0, 6.0, 0])) == pytest.approx([7.75, 6, 0])


def test_half_turns(tmp_path):
    """By 180 degrees about each axis, where the axis does not follow from the sine."""
    for axis in np.eye(3):
        quaternions = [[1, 0, 0, 0], [0, *axis]]
        motion = path(tmp_path, np.column_stack([[0, 8], [[0, 0, 0]] * 2, quaternions]))
        half = motion.placement(4.0, CENTRE).rotation
        wanted = Rotation.from_rotvec(np.pi / 2 * axis).as_matrix()
        assert np.abs(half) == pytest.approx(np.abs(wanted), abs=1e-12)


WRONG = {
    "has 5 columns; allowed in 3D: t, x, y, z or t, x, y, z, rx, ry, rz or": rows(np.zeros(4)),
    "has row 3 with t = 25 after t = 25": rows()[[0, 2, 2, 3]],
    "has one row; allowed: two rows": rows()[:1],
    "has a quaternion of length 0": rows(np.zeros((4, 4))),
    "not finite": rows() * [1, 1, np.nan, 1],
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_refused(tmp_path, message):
    with pytest.raises(ValueError, match=f"'path.csv' .*{message}"):
        path(tmp_path, WRONG[message])


def test_si_without_units_is_refused(tmp_path):
    path(tmp_path, rows())
    case = SimpleNamespace(directory=tmp_path, dimensions=3, units=None)
    with pytest.raises(ValueError, match="the case has no"):
        make("motions", {"name": "path", "file": "path.csv", "units": "si"}).resolved(case)
