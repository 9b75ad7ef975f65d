"""Mistakes of a user, through the command: the message has place, found, allowed and fix.

More than 20 s: mistakes on several ranks need starts of the launcher.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from support.mpirun import with_mpirun
from support.outputs_cases import flip_bit, offset_of
from support.user_runs import CASE, FULL, MOVING, assert_reported, in_turn, ranks, sets

from mpilbm.backends.gpu import drivers
from mpilbm.cli import cli
from mpilbm.solids import build

ROCK = 'body=[{label="rock", mask="%s", boundary={name="bounce_back"}}]'
HUGE = ("domain.size=[200000, 200000]", "output=[]")
MANY = ("run.steps=10000000000", "output.0={name='snapshot', every=1}")
WILD = ("fluid.viscosity=1e-6", "boundary.1.velocity=[0.5, 0]", "run.steps=5000")
FULL_DISK = """
import os
from mpilbm.cli import main
def pwrite(number, data, offset):
    raise OSError(28, os.strerror(28))
os.pwrite = pwrite
main()
"""


def alone(*options):
    """Run box.toml in this process and return (exit code, output)."""
    result = CliRunner().invoke(cli, ["run", "box.toml", *map(str, options)])
    return result.exit_code, result.output


def on_two(*options):
    """Run box.toml on two ranks and return (exit code, output)."""
    return ranks(2, *options)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current directory, with a case, some masks, and a run of the case in done.out."""
    monkeypatch.chdir(tmp_path)
    Path("box.toml").write_text(CASE)
    np.save("wrong.npy", np.zeros((12, 10), np.uint8))
    np.save("odd.npy", np.array([{}], object))
    return tmp_path


@pytest.fixture
def done(folder):
    """A run that is over, with checkpoints of which some are damaged."""
    assert CliRunner().invoke(cli, ["run", "box.toml", "--output", "done.out"]).exit_code == 0
    whole = folder / "done.out" / "checkpoint_000000010.h5"
    for name in ("cut.h5", "flipped.h5"):
        shutil.copy(whole, name)
    os.truncate("cut.h5", whole.stat().st_size // 2)
    flip_bit("flipped.h5", offset_of("flipped.h5", "fluid/f") + 99)
    Path("text.h5").write_text("no HDF5")
    return whole


def refused(sentence, *options, code=2):
    """What `mpilbm run box.toml` with these options must say, leaving nothing behind."""
    before = set(Path.cwd().iterdir())
    assert_reported(*alone(*options), code, sentence)
    assert set(Path.cwd().iterdir()) == before


WRONG = {
    "domain.size=[12, -10]": r"box.toml: domain.size.1: found -10; allowed: > 0",
    "domain.size=12": r"box.toml: domain.size: found 12; allowed: a list",
    "fluid={reynolds=1e30, length=1, velocity=0.1}": r"box.toml: fluid.viscosity: .*tau > 1/2; ",
    "boundary.1.name='bounceback'": r"box.toml: boundary.1.name: .* did you mean 'bounce_back'",
    "boundary.1.where=['z+']": r"box.toml: boundary.1.where.*found 'z\+' in 2D; allowed: x-",
    "boundary.1.where=['y-', 'y+']": r"box.toml: .*face 'y-' is named by boundary.0.*; remove one",
    ROCK % "no.npy": r"box.toml: body.0.mask: 'no.npy' is missing: there is no file no.npy",
    ROCK % ("n" * 300 + ".npy"): r"box.toml: body.0.mask: 'n{300}.npy' is missing",
    "initial={file='%s'}" % ("n" * 300): r"box.toml: initial.file: .*is missing",
    ROCK % "no.h5:a": r"box.toml: body.0.mask: 'no.h5:a' is missing",
    ROCK % "wrong.npy": r".*mask: 'wrong.npy' has shape \(12, 10\); allowed: \(10, 12\).*tran",
    ROCK % "odd.npy": r".*body.0.mask: 'odd.npy' contains Python objects; save it as bool or uint8",
    ROCK % "box.toml": r".*body.0.mask: 'box.toml' is not a mask; name a file.npy or",
    FULL: r"box.toml: body: found no fluid cell: .*; make a body",
    "initial.rho='1/(x - 0.5)'": r"box.toml: initial.rho: inf in cell x=0, y=0 .*finite; change",
    "initial.rho='y - 5'": r"box.toml: initial.rho: -4.5 in cell x=0, y=0 .*from 1e-30 .*change",
    "initial.rho='1/(3 - 3)'": r"box.toml: initial.rho: divides by zero; change",
    "initial.u=['x.__class__', 0]": r"box.toml: initial.u.0: 'x.__class__' is not allowed.*allowed",
    "initial.u=['exec(x)', 0]": r"box.toml: initial.u.0: unknown function 'exec'; allowed: where",
    "initial.u=['x', 0]": r"box.toml: initial.u: 1.5 in cell x=1, y=0 .* above the speed of sound",
    "backend.compiler='rm'": r"box.toml: backend.*'rm' is none of cc, gcc",
    MANY: r"box.toml: output: the outputs need .* TB, but .* has only .* free; write fewer",
    HUGE: r"domain.size: the fields of a slab needs .* GiB, .*; choose a smaller",
}


@pytest.mark.parametrize("setting", WRONG, ids=lambda text: str(text)[:40])
def test_wrong_case(folder, setting):
    refused(WRONG[setting], *sets(setting))


def test_a_field_that_does_not_fit_is_reported_before_allocation(folder, monkeypatch):
    monkeypatch.setattr(build, "build", lambda *_: pytest.fail("looks at cells"))
    refused("domain.size: the fields of a slab", *sets(HUGE))


@pytest.mark.skipif(drivers.nvidia() is not None, reason="there is a device")
def test_no_device_for_cuda(folder):
    refused('backend.name: no NVIDIA device was found .*"cpu" or', "--set", "backend.name='cuda'")


def test_a_high_speed_is_a_warning(folder):
    options = ("--set", "boundary.1.velocity=[0.3, 0]")
    result = CliRunner().invoke(cli, ["run", "box.toml", *options])
    assert result.exit_code == 0
    assert result.output.count("serious: boundary.1.velocity: the speed 0.3, Mach number 0.52") == 1


# ------------------------------------------------------------------------------------ directory


@pytest.mark.parametrize("output", ["box.toml", "box.toml/a/out", "/dev/null", "nowhere"])
def test_directory_that_cannot_be(folder, output):
    """Below a file, too, and a link to nothing."""
    Path("nowhere").symlink_to("gone")
    where = output.removesuffix("/a/out")
    sentence = rf"cannot write to the output directory {output}: {where} is not a folder; choose"
    refused(sentence, "--output", output)


@pytest.mark.parametrize("command", [("run", ""), ("run", "box.toml", "--output", ""), ("new", "")])
def test_an_empty_path_is_not_the_current_folder(folder, command):
    """A shell makes one of a variable that is not set."""
    before = set(folder.iterdir())
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 2
    assert "is empty; name a file or folder" in result.output
    assert set(folder.iterdir()) == before


def test_a_case_with_a_byte_order_mark_is_read(folder):
    """Editors of Windows write one."""
    text = Path("box.toml").read_text()
    Path("box.toml").write_text(text, "utf-8-sig")
    assert CliRunner().invoke(cli, ["check", "box.toml"]).exit_code == 0
    Path("box.toml").write_text(text, "utf-16")
    refused("box.toml: is not UTF-8 text; save it as UTF-8")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_directory_without_leave(folder):
    Path("closed").mkdir(mode=0o500)
    refused("cannot write to the output directory closed: Perm.*; choose", "--output", "closed")


def test_directory_of_another_run(done):
    before = done.read_bytes()
    refused("done.out holds the files of an earlier run .*--overwrite", "--output", "done.out")
    assert done.read_bytes() == before


@with_mpirun
def test_directory_of_a_run_that_goes_on(folder):
    command = [sys.executable, "-m", "mpilbm", "run", "box.toml", "--set", "run.steps=2000000000"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment) as running:
        try:
            status, end = folder / "box.out" / "summary.json", time.monotonic() + 60
            while not status.exists() and running.poll() is None and time.monotonic() < end:
                time.sleep(0.05)
            sentence = f"box.out is in use by process {running.pid} on .*; wait for it, or write"
            refused(sentence, "--overwrite")
            assert_reported(*ranks(2), 2, sentence)
        finally:
            running.send_signal(signal.SIGTERM)
            errors = running.communicate(timeout=200)[1].decode()
    assert_reported(
        running.returncode, errors, 4, r"stopped at step \d+ by SIGTERM; continue from .*--restart"
    )
    assert json.loads(status.read_text())["status"] == "stopped"


# -------------------------------------------------------------------------------------- restart


DAMAGED = {
    "n" * 300: "--restart n{300}: there is no such file",
    "none.h5": "--restart none.h5: there is no such file; checkpoints in box.out: none; name",
    "cut.h5": "cut.h5: has no digest at its end: .*; restart from another one",
    "text.h5": "text.h5: has no digest at its end: .*; restart from another one",
    "flipped.h5": r"flipped.h5: is damaged: bytes .* have a wrong checksum; restart from another",
}


def test_a_missing_checkpoint_lists_those_of_its_own_folder(done):
    (Path("parts.out")).mkdir()
    Path("parts.out/checkpoint_000000005.h5").touch()
    kept = "checkpoints in parts.out: checkpoint_000000005.h5; name one of them"
    refused(
        f"--restart parts.out/x.h5: there is no such file; {kept}",
        "--restart",
        "parts.out/x.h5",
        "--output",
        "other.out",
    )
    refused(f"--restart parts.out: is a folder, not a file; {kept}", "--restart", "parts.out")
    refused("--restart gone.out/x.h5: there is no folder gone.out", "--restart", "gone.out/x.h5")


def test_restart_file_that_is_not_whole(done):
    for file, sentence in DAMAGED.items():
        refused(sentence, "--restart", file)


OTHERS = {
    "domain.size=[12, 11]": r".*this checkpoint has size = \[12, 10\], the case \[12, 11\]; a res"
    r".*with initial.file = a snapshot of that run, .* and initial.scale for its velocity",
    FULL.replace("0, 0", "0, 8"): ".*the bodies are not those of this checkpoint .*plane 8",
}


def test_restart_file_of_another_case(done):
    for setting, sentence in OTHERS.items():
        refused(sentence, "--restart", done, "--set", setting)


# ---------------------------------------------------------------------------------- several ranks


LAST = "initial.rho='sqrt(8 - y)'"  # wrong on the last rank only
RANKS = {
    "domain.sise=[1, 1]": r"box.toml: domain.sise: unknown key; allowed: .* did you mean 'size'",
    "domain.size=[12, 2]": "domain.size: 2 planes .* cannot be shared by 3 ranks.*; start at most",
    ROCK % "no.npy": "box.toml: body.0.mask: 'no.npy' is missing",
    MOVING: r"box.toml: body.ball.boundary.velocity: at the surface point .*through the surface",
    LAST: "box.toml: initial.rho: nan in cell x=0, y=8 .*not finite; change",
    "initial.rho='1/(x - 0.5)'": "box.toml: initial.rho: inf in cell x=0, y=0 .*finite; change",
    HUGE: "domain.size: the fields of a slab .* shared by 3 ranks; choose",
}


@with_mpirun
def test_ranks_say_it_once_and_end_together(folder):
    before = set(folder.iterdir())
    for setting, (codes, text) in zip(RANKS, in_turn(3, *map(sets, RANKS)), strict=True):
        assert codes == [2] * 3, setting
        assert_reported(codes[0], text, 2, RANKS[setting])
    assert set(folder.iterdir()) == before


@with_mpirun
def test_a_launcher_ends_with_the_exit_code_of_its_ranks(folder):
    """Of an error of the last rank alone."""
    assert_reported(*ranks(3, *sets(LAST)), 2, RANKS[LAST])


@with_mpirun
def test_ranks_refuse_a_damaged_checkpoint(done):
    assert_reported(*ranks(2, "--restart", "flipped.h5"), 2, DAMAGED["flipped.h5"])
    assert not Path("box.out").exists()


@with_mpirun
def test_a_disk_that_fills_up_in_mid_write(folder):
    outcome = ranks(2, start=("-c", FULL_DISK))
    assert_reported(
        *outcome, 5, "box.out/checkpoint_0*5.h5: No space left on device; free some space"
    )
    assert [path.name for path in Path("box.out").iterdir()] == ["summary.json"]
    assert json.loads(Path("box.out/summary.json").read_text())["exit_code"] == 5


@pytest.mark.parametrize("start", [alone, pytest.param(on_two, marks=with_mpirun)])
def test_a_flow_that_blows_up(folder, start):
    where = r"first at cell \(\d+, \d+\) on rank \d, which owns y = \d to \d"
    fast = rf"step \d+: the flow is faster than sound \(Mach .*\), {where} .*; lower the velocity"
    assert_reported(
        *start(*sets(WILD)), 3, rf"{fast}.*; box.out/checkpoint_\d+.h5 is the last good"
    )
    assert json.loads(Path("box.out/summary.json").read_text())["status"] == "unstable"
