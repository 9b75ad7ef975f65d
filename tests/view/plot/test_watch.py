"""`mpilbm watch`: progress and curves from the files of a run, whatever their state."""

import json
import os

import numpy as np
import pytest
from click.testing import CliRunner
from support.outputs_cases import make_case
from support.runs import run_case

from mpilbm.cli import cli
from mpilbm.core.errors import CommandError
from mpilbm.storage.lock import FolderLock
from mpilbm.view.plot.watch import curve, look, picture, table

OUTPUTS = [
    {"name": "monitor", "every": 5},
    {"name": "probe", "every": 2, "points": [[1, 2]], "fields": ["rho", "u"]},
    {"name": "probe", "every": 2, "points": [[1, 2]], "format": "csv", "label": "t"},
]


@pytest.fixture
def folder(tmp_path):
    steady = {"every": 5, "tolerance": 1e-9}
    initial = {"u": ["0.05*sin(2*pi*y/ny)", 0]}
    run = {"steps": 20, "steady": steady}
    run_case(make_case((5, 8), OUTPUTS, initial=initial, run=run), tmp_path)
    return tmp_path


def alter(folder, **more):
    path = folder / "summary.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | more))


def test_an_ended_run_is_shown_with_its_curves(folder):
    shown = look(folder)
    assert (shown.run.status, shown.run.step, shown.run.last) == ("done", 20, 20)
    titles = [each.title for each in shown.curves]
    for title in ("steady: residual", "monitor: max_speed", "probe_1: u x, point 0"):
        assert title in titles
    lines = CliRunner().invoke(cli, ["watch", str(folder), "--once"], env={"COLUMNS": "70"})
    assert lines.exit_code == 0, lines.output
    assert "done: step 20/20 (100 %)" in lines.output
    assert "\x1b" not in lines.output
    assert max(map(len, lines.output.splitlines())) <= 70


def test_a_name_that_is_too_long_is_a_message(tmp_path):
    with pytest.raises(CommandError, match="cannot be read: File name too long; name the output"):
        look(tmp_path / ("a" * 300))


def test_running_and_killed_runs_are_distinguished(folder):
    alter(folder, status="running", steps=0, last_step=40)
    state = look(folder).run
    assert (state.status, state.step) == ("killed", 20)
    lock = FolderLock(folder)
    lock.take()
    state = look(folder).run
    assert state.status == "running"
    assert state.line().startswith("running: step 20/40 (50 %)")
    lock.remove()
    lock.close()


def test_a_run_of_another_host_may_have_been_killed(folder):
    summary = folder / "summary.json"
    summary.write_text(json.dumps(json.loads(summary.read_text()) | {"status": "running"}))
    (folder / "mpilbm.lock").write_text(json.dumps({"pid": 1, "host": "node17"}))
    assert look(folder).run.line().startswith("running on node17, if it has not been killed: step ")


def test_half_written_rows_and_damaged_files_are_omitted(folder):
    path = folder / "monitor.csv"
    count = len(table(path)[1])
    with open(path, "ab") as file:
        file.write(b"25,25.0,1.")
    assert len(table(path)[1]) == count
    with open(path, "ab") as file:
        file.write(b"\n26,not a number\n")
    assert len(table(path)[1]) == count
    (folder / "probe_1.h5").write_bytes(b"damaged")
    (folder / "forces_a.csv").write_bytes(b"")
    assert "probe_1" not in "".join(each.title for each in look(folder).curves)


def test_long_tables_are_read_from_their_end(folder, monkeypatch):
    monkeypatch.setattr("mpilbm.view.plot.watch.TAIL_BYTES", 300)
    rows = table(folder / "probe_t.csv")[1]
    assert 0 < len(rows) < 9
    assert rows[-1, 0] == 20


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(CommandError, match=r"contains no summary\.json"):
        look(tmp_path)
    (tmp_path / "summary.json").write_text("{")
    with pytest.raises(CommandError, match="cannot be read"):
        look(tmp_path)


def test_curves_have_their_shape():
    x = np.arange(50.0)
    lines = curve(x, x, 31, 4, plain=True)
    stars = [line[11:].find("*") for line in lines]
    assert stars == sorted(stars, reverse=True)
    assert lines[0].split()[0] == "49"
    assert lines[-1].split()[0] == "0"
    assert all(len(line) == 31 for line in curve(x, np.cos(x), 31, 4))
    log = curve(x[:3], [1e-3, float("nan"), 1e-5], 20, 3, logarithmic=True, plain=True)
    assert "0.001" in log[0]
    assert "1e-05" in log[2]
    assert "no values" in curve([1], [float("nan")], 20, 2)[0]
    assert curve([1.0], [2.0], 20, 3, plain=True)[1].split() == ["2", "*"]


@pytest.mark.parametrize("width", [20, 89, 200])
def test_any_width_is_possible(folder, width):
    from rich.console import Console

    console = Console(width=width, file=open(os.devnull, "w"), record=True)  # noqa: SIM115
    console.print(picture(look(folder), width, plain=True))
    assert max(map(len, console.export_text().splitlines())) <= width
