"""Snapshots that are written while the steps go on: what is on the disk, when, and what fails."""

import errno
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import h5py
import numpy as np
import pytest
from support.gate import Gate, at_step
from support.outputs_cases import make_case, make_context
from support.runs import STEADY, flow, run_case, signal_at, summary

from mpilbm.core.errors import FileSystemError, NonFiniteError, StoppedEarly
from mpilbm.outputs import number_of_cells
from mpilbm.outputs.snapshot import Snapshot
from mpilbm.storage import planes
from mpilbm.storage.background import GUESSED_BYTES_PER_SECOND, MOST_FILES
from mpilbm.storage.directory import existing

SNAPSHOTS = [{"name": "snapshot", "every": 5, "begin": 0}]
BOTH = [*SNAPSHOTS, {"name": "checkpoint", "every": 10}]


def files(directory, ending="vtkhdf"):
    return sorted(path.name for path in directory.iterdir() if path.name.endswith(ending))


@pytest.fixture
def gate(monkeypatch):
    return Gate(monkeypatch)


def test_it_is_the_file_that_is_written_while_the_run_waits(tmp_path, monkeypatch):
    monkeypatch.setattr(planes, "BLOCK_BYTES", 1)
    ball = {"shape": {"name": "sphere", "centre": [3, 3], "radius": 1.2}}
    body = [ball | {"label": "ball", "boundary": {"name": "bounce_back"}}]
    for background in (True, False):
        fields = ["u", "vorticity", "rho", "q_criterion"]
        outputs = [SNAPSHOTS[0] | {"background": background, "fields": fields}]
        case = make_case(
            (7, 6), outputs, body=body, run={"steps": 12}, initial={"u": ["0.05*sin(2*pi*y/ny)", 0]}
        )
        run_case(case, tmp_path / str(background))
    for name in files(tmp_path / "False"):
        with h5py.File(tmp_path / "True" / name) as f, h5py.File(tmp_path / "False" / name) as g:
            found, expected = f["VTKHDF/CellData"], g["VTKHDF/CellData"]
            assert list(found) == list(expected) == sorted([*fields, "solid"])
            assert all(np.array_equal(found[field], expected[field]) for field in expected)
    assert len(files(tmp_path / "False")) == 4


def test_steps_go_on_and_the_file_gets_its_name_when_it_is_whole(tmp_path, monkeypatch, gate):
    seen = []

    def look(solver):
        seen.append((files(tmp_path), files(tmp_path, "partial")))
        gate.open.set()

    at_step(monkeypatch, 9, look)
    run_case(flow(10, SNAPSHOTS), tmp_path)
    names = [f"snapshot_{step:09d}.vtkhdf" for step in (0, 5, 10)]
    assert seen == [([], [f"{name}.partial" for name in names[:2]])]
    assert files(tmp_path) == names
    assert files(tmp_path, "partial") == []
    assert 0 < summary(tmp_path)["output_share"] < 1


def case_bytes(context):
    return 4 * 4 * number_of_cells(context.case)  # rho and three components of u


def test_not_more_than_two_files_are_on_their_way(tmp_path, gate):
    context = make_context(tmp_path)
    writer = Snapshot(every=1).open(context)
    background, guessed = context.background, 2 * case_bytes(context) / GUESSED_BYTES_PER_SECOND
    for step in range(MOST_FILES):
        writer.write(step)
    assert background.left >= guessed
    threading.Timer(0.3, gate.open.set).start()
    writer.write(MOST_FILES)
    assert gate.open.is_set()
    assert len(files(tmp_path)) >= 1
    background.settle(0)
    assert background.left == 0
    assert len(files(tmp_path)) == MOST_FILES + 1
    gate.open.clear()
    writer.write(MOST_FILES + 1)
    assert background.left > 0.2  # as long as the first has taken
    gate.open.set()
    background.settle(0)


def test_a_disk_that_fills_up_behind_the_steps_ends_the_run(tmp_path, monkeypatch, gate):
    gate.open.set()
    gate.path = "snapshot_000000015"
    at_step(monkeypatch, 14, lambda solver: setattr(gate, "error", errno.ENOSPC))
    with pytest.raises(FileSystemError, match=r"0015.vtkhdf: No space left.*free some") as error:
        run_case(flow(10**6, BOTH), tmp_path)
    assert error.value.exit_code == summary(tmp_path)["exit_code"] == 5
    assert "No space left" in summary(tmp_path)["reason"]
    assert summary(tmp_path)["steps"] <= 20
    assert files(tmp_path) == [f"snapshot_{step:09d}.vtkhdf" for step in (0, 5, 10)]
    assert [step for step, _ in existing(tmp_path)] == [10]
    assert files(tmp_path, "partial") == []


def test_the_summary_holds_the_final_status_even_if_the_disk_is_full(tmp_path, monkeypatch):
    original = Path.write_text

    def write_text(path, text):
        if '"status": "running"' not in text:
            path.touch()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return original(path, text)

    monkeypatch.setattr(Path, "write_text", write_text)
    run_case(flow(3, []), tmp_path)
    assert (summary(tmp_path)["status"], summary(tmp_path)["steps"]) == ("done", 3)
    assert files(tmp_path, "partial") == []


def test_a_fault_in_a_thread_is_raised_as_it_is(tmp_path, monkeypatch):
    def shaped(*arguments):
        raise ZeroDivisionError

    context = make_context(tmp_path)
    writer = Snapshot(every=1).open(context)
    writer.write(1)
    monkeypatch.setattr(type(writer), "_copy", shaped)
    writer.write(2)
    with pytest.raises(ZeroDivisionError):
        context.background.settle(0)
    assert files(tmp_path) == ["snapshot_000000001.vtkhdf"]
    assert files(tmp_path, "partial") == []


def test_before_a_checkpoint_the_snapshots_are_whole(tmp_path, monkeypatch, gate):
    rename, order = os.replace, []

    def replace(source, target):
        order.append(target.name)
        rename(source, target)

    monkeypatch.setattr(os, "replace", replace)
    threading.Timer(0.3, gate.open.set).start()
    signal_at(monkeypatch, 7)
    with pytest.raises(StoppedEarly):
        run_case(flow(1000, SNAPSHOTS), tmp_path)
    ends = [name for name in order if name.startswith(("snapshot_", "checkpoint"))]
    assert ends[-1].startswith("checkpoint")
    assert len(ends) == len(files(tmp_path)) + 1


def test_the_last_snapshots_before_a_blow_up_are_kept(tmp_path, monkeypatch, gate):
    def blow_up(solver):
        bad = solver.read_state("", 4, 5)
        bad[0, 1, 0, 2] = np.nan
        solver.write_state("", 4, bad, 7)
        threading.Timer(0.2, gate.open.set).start()

    at_step(monkeypatch, 7, blow_up)
    with pytest.raises(NonFiniteError, match="step 8"):
        run_case(flow(100, [*SNAPSHOTS, {"name": "monitor", "every": 8}]), tmp_path)
    assert files(tmp_path)[:2] == ["snapshot_000000000.vtkhdf", "snapshot_000000005.vtkhdf"]


def test_a_fault_of_the_program_leaves_no_half_files_and_waits_for_nobody(
    tmp_path, monkeypatch, gate
):
    def fail(solver):
        raise ZeroDivisionError

    at_step(monkeypatch, 7, fail)
    with pytest.raises(ZeroDivisionError):
        run_case(flow(100, SNAPSHOTS), tmp_path)
    gate.open.set()
    assert files(tmp_path) == files(tmp_path, "partial") == []
    assert summary(tmp_path)["exit_code"] == 1


def test_a_steady_end_waits_for_its_snapshot(tmp_path):
    run_case(flow(100000, [{"name": "snapshot", "every": 10**6}], steady=STEADY), tmp_path)
    assert files(tmp_path)[-1] == f"snapshot_{summary(tmp_path)['steps']:09d}.vtkhdf"


def test_what_snapshots_cost_is_measured(tmp_path):
    tool = Path(__file__).parents[2] / "tools/snapshot_loss"
    words = ["--size", "24", "--every", "10", "--backend", "cpu", "--json", tmp_path / "loss.json"]
    done = subprocess.run(
        [sys.executable, tool, tmp_path / "out", *words],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "loss.json").read_text())
    assert found["as_if_waited_for"]
    ratio = found["seconds_with"] / found["seconds_without"]
    assert found["loss"] == pytest.approx(ratio - 1)
    assert not (tmp_path / "out").exists()
