"""Means and their standard errors by block averages, in a run too."""

import json
from array import array
from math import isnan, sqrt

import numpy as np
import pytest
from support.body_forces import flow
from support.findings import lines
from support.runs import run_case

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.outputs import Watched
from mpilbm.outputs.core.averages import LEAST, average, last_half
from mpilbm.parallel.ranks import Serial
from mpilbm.run.watched import Numbers, change, error
from mpilbm.view.results.tables import read_table

SPEED = [0.02, 0]


def correlated(rng, count: int, memory: float) -> np.ndarray:
    """Numbers x' = a x + noise, variance 1; the error of their mean is sqrt((1+a)/(1-a)/n)."""
    noise, found = rng.normal(size=count) * sqrt(1 - memory**2), [rng.normal()]
    for each in noise[1:]:
        found.append(memory * found[-1] + each)
    return np.array(found)


@pytest.mark.parametrize(
    ("count", "memory", "within"),
    [(64, 0.0, 0.95), (64, 0.9, 0.9), (400, 0.97, 0.9), (400, 0.99, 0.8), (2000, 0.9, 0.95)],
)
def test_the_error_is_that_of_correlated_numbers(count, memory, within):
    """Also if the series is only 2 (400, 0.99) to 6 times (400, 0.97) as long as its memory.

    `within`: the share of the means that are within two errors, of normal numbers 95 %.
    """
    rng = np.random.default_rng(3)
    series = [average(correlated(rng, count, memory)) for _ in range(300)]
    exact = np.std([each.mean for each in series])
    assert 0.9 < np.mean([each.error for each in series]) / exact < 2.5
    assert np.mean([abs(each.mean) < 2 * each.error for each in series]) > within


def test_a_drift_has_a_large_error_and_few_numbers_none():
    drift = average(np.linspace(0, 1, 64))
    assert drift.mean == pytest.approx(0.5)
    assert drift.error > 0.5
    assert isnan(average([1.0] * (LEAST - 1)).error)
    assert average([1.0] * LEAST).error == 0
    assert average([2.0, 4.0]).record == {"mean": 3.0, "error": None, "samples": 2}
    assert average([]).record == {"mean": None, "error": None, "samples": 0}
    assert average([1.0, np.inf]).record["mean"] is None


def test_an_approach_to_the_mean_is_within_the_error():
    """exp(-t/T), with T from a tenth of the window to the window."""
    t = np.linspace(0, 1, 200)
    for T in (0.1, 0.2, 0.5, 1):
        found = average(1 + np.exp(-t / T))
        assert abs(found.mean - 1) < 2 * found.error


def test_numbers_count_for_the_time_that_they_stand_for():
    """A restart may write rows more rarely; the last row may be at any step."""
    times = [*range(0, 1000, 10), *range(1000, 11000, 100), 10950]
    values = np.where(np.array(times) < 1000, 5.0, 1.0)
    half = last_half(times)
    assert times[half][0] == 5500
    assert average(values[half], times[half]).mean == 1
    whole = average(values, times)
    assert whole.mean == pytest.approx((5 * 1000 + 9960) / 10960)  # a number for the time before it
    even = np.random.default_rng(1).normal(size=100)
    assert average(even, range(0, 1000, 10)) == pytest.approx(average(even))


def test_a_number_that_oscillates_ends_a_run_by_the_error_of_its_mean():
    """1 + 0.2 sin: its change never falls below 1 %, the error of its mean does."""
    steps = iter(range(10**6))
    numbers = Watched(("k",), lambda: [1 + 0.2 * np.sin(0.7 * next(steps))])
    residual = Numbers(numbers, error, Serial())
    found = [residual(step) for step in range(2000)]
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
    run_case(parse_case(moved(140), "bodies.toml"), tmp_path, restart="auto")
    found = json.loads((tmp_path / "summary.json").read_text())["coefficients"]["ball"]
    c_d = read_table(tmp_path / "forces_ball.csv")["c_d +x"]
    expected = average(c_d[len(c_d) // 2 :], range(36))
    assert found["c_d +x"] == expected.record
    assert found["length"] == 3.5
    assert expected.samples == 36
    out = "".join(capfd.readouterr())
    assert f"ball: c_d +x = {expected}, c_l +y = " in out
    assert "(mean of the last 36 rows; reference length 3.5 cells)" in out


def test_a_run_ends_when_the_drag_is_known(tmp_path, capfd):
    steady = {"every": 2, "tolerance": 0.01, "of": "body_forces", "by": "error"}
    run_case(parse_case(moved(3000, steady=steady), "bodies.toml"), tmp_path)
    steady = read_table(tmp_path / "steady.csv")
    assert list(steady) == ["step", "time", "residual", "c_d_block", "c_d_ball"]
    assert 2 * LEAST <= steady.rows < 1400
    errors = []
    for label in ("ball", "block"):
        c_d = read_table(tmp_path / f"forces_{label}.csv")["c_d +x"]
        assert (c_d == steady[f"c_d_{label}"]).all()
        errors.append(average(c_d[len(c_d) // 2 :]).relative)
    assert steady["residual"][-1] == max(errors) < 0.01 <= steady["residual"][-2]
    out = "".join(capfd.readouterr())
    assert "relative standard error of the mean of body_forces" in out


@pytest.mark.parametrize("by", ["error", "change"])
def test_a_restart_continues_the_series_and_ends_at_the_same_step(tmp_path, by):
    steady = {"every": 2, "tolerance": {"error": 0.01, "change": 1e-3}[by], "of": "body_forces"}
    run_case(parse_case(moved(3000, steady=steady | {"by": by}), "b.toml"), tmp_path / "whole")
    end = read_table(tmp_path / "whole/steady.csv")["step"][-1]
    assert 60 < end < 3000
    run_case(parse_case(moved(60, steady=steady | {"by": by}), "b.toml"), tmp_path / "parts")
    again = parse_case(moved(3000, steady=steady | {"by": by}), "b.toml")
    run_case(again, tmp_path / "parts", restart="auto")
    texts = [(tmp_path / name / "steady.csv").read_text() for name in ("whole", "parts")]
    assert texts[0] == texts[1]


def test_the_largest_change_counts():
    one, two = array("d", [1.0, 1.0]), array("d", [2.0, 4.0])
    assert isnan(change([one[:1], two[:1]]))
    assert change([one, two]) == 0.5
    assert isnan(change([array("d", [1.0, 0.0]), two]))


def test_a_run_that_is_too_short_for_an_error_says_so(tmp_path, capfd):
    steady = {"every": 2, "tolerance": 0.01, "of": "body_forces", "by": "error"}
    case = parse_case(moved(60, steady=steady), "bodies.toml")
    (line,) = (line for line in lines(case) if "run.steady.every" in line)
    assert "compares 31 times" in line and "known after 64 times only" in line  # noqa: PT018
    longer = parse_case(moved(126, steady=steady), "bodies.toml")
    assert not any("run.steady.every" in line for line in lines(longer))
    run_case(case, tmp_path)
    out = "".join(capfd.readouterr())
    assert (
        "but not steady: the error of the mean of body_forces is not known, which requires 64"
        in out
    )


def test_errors_of_what_has_no_mean_are_refused():
    with pytest.raises(CaseError, match='found of = "velocity"'):
        parse_case(moved(10, steady={"every": 2, "tolerance": 0.01, "by": "error"}), "b.toml")
    tables = moved(10, steady={"every": 2, "tolerance": 0.01, "of": "body_forces"})
    tables["output"] = [{"name": "body_forces", "every": 2}]
    with pytest.raises(CaseError, match=r"velocity: missing; run\.steady\.of"):
        parse_case(tables, "b.toml")
