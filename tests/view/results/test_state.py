"""The state of a run is the same in `open_run`, `watch`, `report` and `plot`."""

import json
import os
import shutil
from pathlib import Path

import h5py
import pytest
from click.testing import CliRunner
from support.outputs_cases import make_case
from support.runs import run_case

from mpilbm.cli import cli
from mpilbm.storage.directory import owned
from mpilbm.storage.lock import FolderLock
from mpilbm.view.results import open_run

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
OUTPUTS = [
    {"name": "probe", "every": 3, "points": [[1, 2]], "fields": ["rho"]},
    {"name": "probe", "every": 4, "points": [[1, 2]], "format": "csv", "label": "t"},
    {"name": "checkpoint", "every": 7, "keep": 3},
]
STARTED = {"status": "running", "steps": 0, "last_step": 60000, "wall_seconds": 0.1}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("run")
    run_case(make_case((5, 8), OUTPUTS, run={"steps": 20}), path)
    return path


@pytest.fixture
def folder(finished, tmp_path):
    return Path(shutil.copytree(finished, tmp_path / "run"))


def alter(folder, changed):
    path = folder / "summary.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))


def shown(command, folder, *options):
    result = CliRunner().invoke(cli, [command, str(folder), *options])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(
    ("changed", "sentence", "level"),
    [
        ({}, "done at step 20", "good"),
        (STARTED, "killed at step 20 of 60,000", "poor"),
        ({"status": "stopped", "steps": 15}, "stopped at step 15 of 20", "fair"),
        ({"status": "unstable", "steps": 12}, "unstable at step 12 of 20", "poor"),
        ({"status": "failed", "steps": "many"}, "failed at step 20", "poor"),
    ],
)
def test_all_commands_say_the_same(folder, changed, sentence, level):
    alter(folder, changed)
    state = open_run(folder).state
    assert (state.sentence, state.level) == (sentence, level)
    assert f"{state.status}: step {state.step}/" in shown("watch", folder, "--once")
    incomplete = f"the run is not complete: {sentence}"
    assert (incomplete in shown("plot", folder)) == (state.status != "done")
    shown("report", folder)
    badge = "done" if state.status == "done" else sentence
    assert f'<span class="status {level}">{badge}</span>' in (folder / "report.html").read_text()


def test_a_run_that_holds_the_folder_is_running(folder):
    alter(folder, STARTED)
    lock = FolderLock(folder)
    lock.take()
    assert open_run(folder).state.sentence == "running at step 20 of 60,000"
    lock.remove()
    lock.close()


def test_a_run_of_another_host_may_have_been_killed(folder):
    alter(folder, STARTED)
    (folder / "mpilbm.lock").write_text(json.dumps({"pid": 1, "host": "node17"}))
    state = open_run(folder).state
    assert state.sentence == "running on node17 at step 20 of 60,000, if it has not been killed"
    assert state.level == "fair"


def test_files_of_the_previous_run_are_not_counted_after_a_restart(folder):
    """The restart at step 7 has written a row of step 12; files of step 14 and 20 are older."""
    alter(folder, STARTED | {"first_step": 7, "steps": 7})
    path = folder / "probe_t.csv"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:4]))
    started = (folder / "summary.json").stat().st_mtime
    for each in folder.iterdir():
        age = {"summary.json": 0, "probe_t.csv": 2}.get(each.name, -100)
        os.utime(each, (started + age, started + age))
    state = open_run(folder).state
    assert (state.step, state.seconds) == (12, pytest.approx(2))
    assert state.rate == pytest.approx(2.5)


def test_a_run_that_was_killed_before_its_first_output(folder):
    alter(folder, STARTED)
    for path in folder.iterdir():
        if path.name != "summary.json":
            path.unlink()
    state = open_run(folder).state
    assert state.line() == "killed: step 0/60000 (0 %)"


def test_files_that_were_set_aside_or_removed_are_not_counted(folder, monkeypatch):
    """An active run removes files between their listing and the question for their time."""
    alter(folder, STARTED)
    (folder / "checkpoint_before_000000007_000000099.h5").write_bytes(b"")
    listed = [*owned(folder), folder / "checkpoint_000000013.h5"]
    monkeypatch.setattr("mpilbm.view.results.state.owned", lambda _: listed)
    assert open_run(folder).state.step == 20


def test_the_step_is_that_of_tables_and_files_of_the_run(folder):
    """A file of the user is not counted; the rows of an HDF5 table are, without unwritten ones."""
    alter(folder, STARTED)
    (folder / "notes.csv").write_text("step\n999\n")
    for path in folder.glob("checkpoint_*20.h5"):
        path.unlink()
    assert open_run(folder).state.step == 20  # of probe_t.csv
    with open(folder / "probe_t.csv", "r+") as file:
        rows = file.readlines()
        file.seek(0)
        file.writelines(rows[:3])
        file.truncate()
    with h5py.File(folder / "probe_0.h5", "r+") as file:
        file["step"][-1] = -1  # not written yet
    assert open_run(folder).state.step == 18
    (folder / "probe_0.h5").write_bytes(b"damaged")
    assert open_run(folder).state.step == 14  # of a checkpoint
