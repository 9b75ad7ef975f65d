"""Means and their standard errors by block averages, in a run too."""

import json
from math import isnan, sqrt

import numpy as np
import pytest
from support.body_forces import flow
from support.runs import run_case

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.outputs.core.averages import LEAST, average
from mpilbm.parallel.ranks import Serial
from mpilbm.run.steady import ErrorOfMean
from mpilbm.view.results.tables import read_table

SPEED = [0.02, 0]


def correlated(rng, count: int, memory: float) -> np.ndarray:
    """Numbers x' = a x + noise, variance 1; the error of their mean is sqrt((1+a)/(1-a)/n)."""
    noise, found = rng.normal(size=count) * sqrt(1 - memory**2), [rng.normal()]
    for each in noise[1:]:
        found.append(memory * found[-1] + each)
    return np.array(found)


@pytest.mark.parametrize("memory", [0.0, 0.9])
def test_the_error_is_that_of_correlated_numbers(memory):
    """In the mean over 200 series; each is within a factor of 3."""
    rng, n = np.random.default_rng(3), 2000
    exact = sqrt((1 + memory) / (1 - memory) / n)
    series = [correlated(rng, n, memory) for _ in range(200)]
    errors = np.array([average(each).error for each in series])
    assert 0.9 < errors.mean() / exact < 1.5
    assert errors.min() > exact / 3
    assert errors.max() < 3 * exact
    assert np.std([each.mean() for each in series]) == pytest.approx(exact, rel=0.15)


def test_a_drift_has_a_large_error_and_few_numbers_none():
    drift = average(np.linspace(0, 1, 64))
    assert drift.mean == pytest.approx(0.5)
    assert drift.error > 0.1
    assert isnan(average([1.0] * (LEAST - 1)).error)
    assert average([1.0] * LEAST).error == 0
    assert average([2.0, 4.0]).record == {"mean": 3.0, "error": None, "samples": 2}


def test_a_number_that_oscillates_ends_a_run_by_the_error_of_its_mean():
    """1 + 0.2 sin: its change never falls below 1 %, the error of its mean does."""
    steps = iter(range(10**6))
    residual = ErrorOfMean(lambda: 1 + 0.2 * np.sin(0.7 * next(steps)), Serial())
    found = [residual() for _ in range(2000)]
    assert found[: 2 * LEAST - 2] == [None] * (2 * LEAST - 2)
    first = next(k for k, each in enumerate(found) if each is not None and each < 0.01)
    assert 100 < first < 1000
    half = [1 + 0.2 * np.sin(0.7 * k) for k in range(first + 1)][(first + 1) // 2 :]
    assert np.mean(half) == pytest.approx(1, abs=0.01)


def moved(steps, **run) -> dict:
    """Two bodies in a flow that a force drives towards a steady state."""
    output = {"name": "body_forces", "every": 2, "velocity": SPEED, "length": 3.5}
    tables = flow("D2Q9", output=[output, {"name": "checkpoint", "every": 60}])
    tables["fluid"] = {"viscosity": 0.3}
    return tables | {"run": {"steps": steps, **run}, "backend": {"name": "cpu"}}


def test_means_are_those_of_the_rows_and_in_the_last_lines(tmp_path, capfd):
    run_case(parse_case(moved(60), "bodies.toml"), tmp_path)
    run_case(parse_case(moved(100), "bodies.toml"), tmp_path, restart="auto")
    found = json.loads((tmp_path / "summary.json").read_text())["coefficients"]["ball"]
    c_d = read_table(tmp_path / "forces_ball.csv")["c_d +x"]
    expected = average(c_d[len(c_d) // 2 :])
    assert found["c_d +x"] == expected.record
    assert found["length"] == 3.5
    assert expected.samples == 26
    out = "".join(capfd.readouterr())
    assert f"ball: c_d +x = {expected}, c_l +y = " in out
    assert "(mean of the last 26 rows; reference length 3.5 cells)" in out


def test_a_run_ends_when_the_drag_is_known(tmp_path, capfd):
    steady = {"every": 2, "tolerance": 0.01, "of": "body_forces", "by": "error"}
    run_case(parse_case(moved(3000, steady=steady), "bodies.toml"), tmp_path)
    c_d = read_table(tmp_path / "forces_block.csv")["c_d +x"]
    assert 40 < len(c_d) < 1000
    assert average(c_d[len(c_d) // 2 :]).relative < 0.011
    out = "".join(capfd.readouterr())
    assert "relative standard error of the mean of body_forces" in out


def test_errors_of_what_has_no_mean_are_refused():
    with pytest.raises(CaseError, match='found of = "velocity"'):
        parse_case(moved(10, steady={"every": 2, "tolerance": 0.01, "by": "error"}), "b.toml")
    tables = moved(10, steady={"every": 2, "tolerance": 0.01, "of": "body_forces"})
    tables["output"] = [{"name": "body_forces", "every": 2}]
    with pytest.raises(CaseError, match=r"velocity: missing; run\.steady\.of"):
        parse_case(tables, "b.toml")
