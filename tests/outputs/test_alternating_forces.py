"""Forces and rates of heat that change their sign in every step: rows are free of them."""

import numpy as np
import pytest
from support.surface_files import integral, read

from mpilbm.case.case import parse_case
from mpilbm.parallel.ranks import world
from mpilbm.run.run import run
from mpilbm.run.simulation import Simulation
from mpilbm.solver.body_forces import BodyForces
from mpilbm.view.results.tables import read_table

U, WIDTH, N, STEPS = 0.05, 12, 64, 200
BESIDE = {"name": "box", "lower": [40, 26], "upper": [42, 30]}


def tables(*outputs, steps=STEPS):
    """A plate in a stream that starts at once, in a periodic box."""
    plate = {"name": "box", "lower": [20, 26], "upper": [22, 26 + WIDTH]}
    return {
        "lattice": {"name": "D2Q9"},
        "domain": {"size": [N, N], "periodic": [True, True]},
        "fluid": {"viscosity": 0.01},
        "collision": {"name": "regularized"},
        "initial": {"u": [U, 0]},
        "body": [{"label": "a", "shape": plate, "boundary": {"name": "bounce_back"}}],
        "backend": {"name": "cpu"},
        "run": {"steps": steps},
        "output": [{"name": "body_forces", "every": 10, "velocity": [U, 0]}, *outputs],
    }


@pytest.fixture(scope="module")
def forces():
    """The force in each step, and the momentum of the fluid before it and after the last one."""
    with Simulation(parse_case(tables(), "plate.toml"), world()) as sim:
        found = []
        for _ in range(STEPS + 1):
            found.append((sim.forces()["a"][0], (sim.field("rho") * sim.field("u")[..., 0]).sum()))
            sim.run(1)
    return np.array(found).T


def test_rows_are_means_of_two_steps_and_lose_the_alternating_part(tmp_path, forces):
    """In even steps alone c_d is wrong by far more than the rows are."""
    force, momentum = forces
    run(parse_case(tables(), "plate.toml"), world(), tmp_path)
    found = read_table(tmp_path / "forces_a.csv")
    at = found["step"].astype(int)[1:]
    assert list(found["time"]) == [0.5, *at]
    np.testing.assert_allclose(found["force_x"][1:], (force[at - 1] + force[at]) / 2, rtol=1e-5)
    late = at[(at >= STEPS // 2) & (at < STEPS)]
    flow = np.array([(momentum[k - 5] - momentum[k + 5]) / 10 for k in late])
    rows = found["force_x"][1:][np.isin(at, late)]
    assert np.abs(rows - flow).max() < 0.2 * np.abs(force[late] - flow).max()


def test_steady_and_surface_have_these_means(tmp_path, forces):
    force, _ = forces
    given = tables({"name": "surface", "every": 50, "label": "wall"}, steps=100)
    given["run"] |= {"steady": {"of": "body_forces", "every": 50, "tolerance": 1e-9}}
    run(parse_case(given, "plate.toml"), world(), tmp_path)
    mean = (force[99] + force[100]) / 2
    assert integral(read(tmp_path, 100))[0] == pytest.approx(mean, rel=1e-4)
    steady = read_table(tmp_path / "steady.csv")["c_d_a"]
    assert steady[-1] == pytest.approx(2 * mean / (U**2 * WIDTH), rel=1e-4)


def test_sums_that_several_outputs_use_are_computed_once(tmp_path, monkeypatch):
    """Two outputs of the same body and run.steady, in each of the steps 0 to 4."""
    steps, start = [], BodyForces.start

    def counted(sums):
        steps.append(sums.links.fluid.steps)
        return start(sums)

    monkeypatch.setattr(BodyForces, "start", counted)
    given = tables({"name": "body_forces", "every": 1, "body": ["b"]}, steps=4)
    given["body"].append(given["body"][0] | {"label": "b", "shape": BESIDE})
    given["output"][0] |= {"every": 1, "body": ["a"]}
    given["run"] |= {"steady": {"of": "body_forces", "every": 2, "tolerance": 1e-9}}
    run(parse_case(given, "plate.toml"), world(), tmp_path)
    assert steps == [0, 1, 2, 3, 4]


def test_a_restart_in_the_step_before_a_row(tmp_path):
    """The same rows as those of one run."""
    given = tables({"name": "checkpoint", "every": 49}, steps=100)
    given["run"] |= {"steady": {"of": "body_forces", "every": 10, "tolerance": 1e-9}}
    run(parse_case(given, "plate.toml"), world(), tmp_path / "whole")
    half = given | {"run": given["run"] | {"steps": 49}}
    run(parse_case(half, "plate.toml"), world(), tmp_path / "parts")
    run(parse_case(given, "plate.toml"), world(), tmp_path / "parts", restart="auto")
    whole, parts = (read_table(tmp_path / name / "forces_a.csv") for name in ("whole", "parts"))
    kept = np.isin(parts["step"], whole["step"])
    assert (~kept).sum() == 1  # the last row of the first part
    for name in ("force_x", "time", "c_d +x"):
        np.testing.assert_array_equal(parts[name][kept], whole[name])
    steady = [(tmp_path / name / "steady.csv").read_text() for name in ("whole", "parts")]
    assert steady[0] == steady[1]


def test_a_steady_flow_ends_with_means_of_two_steps(tmp_path):
    """At a step that is no multiple of `every`: the last row, and the only file of the surface."""
    given = tables({"name": "surface", "every": 1000, "label": "wall"}, steps=100)
    given["output"][0]["every"] = 40
    given["run"] |= {"steady": {"every": 5, "tolerance": 0.1}}
    run(parse_case(given, "plate.toml"), world(), tmp_path)
    found = read_table(tmp_path / "forces_a.csv")
    last = int(found["step"][-1])
    assert last < 100
    assert last % 40
    assert found["time"][-1] == last
    assert integral(read(tmp_path, last))[0] == pytest.approx(found["force_x"][-1], rel=1e-4)


def test_a_field_that_is_set_leaves_no_force_of_the_flow_before(tmp_path):
    """In steps before a row and of a row, by the function of a run and between two runs."""
    given = tables({"name": "surface", "every": 10, "label": "wall"}, steps=20)
    given["output"][0]["every"] = 1
    given["run"] |= {"steady": {"of": "body_forces", "every": 10, "tolerance": 1e-9}}
    after = {}

    def change(sim):
        if sim.step in (9, 14):
            sim.set_field("u", -sim.field("u"))
        after[sim.step] = sim.forces()["a"][0]

    with Simulation(parse_case(given, "plate.toml"), world(), directory=tmp_path) as sim:
        sim.run(9, call=change)
        sim.run(1, call=change)
        sim.run(7, call=change)
    rows = dict(
        zip(*(read_table(tmp_path / "forces_a.csv")[n] for n in ("step", "force_x")), strict=True)
    )
    mean = {step: (after[step - 1] + after[step]) / 2 for step in (10, 15, 16)}
    assert {step: rows[step] for step in mean} == pytest.approx(mean, rel=1e-6)
    assert integral(read(tmp_path, 10))[0] == pytest.approx(mean[10], rel=1e-4)
    steady = read_table(tmp_path / "steady.csv")["c_d_a"]
    assert steady[-1] == pytest.approx(2 * mean[10] / (U**2 * WIDTH), rel=1e-4)


@pytest.mark.parametrize("piece", [1, 3, 7])
def test_a_run_in_pieces_has_the_same_rows(tmp_path, piece):
    given = tables(steps=23)
    given["output"][0]["every"] = 5
    run(parse_case(given, "plate.toml"), world(), tmp_path / "whole")
    with Simulation(parse_case(given, "plate.toml"), world(), directory=tmp_path / "parts") as sim:
        while sim.step < 23:
            sim.run(min(piece, 23 - sim.step))
    texts = [(tmp_path / name / "forces_a.csv").read_text() for name in ("whole", "parts")]
    assert texts[0] == texts[1]


def test_heat_of_a_body_that_starts_at_once(tmp_path):
    """In even steps alone its rate is wrong by more than itself."""
    hot = {"name": "value", "value": 1.0}
    given = tables({"name": "nusselt", "every": 10, "axis": "x", "length": WIDTH, "difference": 1})
    given["body"][0]["scalar"] = {"T": hot}
    given["scalar"] = [{"label": "T", "diffusivity": 0.01, "initial": {"value": 0.0}}]
    heat = []
    with Simulation(parse_case(given, "plate.toml"), world(), directory=tmp_path) as sim:
        for _ in range(STEPS + 1):
            heat.append(np.nansum(sim.field("T"), dtype=float))
            sim.run(1)
    found = read_table(tmp_path / "nusselt.csv")
    at = found["step"].astype(int)
    late = at[(at > STEPS // 2) & (at < STEPS) & (at % 10 == 0)]
    rates, change = found["rate_a"][np.isin(at, late)], np.diff(heat)
    np.testing.assert_allclose(rates, (change[late - 1] + change[late]) / 2, rtol=1e-3)
    assert np.abs(change[late] - rates).max() > np.abs(rates).max()
