"""Findings on sudden starts, and on ramps of inlets in a fluid that moves."""

import pytest
from support.faces import closed, table

from mpilbm.case.case import parse_case
from mpilbm.case.starts import inlets, ramp_for, sound_stays, stopped_starts, sudden_starts

BODY = [
    {
        "label": "ball",
        "shape": {"name": "sphere", "centre": [10.0, 8.5], "radius": 3.0},
        "boundary": {"name": "bounce_back"},
    }
]


def flow(u=0.0, nu=1e-4, velocity=(0.05, 0.0), body=BODY, **inlet):
    ends = [
        {"name": "regularized", "where": ["x-"], "velocity": list(velocity)} | inlet,
        {"name": "zou_he", "where": ["x+"], "rho": 1.0},
        table("bounce_back", "y-", "y+", D=2),
    ]
    tables = closed("D2Q9", [40, 16], ends, body=body, initial={"rho": 1, "u": [u, 0.0]})
    return parse_case(tables | {"fluid": {"viscosity": nu}}, "test.toml")


def test_a_sudden_flow_past_a_body_is_reported_with_a_ramp():
    (found,) = sudden_starts(flow())
    assert (found.severity, found.where) == ("note", "boundary.0")
    assert "23 dynamic pressures" in found.message  # 2 cs / u
    assert "set ramp = 560" in found.message  # 8 crossings of 40 cells are 554 steps
    assert "initial.u" not in found.message
    (found,) = sudden_starts(flow(velocity=("0.05 - 0.01*((y - 8)/8)**2", 0.0)))  # a profile
    assert "23 dynamic pressures" in found.message
    (found,) = sudden_starts(flow(u=0.05))
    assert "start from rest (initial.u = 0)" in found.message


@pytest.mark.parametrize("body", [BODY, []])
def test_a_short_ramp_is_reported(body):
    (found,) = sudden_starts(flow(ramp=100, body=body))
    assert (found.severity, found.where) == ("warning", "boundary.0.ramp")
    assert "found 100 steps, in which sound crosses the box 1.4 times" in found.message
    assert "set ramp = 560" in found.message
    assert not list(sudden_starts(flow(ramp=280, body=body)))


@pytest.mark.parametrize(
    "change",
    [{"ramp": 500}, {"velocity": ("0.05*t/(t + 9)", 0.0)}, {"body": []}, {"nu": 1.0}],
    ids=["ramp", "formula", "no body", "sound fades"],
)
def test_other_starts_are_not(change):
    assert not list(sudden_starts(flow(**change)))


def test_sound_fades_with_the_viscosity():
    assert sound_stays(flow(nu=1e-4)) == pytest.approx(1000 * sound_stays(flow(nu=0.1)))


def test_a_moving_fluid_is_not_stopped_by_a_ramp():
    (found,) = stopped_starts(flow(u=0.05, ramp=500))
    assert (found.severity, found.where) == ("warning", "boundary.0.ramp")
    assert not list(stopped_starts(flow(ramp=500)))
    assert not list(stopped_starts(flow(u=0.05)))


def test_inlets_are_faces_with_a_velocity_across():
    assert [key for key, _ in inlets(flow())] == ["boundary.0"]
    assert not list(inlets(flow(velocity=(0.0, 0.05))))
    assert ramp_for(flow()) == 560
