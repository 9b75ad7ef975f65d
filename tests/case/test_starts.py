"""Findings on sudden starts, and on ramps of inlets in a fluid that moves."""

import pytest
from support.faces import closed, table

from mpilbm.case.case import parse_case
from mpilbm.case.starts import (
    inlets,
    last_ramp,
    late_ramps,
    ramp_for,
    sound_stays,
    stopped_starts,
    sudden_starts,
)

BODY = [
    {
        "label": "ball",
        "shape": {"name": "sphere", "centre": [10.0, 8.5], "radius": 3.0},
        "boundary": {"name": "bounce_back"},
    }
]


def flow(u=0.0, nu=1e-4, velocity=(0.05, 0.0), body=BODY, collision="regularized", **inlet):
    ends = [
        {"name": "regularized", "where": ["x-"], "velocity": list(velocity)} | inlet,
        {"name": "zou_he", "where": ["x+"], "rho": 1.0},
        table("bounce_back", "y-", "y+", D=2),
    ]
    tables = closed("D2Q9", [40, 16], ends, body=body, initial={"rho": 1, "u": [u, 0.0]})
    given = {"fluid": {"viscosity": nu}, "collision": {"name": collision}}
    return parse_case(tables | given, "test.toml")


def test_a_sudden_flow_past_a_body_is_reported_with_a_ramp():
    (found,) = sudden_starts(flow())
    assert (found.severity, found.where) == ("note", "boundary.0")
    assert "23 dynamic pressures" in found.message  # 2 cs / u
    assert "set ramp = 560" in found.message  # 8 crossings of 40 cells are 554 steps
    assert "initial.u" not in found.message
    (found,) = sudden_starts(flow(velocity=("0.05 - 0.01*((y - 8)/8)**2", 0.0)))  # a profile
    assert "23 dynamic pressures" in found.message
    (found,) = sudden_starts(flow(u=0.05))
    assert "start from rest (remove initial.u)" in found.message


@pytest.mark.parametrize("body", [BODY, []])
def test_a_short_ramp_is_reported(body):
    (found,) = sudden_starts(flow(ramp=100, body=body))
    assert (found.severity, found.where) == ("warning", "boundary.0.ramp")
    assert "found 100 steps, in which sound crosses the box 1.4 times" in found.message
    assert "set ramp = 560" in found.message
    assert not list(sudden_starts(flow(ramp=280, body=body)))


@pytest.mark.parametrize(
    "change",
    [
        {"ramp": 500},
        {"velocity": ("0.05*t/(t + 9)", 0.0)},
        {"body": []},
        {"nu": 1.0},
        {"nu": 1.0, "collision": "trt"},
    ],
    ids=["ramp", "formula", "no body", "sound fades", "without a bulk rate"],
)
def test_other_starts_are_not(change):
    assert not list(sudden_starts(flow(**change)))


PROFILE = {"name": "power", "reference": 7.5, "exponent": 0.2, "axis": "y"}


def test_velocities_that_differ_along_the_face_are_judged_by_the_largest():
    """Formulas of the place, and profiles."""
    (found,) = sudden_starts(flow(velocity=("0.1*y*(ny - y)/ny**2*4", 0.0)))
    assert "12 dynamic pressures" in found.message
    (found,) = sudden_starts(flow(profile=PROFILE))
    assert "20 dynamic pressures" in found.message  # 23 / (15.5/7.5)^0.2
    (found,) = sudden_starts(flow(profile=PROFILE, ramp=100))
    assert found.where == "boundary.0.ramp"


def test_ramps_that_end_after_the_run_are_reported():
    case = flow(ramp=500)
    case = case.model_copy(update={"run": case.run.model_copy(update={"steps": 250})})
    (found,) = late_ramps(case)
    assert (found.severity, found.where) == ("warning", "boundary.0.ramp")
    assert "found 500 steps, but the run ends after 250, at 0.5 times" in found.message
    assert last_ramp(case) == 500
    case = case.model_copy(update={"run": case.run.model_copy(update={"steps": 500})})
    assert not list(late_ramps(case))


def test_sound_fades_with_the_viscosity():
    assert sound_stays(flow(nu=1e-4)) == pytest.approx(1000 * sound_stays(flow(nu=0.1)))


def test_a_moving_fluid_is_not_stopped_by_a_ramp():
    for u in (0.05, "0.05*y/ny"):
        (found,) = stopped_starts(flow(u=u, ramp=500))
        assert (found.severity, found.where) == ("warning", "boundary.0.ramp")
        assert "the fluid has the velocity of initial.u" in found.message
    assert not list(stopped_starts(flow(ramp=500)))
    assert not list(stopped_starts(flow(u=0.05)))


def test_inlets_are_faces_with_a_velocity_across():
    assert [key for key, _ in inlets(flow())] == ["boundary.0"]
    assert not list(inlets(flow(velocity=(0.0, 0.05))))
    assert ramp_for(flow()) == 560
