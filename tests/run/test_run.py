"""The run from the case to its files: how it goes on, and all the ways in which it ends."""

import os
import signal

import numpy as np
import pytest
from support.coupled import two_fluids
from support.outputs_cases import damage
from support.runs import STEADY, flow, monitor, run_case, signal_at, state, summary

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CommandError, FileSystemError, NonFiniteError, StoppedEarly
from mpilbm.solver.solver import Solver
from mpilbm.solver.step_times import EVERY, StepTimes
from mpilbm.storage.csv_log import Rows
from mpilbm.storage.directory import existing


def test_a_run_leaves_all_its_files(tmp_path):
    assert run_case(flow(), tmp_path) == "done"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoint_000000020.h5",
        "checkpoint_000000030.h5",
        "monitor.csv",
        "monitor.csv.digests",
        "outputs.json",
        "snapshot.vtkhdf.series",
        "snapshot_000000015.vtkhdf",
        "snapshot_000000030.vtkhdf",
        "summary.json",
    ]
    found = summary(tmp_path)
    assert (found["status"], found["exit_code"], found["steps"]) == ("done", 0, 30)
    assert found["glups"] > 0
    assert 0 < found["output_share"] < 1
    with pytest.raises(CommandError, match="the files of an earlier run"):
        run_case(flow(), tmp_path)
    assert run_case(flow(steps=EVERY, outputs=[]), tmp_path, overwrite=True) == "done"
    assert [path.name for path in tmp_path.iterdir()] == ["summary.json"]
    assert set(summary(tmp_path)["split"]) == {"edge", "exchange", "bulk", "host"}


def test_a_restart_is_the_uninterrupted_run_bit_for_bit(tmp_path, monkeypatch):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run_case(flow(), whole)
    signal_at(monkeypatch, 13)
    with pytest.raises(StoppedEarly, match="SIGUSR1") as error:
        run_case(flow(), parts)
    assert error.value.exit_code == 4
    stopped = summary(parts)
    assert (stopped["status"], stopped["exit_code"]) == ("stopped", 4)
    newest, _ = existing(parts)[-1]
    assert newest == stopped["steps"] >= 13
    assert run_case(flow(), parts, restart="auto") == "done"
    assert summary(parts)["first_step"] == newest
    assert monitor(parts) == monitor(whole)
    assert np.array_equal(state(parts), state(whole))


def test_a_device_that_fails_is_reported(tmp_path, monkeypatch):
    def fail(*arguments):
        monkeypatch.setattr(StepTimes, "_read", fail)  # its times cannot be read either
        raise RuntimeError("the device is lost")

    monkeypatch.setattr(Solver, "advance", fail)
    with pytest.raises(RuntimeError):
        run_case(flow(), tmp_path)
    found = summary(tmp_path)
    assert (found["status"], found["reason"]) == ("failed", "the device is lost")


def test_a_second_ctrl_c_is_in_the_summary_with_its_code(tmp_path, monkeypatch):
    def interrupt(solver):
        raise KeyboardInterrupt

    monkeypatch.setattr(Solver, "step", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_case(flow(), tmp_path)
    assert (summary(tmp_path)["status"], summary(tmp_path)["exit_code"]) == ("interrupted", 130)


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM, signal.SIGINT])
def test_a_signal_leaves_a_checkpoint_though_none_is_configured(tmp_path, monkeypatch, number):
    handler = signal.getsignal(number)
    signal_at(monkeypatch, 3, number)
    with pytest.raises(StoppedEarly, match=number.name):
        run_case(flow(steps=10**9, outputs=[]), tmp_path)
    assert len(existing(tmp_path)) == 1
    assert signal.getsignal(number) == handler


def test_the_wall_time_limit_leaves_a_checkpoint(tmp_path):
    with pytest.raises(StoppedEarly, match="wall-time limit of 2 s"):
        run_case(flow(steps=10**9, outputs=[], walltime=2), tmp_path)
    assert len(existing(tmp_path)) == 1


def test_a_restart_behind_the_last_step_does_nothing(tmp_path, capsys):
    run_case(flow(), tmp_path)
    before = monitor(tmp_path)
    assert run_case(flow(steps=20), tmp_path, restart="auto") == "done"
    assert monitor(tmp_path) == before
    printed = capsys.readouterr().err
    assert (
        "continuing from step 30\nnothing is left to do: run.steps = 20 counts from step 0"
        in printed
    )


@pytest.mark.parametrize("how", ["cut short", "bit"])
def test_a_damaged_checkpoint_is_reported_and_the_previous_one_used(tmp_path, capsys, how):
    run_case(flow(), tmp_path)
    whole, (_, newest) = state(tmp_path), existing(tmp_path)[-1]
    damage(newest, how)
    assert run_case(flow(), tmp_path, restart="auto") == "done"
    printed = capsys.readouterr().err
    assert f"warning: {newest}" in printed
    assert "; trying the previous one" in printed
    assert "continuing from step 20" in printed
    assert "is later" not in printed
    assert np.array_equal(state(tmp_path), whole)


def test_a_restart_from_an_older_checkpoint_reports_the_later_ones(tmp_path, capsys):
    run_case(flow(), tmp_path)
    (_, older), (_, newest) = existing(tmp_path)
    run_case(flow(25), tmp_path, restart=older)
    assert f"{newest} is later than this start" in capsys.readouterr().err


def test_auto_restart_without_a_checkpoint_starts_at_step_0(tmp_path, capsys):
    assert run_case(flow(steps=5), tmp_path / "new", restart="auto") == "done"
    assert "no checkpoint yet" in capsys.readouterr().err


def test_without_outputs_the_flow_is_still_looked_at(tmp_path):
    case = flow(5000, [], {"u": ["0.3*sin(2*pi*y/ny)", "0.3*sin(2*pi*x/nx)"]}, 1e-5)
    with pytest.raises(NonFiniteError, match="noticed at step 1000"):
        run_case(case, tmp_path)


def test_an_unstable_run_of_two_fluids_names_their_coupling(tmp_path):
    coupling = {"name": "shan_chen", "G": 5, "psi": "rho"}
    case = parse_case(two_fluids("D2Q9", coupling=coupling, run={"steps": 500}), "a.toml")
    with pytest.raises(NonFiniteError, match="raise the viscosity, weaken the coupling, or"):
        run_case(case, tmp_path)


def test_a_steady_flow_ends_the_run_with_all_outputs(tmp_path):
    case = flow(100000, [{"name": "snapshot", "every": 10**6}], steady=STEADY)
    assert run_case(case, tmp_path) == "done"
    found = summary(tmp_path)
    assert found["reason"].startswith("steady: relative change")
    assert 0 < found["steps"] < 100000
    assert found["steps"] % 20 == 0
    assert (tmp_path / f"snapshot_{found['steps']:09d}.vtkhdf").exists()


def test_a_full_disk_ends_the_run(tmp_path, monkeypatch):
    def pwrite(number, data, offset):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "pwrite", pwrite)
    with pytest.raises(FileSystemError):
        run_case(flow(), tmp_path)
    assert summary(tmp_path)["exit_code"] == 5
    assert "No space left" in summary(tmp_path)["reason"]


def test_a_disk_without_room_for_a_row_ends_the_run(tmp_path, monkeypatch):
    def full(rows, *arguments):
        original(rows, *arguments)
        rows.file = open("/dev/full", rows.file.mode, buffering=0)  # noqa: SIM115 (as Rows)

    original = Rows.__init__
    monkeypatch.setattr(Rows, "__init__", full)
    with pytest.raises(FileSystemError, match=r"monitor.csv: No space left.*free some space"):
        run_case(flow(10, [{"name": "monitor", "every": 5}]), tmp_path)
    assert summary(tmp_path)["exit_code"] == 5
