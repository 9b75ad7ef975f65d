"""A run notices speeds that its given velocities do not explain, and outlets that fluid enters."""

import numpy as np
import pytest
from support.guarded import sounding
from support.outputs_cases import make_case
from support.runs import run_case, summary

from mpilbm.case.velocity_bounds import fastest, largest_speed
from mpilbm.run import steady
from mpilbm.run.checks import place
from mpilbm.run.checks.outlets import inlets, outlets, still
from mpilbm.run.checks.speeds import bounded
from mpilbm.run.simulation import Simulation

EVERY = 50
WALLS = {"name": "bounce_back", "where": ["y-", "y+"]}
IN = {"name": "equilibrium", "where": ["x-"], "velocity": [0.05, 0]}
OUT = {"name": "equilibrium", "where": ["x+"], "rho": 1.0}
GIVES, COPY = OUT | {"where": ["x-"]}, {"name": "copy", "where": ["x+"]}
BODY = {"shape": {"name": "sphere", "centre": [8, 8], "radius": 3}}
BODY |= {"boundary": {"name": "bounce_back"}}


@pytest.fixture(autouse=True)
def frequent(monkeypatch):
    monkeypatch.setattr(steady, "CHECK_EVERY", EVERY)


def duct(*boundaries, size=(16, 16), periodic=(False, False), **more):
    faces = {"domain": {"size": list(size), "periodic": list(periodic)}}
    return make_case(size, [], boundary=list(boundaries), **faces, **more)


def found(case, steps):
    """What a run of a program finds, besides the findings of the case."""
    with Simulation(case) as sim:
        known = list(sim.findings)
        sim.run(steps)
        return [each.line for each in sim.findings if each not in known]


def test_sound_that_stays_in_the_box_is_found(tmp_path):
    """The velocity at the outlet swings between -0.02 and 2.4 times that of the inlet."""
    run_case(sounding(1200), tmp_path)
    fast, back = sorted(
        (each for each in summary(tmp_path)["findings"] if each["message"].startswith("by step")),
        key=lambda each: "enters" in each["message"],
    )
    assert (fast["severity"], fast["where"]) == ("warning", "boundary.1")
    for words in (
        "times as fast as the largest given speed, 0.05 cells/step of boundary.0.velocity: 0.1",
        " in cell (",
        ", 39) at y+",
        "('equilibrium'",
        "and too fast first at step ",
        "use 'characteristic' there",
    ):
        assert words in fast["message"], words
    assert "such as 'equilibrium'" not in fast["message"]  # which the face already has
    assert (back["severity"], back["where"]) == ("warning", "boundary.1")
    for words in (
        "fluid enters through the outlet y+ ('equilibrium'): through 100% of it",
        "and first at step ",
    ):
        assert words in back["message"], words


def test_a_body_that_moves_gives_a_speed():
    """A rotor that is faster than the lid of its box is no sign of an unstable flow."""
    lid = {"name": "bounce_back", "where": ["y+"], "velocity": [0.001, 0]}
    walls = {"name": "bounce_back", "where": ["x-", "x+", "y-"]}
    rotor = BODY | {"label": "rotor", "boundary": {"name": "partially_saturated"}}
    rotor["motion"] = {"name": "rotation", "rate": 0.02}
    case = duct(lid, walls, body=[rotor])
    assert bounded(case)
    assert largest_speed(case) == (pytest.approx(0.06), "body.rotor.motion")
    assert not found(case, 3 * EVERY)


def test_the_advice_names_what_the_case_does_not_have():
    start, quiet = "give the fluid the velocity", "use 'characteristic'"
    for change, expected in (
        ({"u": 0}, [start, quiet]),
        ({"u": 0.05}, ["", quiet]),
        ({"u": 0, "outlet": "characteristic"}, [start, ""]),
    ):
        case = sounding(100, **change)
        advice = still(case, case.boundaries[1].name)
        assert [
            text[: len(words)] for text, words in zip(advice, expected, strict=True)
        ] == expected


@pytest.mark.parametrize(
    "change", [{"outlet": "characteristic", "u": 0}, {"u": 0.05}], ids=["characteristic", "moving"]
)
def test_nothing_is_found_if_the_advice_is_followed(change):
    assert found(sounding(1200, **change), 1200) == []


def test_initial_and_later_speeds_count_as_given():
    """A vortex that is faster than the walls."""
    vortex = ["0.1*sin(pi*x/nx)*cos(pi*y/ny)", "-0.1*cos(pi*x/nx)*sin(pi*y/ny)"]
    lid = {"name": "bounce_back", "where": ["y+"], "velocity": [0.01, 0]}
    rest = {"name": "bounce_back", "where": ["x-", "x+", "y-"]}
    case = duct(lid, rest, initial={"u": vortex})
    assert found(case, 4 * EVERY) == []
    with Simulation(duct(lid, rest)) as sim:
        sim.run(EVERY)
        sim.set_field("u", np.full_like(sim.field("u"), 0.05))
        sim.run(EVERY)
        assert not [each for each in sim.findings if "times as fast" in each.message]


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (duct(WALLS, IN, OUT), True),
        (duct(WALLS, IN, OUT, body=[BODY]), True),
        (duct(WALLS, IN | {"velocity": [0, 0]}, OUT), False),
        (duct(WALLS, IN, OUT, force={"name": "guo", "value": [1e-5, 0]}), False),
        (duct(WALLS, GIVES | {"rho": 1.01}, OUT), False),
        (duct(WALLS | {"velocity": [0.1, 0]}, periodic=(True, False)), True),
        (make_case((8, 8)), False),
        (make_case((8, 8), fluid={"reynolds": 10, "length": 8, "velocity": 0.1}), False),
        (duct(WALLS | {"velocity": [0.1, 0]}, GIVES | {"rho": "1 + 0.01*y/ny"}, COPY), False),
        (duct(WALLS, IN | {"velocity": ["where(x > nx, 0.05, 0)", 0]}, OUT), False),
    ],
)
def test_given_velocities_bound_flows_that_nothing_else_drives(case, expected):
    assert bounded(case) is expected


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (duct(WALLS, IN, OUT), ["x+"]),
        (duct(WALLS, IN | {"velocity": [-0.05, 0]}, OUT), []),  # suction
        (duct(WALLS, IN | {"velocity": ["0.05*sin(t/9)", 0]}, OUT), []),  # in turn
        (duct(WALLS, GIVES | {"rho": 1.01}, OUT), ["x+"]),
        (duct(WALLS, GIVES, OUT), []),
        (duct(WALLS, IN, COPY), ["x+"]),
        (duct(IN, OUT, OUT | {"where": ["y-", "y+"], "rho": 1.01}), ["x+"]),
    ],
)
def test_fluid_may_leave_through_outlets_only(case, expected):
    assert [face for face, _ in outlets(case)] == expected


def test_inlets_along_a_channel_accelerate_the_flow():
    """The mean at the outlet is 4.75 times the given speed."""
    case = duct(
        {"name": "free_slip", "where": ["y-"]},
        IN | {"velocity": [0.01, 0]},
        IN | {"where": ["y+"], "velocity": [0, -0.01]},
        OUT,
        size=(60, 16),
    )
    with Simulation(case) as sim:
        assert sim.march.watch._speeds._allowed() > 1.5 * 4.75


def test_faces_along_a_stream_are_no_inlets():
    stream = IN | {"where": ["x-", "y-", "y+"]}
    assert [face for face, _ in inlets(duct(stream, OUT))] == ["x-"]


def test_initial_speeds_count_after_a_restart(tmp_path):
    vortex = ["0.1*sin(pi*x/nx)*cos(pi*y/ny)", "-0.1*cos(pi*x/nx)*sin(pi*y/ny)"]
    lid = {"name": "bounce_back", "where": ["y+"], "velocity": [0.01, 0]}
    rest = {"name": "bounce_back", "where": ["x-", "x+", "y-"]}
    for steps, options in ((EVERY, {}), (4 * EVERY, {"restart": "auto"})):
        case = duct(
            lid,
            rest,
            initial={"u": vortex},
            run={"steps": steps},
            fluid={"viscosity": 0.01},
            output=[{"name": "checkpoint", "every": EVERY}],
        )
        run_case(case, tmp_path, **options)
    findings = [each["message"] for each in summary(tmp_path)["findings"]]
    assert not [message for message in findings if message.startswith("by step")]


def test_sound_that_remains_after_an_inlet_has_stopped_is_no_flow(monkeypatch):
    monkeypatch.setattr(steady, "CHECK_EVERY", 300)
    stops = IN | {"velocity": ["where(t < 200, 0.05, 0)", 0]}
    case = duct(WALLS, stops, COPY, size=(40, 16), run={"steps": 900})
    assert not [line for line in found(case, 900) if "enters" in line]


def test_a_jet_of_few_cells_is_a_given_speed():
    """It is between those cells of the face at which formulas of the time are evaluated."""
    jet = IN | {"velocity": ["where(abs(y - 70.5) < 1, 0.05, 0)", 0]}
    assert found(duct(WALLS, jet, OUT | {"name": "characteristic"}, size=(8, 256)), 3 * EVERY) == []


def test_a_time_that_all_evenly_spaced_steps_miss():
    """Of 90 000 steps at most 91 are evaluated at this face, and 1000 steps are a period."""
    swings = IN | {"velocity": ["0.05*sin(2*pi*t/1000)*sin(pi*y/ny)*sin(pi*z/nz)", 0, 0]}
    size = (4, 33, 33)
    case = make_case(
        size,
        [],
        domain={"size": list(size), "periodic": [False, True, True]},
        boundary=[swings, OUT],
        run={"steps": 90_000},
    )
    assert fastest(case, case.boundaries[0])[0] > 0.045


def test_a_flow_between_bodies_may_be_fast():
    """A body that closes five sixths of the channel."""
    plug = {"name": "box", "lower": [18, -1], "upper": [22, 10]}
    case = duct(
        WALLS,
        IN | {"velocity": [0.02, 0]},
        OUT | {"name": "characteristic"},
        size=(40, 12),
        body=[BODY | {"shape": plug}],
        initial={"u": [0.02, 0]},
    )
    with Simulation(case) as sim:
        sim.run(6 * EVERY)
        assert sim.march.context.totals.fastest > 0.05
        assert not [each for each in sim.findings if each.message.startswith("by step")]


def test_the_place_of_a_cell_names_both_faces_of_an_axis_of_one_cell():
    walls = {"name": "bounce_back", "where": ["x-", "x+", "y-", "y+", "z-", "z+"]}
    case = make_case((8, 8, 1), [], boundary=[walls], domain={"size": [8, 8, 1]})
    assert "at x- and z- and z+ ('bounce_back')" in place(case, (0, 3, 0)).text
