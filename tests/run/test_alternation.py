"""A run notices density and velocity that alternate between even and odd steps, and grow."""

import numpy as np
import pytest
from support.coupled import two_fluids, walled
from support.guarded import alternating
from support.outputs_cases import make_case
from support.runs import run_case, summary
from support.settings import tables

from mpilbm.case.case import parse_case
from mpilbm.run import steady
from mpilbm.run.checks.alternation import sampled_nodes
from mpilbm.run.simulation import Simulation

EVERY = 40
GROWING = "0.01*exp(t/100)"


@pytest.fixture(autouse=True)
def frequent(monkeypatch):
    monkeypatch.setattr(steady, "CHECK_EVERY", EVERY)


def ratios(case, steps):
    """The amplitude relative to the speed at each check, and the lines on it."""
    with Simulation(case) as sim:
        known, found = len(sim.findings), []
        while sim.step < steps:
            sim.run(EVERY)
            found.append(sim.march.watch.alternation.ratio)
        return found, [each.line for each in sim.findings[known:]]


@pytest.mark.parametrize("layout", ["ab", "aa", "esopull"])
def test_a_growing_alternation_is_a_finding(tmp_path, capsys, layout):
    run_case(alternating(400, GROWING, layout), tmp_path)
    said = [line for line in capsys.readouterr().err.splitlines() if "alternate between" in line]
    assert [line.partition(":")[0] for line in said] == ["warning", "serious"]
    (found,) = (each for each in summary(tmp_path)["findings"] if "alternate" in each["message"])
    assert found["severity"] == "serious"
    assert found["where"] == "boundary.0"
    assert said[1] == f"serious: boundary.0: {found['message']}"
    first, last = (float(line.split("amplitude of ")[1].split("%")[0]) for line in said)
    assert 2 < first < 10 < last < 20
    for words in (
        "in cell (0, ",
        ") at x- ('equilibrium'), which has grown since step 40",
        "give these faces other conditions, raise the viscosity, or use",
    ):
        assert words in said[1]


def test_a_constant_alternation_is_measured_and_is_no_finding():
    """A checkerboard of the momentum along x alternates without loss: no collision changes it."""
    start = {"initial": {"u": ["0.05 + 0.002*cos(pi*(x - 0.5))", 0]}}
    case = make_case((16, 6), [], fluid={"viscosity": 0.1}, **start)
    found, lines = ratios(case, 4 * EVERY)
    assert found == pytest.approx([0.002 / 0.052] * 4, rel=0.05)
    assert not lines


@pytest.mark.parametrize("period", [10, 40])
def test_waves_that_are_resolved_are_no_finding(period):
    """From an inlet that oscillates, with more and more speed; cos(pi*t)**2 = 1."""
    case = alternating(0, f"0.2*t/100*sin(2*pi*t/{period})*cos(pi*t)")
    found, lines = ratios(case, 6 * EVERY)
    assert max(found) < 0.02
    assert not lines


def test_the_samples_need_consecutive_steps_of_one_state():
    with Simulation(alternating(0, "0")) as sim:
        sim.run(EVERY - 2)
        sim.set_field("rho", np.ones((8, 16)))
        sim.run(2)
        assert sim.march.watch.alternation.ratio is None
        for _ in range(EVERY):
            sim.run(1)
        assert sim.march.watch.alternation.ratio is not None


CASES = {
    "moments": lambda: tables("D2Q9", "moments", "regularized", "walls", "single"),
    "indirect": lambda: tables("D2Q9", "indirect", "trt", "walls", "single"),
    "D3Q13": lambda: tables("D3Q13", "aa", "mrt", "walls", "single"),
    "coupled": lambda: two_fluids("D2Q9") | walled("D2Q9"),
}


@pytest.mark.parametrize("name", CASES)
def test_layouts_and_fluids_are_sampled(name):
    found, _ = ratios(parse_case(CASES[name]() | {"backend": {"name": "cpu"}}, "t.toml"), EVERY)
    assert np.isfinite(found).all()


def test_all_cells_of_small_faces_are_sampled():
    case = alternating(0, "0")
    nodes = {tuple(node) for node in sampled_nodes(case).tolist()}
    assert nodes == {(y, 0, x) for y in range(8) for x in range(16)}


@pytest.mark.parametrize("size", [(20_000, 30), (300, 200, 100)])
def test_few_cells_of_large_boxes_are_sampled(size):
    walls = [axis + side for axis in "xyz"[: len(size)] for side in "-+"]
    case = make_case(
        size,
        [],
        domain={"size": list(size), "periodic": [False] * len(size)},
        boundary=[{"name": "bounce_back", "where": walls}],
    )
    nodes = sampled_nodes(case)
    assert len(nodes) < 30_000
    assert len(nodes) == len(np.unique(nodes, axis=0))
    planes, rows, nx = case.shape
    ends = [(p, r, x) for p in (0, planes - 1) for r in (0, rows - 1) for x in (0, nx - 1)]
    assert {*ends} <= {tuple(node) for node in nodes.tolist()}
    assert (nodes.max(axis=0) == (planes - 1, rows - 1, nx - 1)).all()


@pytest.mark.parametrize(("layout", "storage"), [("moments", "mixed"), ("ab", "float16")])
def test_a_flow_stored_with_few_digits_is_judged(layout, storage):
    case = make_case(
        (8, 6),
        [],
        collision={"name": "regularized"},
        layout={"name": layout},
        precision={"storage": storage},
        initial={"u": ["0.05*sin(2*pi*y/ny)", 0]},
    )
    (ratio,), lines = ratios(case, EVERY)
    assert 0 <= ratio < 0.02
    assert not lines
