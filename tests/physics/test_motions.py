"""Motions of bodies: velocities are derivatives of positions; formulas; what is reported."""

import re

import numpy as np
import pytest
from support.body_forces import flow
from support.slabs import Cluster

from mpilbm.case.case import parse_case
from mpilbm.case.case_findings import of_case
from mpilbm.case.velocity_bounds import largest_speed
from mpilbm.core.errors import CaseError
from mpilbm.core.formulas.course import BLOCK, Course
from mpilbm.core.registry import find, make, names
from mpilbm.physics.motions import Placement
from mpilbm.solids.moving_bodies import MovingBody, require_continuous

CENTRE = np.array([20.0, 14.0, 9.0])
MOTIONS = {
    "translation": [
        {"velocity": ["0.05*sin(t/30)", "0.02*exp(-t/50)", -0.01]},
        {"displacement": ["9*sin(t/40)**2", "t/(60 + t)", "3*tanh(t/70)"]},
    ],
    "rotation": [
        {"rate": "0.01*cos(t/30)", "axis": [1, 2, -2], "point": [25.0, 10.0, 3.0]},
        {"angle": "where(t < 40, 0.002*t, 0.08) + sqrt(t + 1)/20", "axis": [0, 3, 0]},
    ],
}
CASES = [(name, given) for name, each in MOTIONS.items() for given in each]


def test_every_motion_on_a_given_path_is_tested_here():
    given = {name for name in names("motions") if not find("motions", name).responds}
    assert {*MOTIONS, "path"} == given  # path: test_paths.py


@pytest.mark.parametrize(("name", "given"), CASES)
def test_the_velocity_is_the_derivative_of_the_position(name, given):
    """Of any point, by differences over 2e-4 steps; rotations stay orthogonal."""
    motion, X, h = make("motions", {"name": name, **given}), [23.0, 12.0, 14.0], 1e-4
    for t in (0.5, 13.25, 39.0, 77.7):
        before, at, after = (motion.placement(t + k * h, CENTRE) for k in (-1, 0, 1))
        difference = (after.of(X) - before.of(X)) / (2 * h)
        assert at.velocity_at(at.of(X)) == pytest.approx(difference, abs=1e-8)
        assert at.rotation @ at.rotation.T == pytest.approx(np.eye(3), abs=1e-14)
        assert np.linalg.norm(difference) > 1e-4


@pytest.mark.parametrize(("name", "given"), CASES)
def test_many_times_at_once(name, given):
    motion, times = make("motions", {"name": name, **given}), np.array([0.0, 3.0, 50.5])
    many = motion.placement(times, CENTRE)
    for k, t in enumerate(times):
        one = motion.placement(t, CENTRE)
        for field in ("rotation", "point", "velocity", "spin", "angle"):
            assert getattr(many, field)[k] == pytest.approx(getattr(one, field), abs=1e-14)


FORMULAS = (
    "t**3 - 2*t", "1/(1 + t)", "sin(t)*cos(2*t)", "exp(-t/3)*t", "log(1 + t)", "tan(t/9)", "t**-2",
    "tanh(t - 1)", "abs(t - 2)", "min(t, 3, 5 - t)", "max(t*t, 2)", "where(t > 1, t**2, 2*t)",
    "sqrt(2 + t)/pi", "-t", "3",
)  # fmt: skip


@pytest.mark.parametrize("text", FORMULAS)
def test_derivatives_of_formulas(text):
    """By central differences, and the integral of the derivative is the difference of values."""
    course, t, h = Course(text), np.array([0.7, 1.3, 2.6]), 1e-5
    expected = (course.at(t + h) - course.at(t - h)) / (2 * h)
    assert course.slope(t) == pytest.approx(expected, rel=1e-7, abs=1e-8)


def test_integrals_do_not_depend_on_what_was_asked_before():
    """Of 3 blocks of steps; Simpson's rule is exact to 1e-9 here."""
    text, w = "0.05*sin(2*pi*t/400)", 2 * np.pi / 400
    times = [0.0, 0.5, 3.0, BLOCK - 0.25, BLOCK, 3 * BLOCK + 7.5]
    forwards, backwards = Course(text), Course(text)
    found = [float(forwards.integral(t)) for t in times]
    assert found == [float(backwards.integral(t)) for t in times[::-1]][::-1]
    assert found == forwards.integral(np.array(times)).tolist()
    assert found == pytest.approx([0.05 / w * (1 - np.cos(w * t)) for t in times], abs=1e-8)


DISC = {"name": "sphere", "centre": [20.0, 20.0], "radius": 4.0}
GOES = {"name": "translation", "velocity": [0.05, 0.0]}
ON_CELLS = {"name": "partially_saturated"}


def case(*given, **more):
    return parse_case(tables_of(*given, **more), "test.toml")


def tables_of(motion=GOES, shape=DISC, boundary=ON_CELLS, walls=False, steps=100, **more):
    body = {"label": "a", "shape": shape, "boundary": boundary, "motion": motion}
    tables = flow("D2Q9", size=[60, 40], body=[body], run={"steps": steps}) | more
    if walls:
        faces = [{"name": "bounce_back", "where": ["x-", "x+", "y-", "y+"]}]
        tables |= {"domain": {"size": [60, 40], "periodic": [False, False]}, "boundary": faces}
    return tables


TURNS = {"name": "rotation", "rate": 0.002}
BALL = {"name": "sphere", "centre": [30.3, 20.2, 24.1], "radius": 5.2}
JUMP = {"name": "translation", "displacement": ["where(t < 5, 0, 20)", 0]}
HOP = {"name": "translation", "displacement": ["0.01*t + where(t < 5, 0, 0.9)", 0]}
SNAP = {"name": "rotation", "angle": "where(t < 7, 0, 1.5)"}
PLATE = {"name": "box", "lower": [10, 10], "upper": [30, 11.5]}
SPECK = DISC | {"centre": [20.2, 20.3], "radius": 0.1}
BLADES = {"name": "union", "of": [PLATE, PLATE | {"lower": [19, 5], "upper": [20.5, 25]}]}
REFUSED = {
    "links": ({"boundary": {"name": "bounce_back"}}, "found 'bounce_back', which acts on"),
    "half plane": (
        {"shape": {"name": "half_space", "point": [0, 9], "normal": [0, 1]}},
        "shape: found an infinite one at x-, y-, x",
    ),
    "no points": ({"shape": {"name": "union", "of": [SPECK, SPECK]}}, "found no point in it, of"),
    "neither": ({"motion": {"name": "rotation"}}, "has neither of rate and angle"),
    "both": ({"motion": GOES | {"displacement": [1, 1]}}, "has both of velocity and displacement"),
    "place": ({"motion": GOES | {"velocity": ["x", 0]}}, r"velocity\.x: unknown name 'x'"),
    "entries": ({"motion": GOES | {"velocity": [0.1]}}, "found 1 entry; allowed: 2"),
    "axis": ({"motion": TURNS | {"axis": [1, 0, 0]}}, r"allowed in 2D: \[0, 0, 1\]"),
    "sound": ({"motion": GOES | {"velocity": [0.7, 0]}}, "below the speed of sound"),
    "jump": ({"motion": JUMP}, "moves by 20 cells in the step from t = 4"),
    "hop": ({"motion": HOP}, "jumps by 0.91 cells in the step from t = 4, where its velocity is"),
    "snap": ({"motion": SNAP}, "jumps by 5.45 cells in the step from t = 6"),
    "nowhere": ({"motion": GOES | {"velocity": ["1/(t - 7)", 0]}}, "is not finite"),
    "long": ({"shape": PLATE | {"upper": [55, 11.5]}, "motion": TURNS}, "the periodic box has 40"),
    "units": ({"motion": TURNS | {"rate": "300 rpm"}}, "has no \\[units\\]"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    given, message = REFUSED[name]
    with pytest.raises(CaseError, match=message):
        case(**given)


FOUND = {
    "fast": ({"motion": GOES | {"velocity": [0.2, 0]}}, "multiply velocities, rates and the visc"),
    "thin": ({"shape": PLATE, "motion": TURNS}, "the body is 1.5 cells thick"),
    "thin blades": ({"shape": BLADES, "motion": TURNS}, "the body is 1.5 cells thick"),
    "leaves": ({"walls": True, "steps": 1000}, r"leaves the box through x\+, by 14"),
    "close": ({"walls": True, "steps": 699}, r"the gap to x\+ is 1 cells at t = 700"),
    "crosses": ({"steps": 1000}, r"crosses the periodic face x\+"),
}


@pytest.mark.parametrize("name", FOUND)
def test_findings(name):
    given, message = FOUND[name]
    texts = [str(each) for each in of_case(case(**given)) if "body.a" in str(each)]
    assert any(re.search(message, text) for text in texts), texts


def test_no_finding_without_a_reason():
    assert not [each for each in of_case(case()) if "body.a" in str(each)]


def test_kinks_of_a_formula_are_no_jumps():
    """A velocity that is reversed within a step, and a rotation that stops."""
    there_and_back = {"name": "translation", "displacement": ["min(0.3*t, 15 - 0.3*t)", 0]}
    for motion in (there_and_back, TURNS | {"rate": "where(t < 7.5, 0.02, 0)"}):
        case(motion)


def test_jumps_after_the_run_and_between_checked_times():
    """A run finds the jumps that the check of a case does not reach."""
    late = {"name": "rotation", "angle": "where(t < 300, 0, 1.5)"}
    hop = {"name": "translation", "displacement": ["where(t < 300, 0, 0.9)", 0]}
    far = {"name": "translation", "displacement": ["where(t < 300, 0, 5)", 0]}
    for motion, found in ((late, "5.45 cells"), (hop, "0.9 cells"), (far, "5 cells")):
        bodies = MovingBody.all(case(motion))
        assert bodies[0].checked == 101
        times = np.arange(290.0, 310)
        assert require_continuous(bodies, times, 10) == 10
        assert require_continuous(bodies, times[11:], 9) == 9
        with pytest.raises(CaseError, match=f"found {found} in a step at step 300; allowed: below"):
            require_continuous(bodies, times, 11)
        assert require_continuous(bodies, np.arange(60.0, 100), 40) == 40


def test_the_rows_of_many_times_are_those_of_each_time():
    """In all bits: restarts compute other times together."""
    for name, given in CASES:
        part = {"label": "a", "shape": BALL, "boundary": ON_CELLS}
        part["motion"] = {"name": name, **given}
        tables = flow("D3Q19", size=[60, 40, 50], body=[part], run={"steps": 99})
        (body,) = MovingBody.all(parse_case(tables, "test.toml"))
        times = np.arange(5.0, 140)
        rows = body.rows(times)
        for k in (0, 1, 2, 3, 64, 133, 134):
            assert np.array_equal(body.rows(times[k : k + 1])[0], rows[k])
        assert np.array_equal(body.rows(times[3:100]), rows[3:100])
        assert len(np.unique(rows, axis=0)) == len(rows)


def test_a_run_stops_at_a_jump():
    """That of a program which goes on after the last step of the case."""
    jump = {"name": "rotation", "angle": "where(t < 5, 0, 1.5)"}
    cluster = Cluster(tables_of(jump, steps=2)).start().run(4)
    with pytest.raises(CaseError, match="cells in a step at step 5; allowed"):
        cluster.run(1)


def test_more_bodies_than_a_byte_counts():
    tables = flow("D2Q9", size=[60, 40], run={"steps": 1})
    part = {"shape": DISC, "boundary": ON_CELLS, "motion": GOES}
    tables["body"] = [part | {"label": f"b{k}"} for k in range(256)]
    with pytest.raises(CaseError, match="found 256 bodies with a motion; allowed: 255"):
        parse_case(tables, "test.toml")


def test_the_speed_of_a_flow_is_that_of_the_fastest_surface():
    given = case(GOES | {"velocity": [0.03, 0.04]})
    assert largest_speed(given) == (pytest.approx(0.05), "body.a.motion")


def test_rates_in_rpm_and_endless_cylinders():
    units = {"cell": "1 mm", "step": "1 ms", "density": "1000 kg/m^3"}
    (body,) = MovingBody.all(case(TURNS | {"rate": "30 rpm"}, units=units))
    assert body.placement(10.0).angle == pytest.approx(np.pi * 1e-2)
    rod = {"name": "cylinder", "centre": [6, 6, 6], "radius": 2.0, "axis": "z"}
    for axis, fine in (([0, 0, -2], True), ([0, 1, 0], False)):
        motion = {"name": "rotation", "rate": 0.01, "axis": axis}
        part = {"label": "a", "shape": rod, "boundary": ON_CELLS, "motion": motion}
        tables = flow("D3Q19", size=[12, 12, 12], body=[part], run={"steps": 9})
        if fine:
            parse_case(tables, "test.toml")
            continue
        with pytest.raises(CaseError, match="is infinite along z, and may turn about this axis"):
            parse_case(tables, "test.toml")


def test_a_placement_of_many_times():
    """The fields of the contract: a motion of a plug-in has them, too."""
    given = make("motions", GOES).placement(np.arange(3.0), CENTRE)
    assert isinstance(given, Placement)
    assert given.of(CENTRE) == pytest.approx(CENTRE + np.outer([0, 1, 2], [0.05, 0, 0]))
