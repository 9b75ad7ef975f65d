"""The residual of run.steady: its file, the progress line, and the reason at the end."""

import csv

import pytest
from support.outputs_cases import make_case
from support.runs import run_case

import mpilbm

SHEAR = {"u": ["0.05*sin(2*pi*y/ny)", 0]}


def flow(steps, tolerance=1e-9, **more):
    steady = {"every": 10, "tolerance": tolerance}
    return make_case((5, 8), initial=SHEAR, run={"steps": steps, "steady": steady}, **more)


def rows(folder):
    return list(csv.reader((folder / "steady.csv").open()))


def test_residuals_are_stored_and_reported_at_the_end(tmp_path, capfd):
    run_case(flow(45), tmp_path)
    header, *values = rows(tmp_path)
    assert header == ["step", "time", "residual"]
    assert [row[0] for row in values] == ["10", "20", "30", "40"]
    last = float(values[-1][2])
    assert 0 < last < 1
    out = "".join(capfd.readouterr())
    assert f"done, but not steady: residual {last:.3g} (steady < 1e-09)" in out
    assert f"residual {last:.3g}" in out.partition("done")[0]  # in the line of the progress


def test_a_steady_run_ends_with_its_residual(tmp_path, capfd):
    run_case(flow(4000, tolerance=0.9), tmp_path)
    (last,) = rows(tmp_path)[-1:]
    out = "".join(capfd.readouterr())
    assert f"steady: relative change {float(last[2]):.3g} < 0.9 in 10 steps" in out
    assert "not steady" not in out


def test_a_flow_is_not_steady_during_a_ramp(tmp_path, capfd):
    """However little it changes."""
    force = {"name": "guo", "value": [1e-6, 0], "ramp": 35}
    run_case(flow(100, tolerance=0.9, force=force), tmp_path / "long")
    assert [row[0] for row in rows(tmp_path / "long")[1:]] == ["10", "20", "30", "40"]
    assert "steady: relative change" in "".join(capfd.readouterr())
    run_case(flow(30, tolerance=0.9, force=force), tmp_path / "short")
    out = "".join(capfd.readouterr())
    assert "done, but not steady: residual" in out
    assert "(steady < 0.9), but a ramp ends at step 35" in out


def test_a_restart_keeps_the_residuals_up_to_its_step(tmp_path):
    checkpoint = {"output": [{"name": "checkpoint", "every": 20}]}
    case, longer = (flow(steps, **checkpoint) for steps in (40, 60))
    run_case(case, tmp_path)
    before = rows(tmp_path)
    run_case(longer, tmp_path, restart=tmp_path / "checkpoint_000000020.h5")
    after = rows(tmp_path)
    kept = [row for row in before[1:] if int(row[0]) <= 20]
    assert after[1 : 1 + len(kept)] == kept
    steps = [int(row[0]) for row in after[1:]]
    assert steps == sorted(set(steps))
    assert steps[-1] == 60


def test_times_are_also_in_seconds_and_no_folder_means_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    units = {"cell": 0.01, "step": 0.5, "density": 1000}
    case = flow(30, units=units)
    run_case(case, tmp_path / "out")
    header, *values = rows(tmp_path / "out")
    assert header[-1] == "time_s"
    assert float(values[-1][3]) == pytest.approx(15)
    with mpilbm.Simulation(case) as sim:
        sim.run(20)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
