"""Files of the user and of earlier runs in an output folder: what a run deletes, and when."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from support.mpirun import with_mpirun
from support.outputs_cases import make_case
from support.user_runs import CASE, FULL, MOVING, assert_reported, sets
from support.user_runs import ranks as on_ranks

from mpilbm.cli import cli
from mpilbm.core.errors import CaseError
from mpilbm.solver.solver import Solver
from mpilbm.storage import directory
from mpilbm.storage.directory import DELETED, REPLACED
from mpilbm.storage.lock import LOCK

OURS = (
    "checkpoint_000000005.h5",
    "forces_ball.csv",
    "forces_0.csv",
    "monitor.csv",
    "snapshot_000000001.vtkhdf",
    "snapshot_1234567890.vtkhdf.partial",
    "statistics_all_000000010.csv",
    "statistics_yz_000000010.h5",
    "summary.json",
    "summary.json.partial",
)
USERS = (
    "a_monitor.csv",
    "checkpoint_5.h5",
    "checkpoint_best.h5",
    "film.partial",
    "monitor.csv.bak",
    "monitor.csv.partial.partial",
    "snapshot_1.vtkhdf",
    "snapshot_film.vtkhdf",
    "statistics_mine.csv",
    "summary.json\n",
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current directory, with a case, and notes of the user in box.out."""
    monkeypatch.chdir(tmp_path)
    Path("box.toml").write_text(CASE)
    Path("box.out").mkdir()
    Path("box.out/film.partial").write_text("mine")
    return tmp_path


@pytest.fixture
def done(folder):
    """The same with a run in box.out; its files and their contents."""
    assert call().exit_code == 0
    return contents()


def call(*options):
    return CliRunner().invoke(cli, ["run", "box.toml", *options])


def contents(path="box.out"):
    return {
        str(each.relative_to(path)): each.read_bytes()
        for each in Path(path).rglob("*")
        if each.is_file()
    }


def test_a_folder_with_the_lock_alone_needs_no_names_of_outputs(tmp_path, monkeypatch):
    """To know these names takes as long as to import all outputs."""
    (tmp_path / "monitor.csv").touch()
    assert directory.owned(tmp_path) == [tmp_path / "monitor.csv"]
    (tmp_path / "monitor.csv").rename(tmp_path / LOCK)
    monkeypatch.setattr(directory.registry, "names", None)
    assert directory.owned(tmp_path) == []


def test_only_whole_names_of_ours_are_ours(tmp_path):
    for name in (*OURS, *USERS):
        (tmp_path / name).write_text("")
    (tmp_path / "snapshot_000000002.vtkhdf").mkdir()
    assert sorted(path.name for path in directory.owned(tmp_path)) == sorted(OURS)


def test_a_run_keeps_files_of_the_user(done):
    assert done["film.partial"] == b"mine"
    Path("box.out/monitor.csv.partial").write_text("cut")
    assert call("--overwrite").exit_code == 0
    assert contents().keys() == done.keys()


def test_old_checkpoints_of_another_name_stay(folder):
    Path("box.out/checkpoint_1.h5").write_text("mine")
    assert call("--set", "output.0.every=2").exit_code == 0
    assert Path("box.out/checkpoint_1.h5").exists()


# ------------------------------------------------------------------------------------- overwrite


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        (FULL, 2),
        ("initial={file='no.vtkhdf'}", 2),
        ('body=[{mask="no.npy", boundary={name="bounce_back"}}]', 2),
        ("backend.compiler='rm'", 2),
        (MOVING, 2),
        (("initial.u=['0.1', 0]", "initial.rho='1/(x - 0.5)'"), 2),
    ],
)
def test_a_case_that_cannot_run_replaces_nothing(done, settings, code):
    result = call("--overwrite", *sets(settings))
    assert result.exit_code == code, result.output
    assert contents() == done


def test_a_failure_between_the_checks_and_the_first_step_gives_all_back(done, monkeypatch):
    seen = []

    def fail(*arguments):
        seen.append(sorted(path.name for path in Path("box.out").iterdir()))
        raise OSError(28, "No space left on device", "box.out/forces")

    monkeypatch.setattr("mpilbm.run.steady.Watch.verdict", fail)
    result = call("--overwrite", "--set", "output=[{name='monitor', every=1}]")
    assert result.exit_code != 0
    made = ["monitor.csv", "monitor.csv.digests", "outputs.json", "summary.json"]
    assert seen == [sorted(["film.partial", "mpilbm.lock", REPLACED, *made])]
    assert contents() == done


@with_mpirun
def test_ranks_that_fail_give_all_back(done):
    assert_reported(*on_ranks(2, "--overwrite", *sets(MOVING)), 2, "box.toml: body.ball.*")
    assert contents() == done
    code, output = on_ranks(2, "--overwrite", *sets(("run.steps=5",)))
    assert code == 0, output
    assert "later than this start" not in output
    assert sorted(contents()) == ["checkpoint_000000005.h5", "film.partial", "summary.json"]


KILLED = """
import os, signal, sys
from mpilbm.run import march
from mpilbm.storage import directory
def kill(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)
{where} = kill
from mpilbm.cli import main
sys.argv[1:] = ["run", "box.toml", "--overwrite"]
main()
"""


@pytest.mark.parametrize("where", ["os.replace", "march.Summary", "march.Watch"])
def test_after_kill_9_the_next_start_gives_the_files_back(done, where):
    process = subprocess.run(
        [sys.executable, "-c", KILLED.format(where=where)], capture_output=True, env=environment()
    )
    assert process.returncode == -signal.SIGKILL, process.stderr
    assert Path("box.out", REPLACED).is_dir()
    result = call()
    assert result.exit_code == 2
    assert "holds the files of an earlier run" in result.output
    after = contents()
    assert after == done
    assert call("--restart", "auto").exit_code == 0


def test_what_an_interrupted_deletion_left_goes_at_the_next_start(done):
    gone = Path("box.out", DELETED)
    gone.mkdir()
    (gone / "snapshot_000000001.vtkhdf").write_text("old")
    assert call("--restart", "auto").exit_code == 0
    assert not gone.exists()


def test_files_of_the_user_in_a_reserved_folder_are_not_deleted(done):
    mine = Path("box.out", DELETED, "notes.txt")
    mine.parent.mkdir()
    mine.write_text("mine")
    assert call("--restart", "auto").exit_code == 0
    result = call("--overwrite")
    assert_reported(result.exit_code, result.output, 2, ".*mpilbm.deleted: this name is reserved")
    assert mine.read_text() == "mine"
    assert (contents().keys() - done.keys()) == {f"{DELETED}/notes.txt"}


def test_the_reserved_folder_of_somebody_else_is_not_touched(done, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("mine")
    Path("box.out", REPLACED).symlink_to(tmp_path / "mine")
    result = call("--overwrite")
    assert_reported(result.exit_code, result.output, 2, ".*mpilbm.replaced: this name is reserved")
    assert contents("mine") == {"notes.txt": b"mine"}
    assert contents() == done


def test_a_folder_of_the_reserved_name_overwrites_nothing(folder):
    Path("box.out", REPLACED).mkdir()
    for name in ("film.partial", "other.txt"):
        Path("box.out", REPLACED, name).write_text("another")
    result = call()
    assert result.exit_code == 0
    assert "restored 1 file of an earlier run" in result.output
    found = contents()
    assert (found["film.partial"], found["other.txt"]) == (b"mine", b"another")
    assert found[f"{REPLACED}/film.partial"] == b"another"


@pytest.mark.parametrize(
    ("key", "setting"),
    [
        ("initial.file", "initial={{file='{file}'}}"),
        ("body.0.mask", "body=[{{mask='{file}:m', boundary={{name='bounce_back'}}}}]"),
    ],
)
def test_overwrite_keeps_the_files_that_the_case_reads(folder, key, setting):
    assert call("--set", "output=[{name='snapshot', every=5}]").exit_code == 0
    before, file = contents(), "box.out/snapshot_000000010.vtkhdf"
    result = call("--overwrite", "--set", setting.format(file=file))
    problem = f"'.*{file}' is one of the files that --overwrite replaces; copy it"
    assert_reported(result.exit_code, result.output, 2, f"box.toml: {key}: {problem}")
    assert contents() == before


def test_overwrite_may_read_other_files_of_its_folder(folder):
    """Those that mpilbm did not write, or that have another name."""
    assert call("--set", "output=[{name='snapshot', every=5}]").exit_code == 0
    os.rename("box.out/snapshot_000000010.vtkhdf", "box.out/begin.vtkhdf")
    np.save("box.out/rock.npy", np.zeros((10, 12), np.uint8))
    rock = 'body=[{mask="box.out/rock.npy", boundary={name="bounce_back"}}]'
    options = sets(("initial={file='box.out/begin.vtkhdf'}", "run.steps=3", rock))
    assert call("--overwrite", *options).exit_code == 0
    assert sorted(contents()) == [
        "begin.vtkhdf",
        "checkpoint_000000003.h5",
        "film.partial",
        "rock.npy",
        "summary.json",
    ]


def test_restart_with_overwrite_is_refused(done):
    file = "box.out/checkpoint_000000005.h5"
    result = call("--restart", file, "--overwrite")
    assert_reported(
        result.exit_code, result.output, 2, f"--restart {file} --overwrite: .*remove --overwrite"
    )
    assert contents() == done


def test_room_that_overwrite_frees_counts(done, monkeypatch):
    case = make_case(outputs=[{"name": "snapshot", "every": 100}])
    needed = directory.disk_bytes(case)
    freed = directory.bytes_of(directory.owned(Path("box.out")))
    held, free = directory.RunDirectory("box.out"), needed - freed
    usage = shutil.disk_usage(".")
    monkeypatch.setattr(directory.shutil, "disk_usage", lambda path: usage._replace(free=free))
    held.claim(case, overwrite=True)
    held.release()
    free -= 1
    with pytest.raises(CaseError, match="the outputs need"):
        held.claim(case, overwrite=True)


# ----------------------------------------------------------------------------------------- links


LINKS = ("monitor.csv", "summary.json", "checkpoint_000000005.h5", "snapshot_000000000.vtkhdf")


@pytest.mark.parametrize("late", [False, True])
def test_a_link_is_not_followed(folder, monkeypatch, late):
    """Whether it is there before the run begins, or made while it runs."""
    Path("mine").write_text("mine")
    claim = directory.RunDirectory.claim

    def link():
        for name in LINKS:
            Path("box.out", f"{name}.partial").symlink_to(folder / "mine")
        Path("box.out", "write.probe.partial").symlink_to(folder / "mine")

    def claim_and_link(*arguments):
        found = claim(*arguments)
        link()
        return found

    if late:
        monkeypatch.setattr(directory.RunDirectory, "claim", claim_and_link)
    else:
        link()
    outputs = ", ".join(f"{{name='{name}', every=5}}" for name in ("monitor", "checkpoint"))
    result = call(
        *sets(f"output=[{outputs}, {{name='snapshot', every=5, begin=0, background=false}}]")
    )
    assert result.exit_code == 0, result.output
    assert Path("mine").read_text() == "mine"
    assert set(LINKS) <= contents().keys()


def test_a_lock_that_is_a_link_is_refused(folder):
    Path("mine").write_text("mine")
    Path("box.out/mpilbm.lock").symlink_to(folder / "mine")
    result = call()
    assert_reported(
        result.exit_code, result.output, 2, "box.out/mpilbm.lock is not a lock file.*; move it"
    )
    assert Path("mine").read_text() == "mine"


@pytest.mark.parametrize("name", ["summary.json", "monitor.csv"])
def test_a_restart_replaces_a_link_by_a_file(done, folder, name):
    shutil.copy("box.out/summary.json", "mine")
    before = Path("mine").read_bytes()
    Path("box.out", name).unlink(missing_ok=True)
    Path("box.out", name).symlink_to(folder / "mine")
    outputs = "output=[{name='monitor', every=5}]"
    assert call("--restart", "auto", *sets((outputs, "run.steps=15"))).exit_code == 0
    assert not Path("box.out", name).is_symlink()
    assert Path("mine").read_bytes() == before


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: Path(path).write_text("mine")])
def test_a_lock_that_is_no_lock_is_refused(folder, make):
    make("box.out/mpilbm.lock")
    result = call()
    assert_reported(
        result.exit_code, result.output, 2, "box.out/mpilbm.lock is not a lock file of mpilbm; move"
    )


def test_a_link_to_a_folder_is_a_folder(folder):
    Path("link").symlink_to("box.out")
    assert call("--output", "link").exit_code == 0
    assert Path("box.out/summary.json").is_file()


def test_pictures_and_pages_do_not_follow_links(folder, monkeypatch):
    assert call("--set", "output=[{name='snapshot', every=5}]").exit_code == 0
    Path("mine").write_text("mine")
    for name in ("speed.png", "profiles.png.partial"):
        Path("box.out", name).symlink_to(folder / "mine")
        result = CliRunner().invoke(cli, ["plot", "box.out"])
        assert_reported(result.exit_code, result.output, 2, f".*{name}.* is a symbolic link to")
        assert Path("mine").read_text() == "mine"
        Path("box.out", name).unlink()
    assert CliRunner().invoke(cli, ["plot", "box.out"]).exit_code == 0


# ------------------------------------------------------------------------------- a folder that goes


@pytest.mark.parametrize("outputs", ["output=[{name='checkpoint', every=5}]", "output=[]"])
def test_a_folder_that_is_removed_during_the_run(folder, monkeypatch, outputs):
    original = Solver.step

    def step(solver):
        original(solver)
        if solver.steps == 3:
            shutil.rmtree("box.out")

    monkeypatch.setattr(Solver, "step", step)
    result = call("--set", outputs)
    assert_reported(
        result.exit_code,
        result.output,
        5,
        r"box.out.*: No such file or directory; box.out was removed or renamed",
    )
    assert not Path("box.out").exists()


def environment():
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


def test_a_run_says_how_it_ended_and_where_its_files_are(folder):
    last = call().stderr.splitlines()[-1]
    assert last == "step 10: done; the files are in box.out"
    steady = ("run.steady={every=1, tolerance=1e9}", "run.steps=20")
    last = call("--overwrite", *sets(steady)).stderr.splitlines()[-1]
    assert last.startswith("step 1: steady: relative change")
    assert last.endswith("; the files are in box.out")
    assert json.loads(Path("box.out/summary.json").read_text())["status"] == "done"
