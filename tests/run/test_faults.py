"""Whole runs on several ranks in which something goes wrong: who says what, and what is left.

More than 20 s: each fault is a start of the launcher.
"""

import json
import os
import signal
import subprocess
import sys
import time

import h5py
import pytest
from support.mpirun import MPIRUN, python, with_mpirun

from mpilbm.backends.cpu import compiler
from mpilbm.core.files.file_digest import verify
from mpilbm.core.machine import cache
from mpilbm.parallel import launcher
from mpilbm.storage.directory import existing

CASE = """
title = "faults"
[lattice]
name = "D2Q9"
[domain]
size = [7, 6]
periodic = [true, true]
[fluid]
viscosity = 0.1
[initial]
u = ["0.05*sin(2*pi*y/ny)", "0.02*cos(2*pi*x/nx)"]
[run]
steps = 40
[backend]
name = "cpu"
[[output]]
name = "checkpoint"
every = 10
[[output]]
name = "snapshot"
every = 5
"""

RUN = """
import errno, os, signal, sys
from mpilbm.backends.cpu import compiler
compiler.FLAGS = {flags!r}
from mpilbm.solver.solver import Solver
from mpilbm.storage import planes
original, pwrite = Solver.step, os.pwrite
full = False

def step(solver):
    global full
    original(solver)
    if solver.slab.rank == 1 and solver.steps == 23:
        {fault}

def write(number, data, offset):
    if full and {full!r} in os.readlink(f"/proc/self/fd/{{number}}"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return pwrite(number, data, offset)

Solver.step, os.pwrite = step, write
planes.threads_write = lambda _: "in_turns"
sys.argv[1:] = ["run", "case.toml", "--output", "out", *{arguments}]
from mpilbm.cli import main
main()
"""


def start(tmp_path, fault="pass", ranks=3, full="", arguments=()):
    """(exit code, errors) of a run with a fault on rank 1 at step 23."""
    (tmp_path / "case.toml").write_text(CASE)
    text = RUN.format(fault=fault, full=full, arguments=list(arguments), flags=compiler.FLAGS)
    text = f"import os; os.chdir({str(tmp_path)!r})\n" + text
    kept = {"MPILBM_CACHE_DIR": str(cache.directory())}
    code, _, errors = python(text, ranks, tmp_path, **kept)
    return code, errors


def summary(tmp_path):
    return json.loads((tmp_path / "out/summary.json").read_text())


def files_are_whole(tmp_path, *steps):
    """Checkpoints of one of these lists of steps have their checksums, and snapshots their values.

    If a process dies, the checkpoint that is being written is lost.
    """
    found = existing(tmp_path / "out")
    assert [step for step, _ in found] in steps
    for _, path in found:
        verify(path)
    for path in (tmp_path / "out").glob("snapshot_*.vtkhdf"):
        verify(path)
        with h5py.File(path) as file:
            assert abs(file["VTKHDF/CellData/rho"][...] - 1).max() < 0.1


def goes_on(tmp_path, ranks=2):
    code, errors = start(tmp_path, ranks=ranks, arguments=["--restart", "auto"])
    assert code == 0, errors
    assert (summary(tmp_path)["status"], summary(tmp_path)["steps"]) == ("done", 40)
    assert not list((tmp_path / "out").glob("*.partial"))
    files_are_whole(tmp_path, [30, 40])
    return errors


@with_mpirun
def test_a_rank_that_raises_ends_all_with_its_name_and_traceback(tmp_path):
    code, errors = start(tmp_path, "1 / 0")
    assert code == 1
    assert "rank 1 of 3: Traceback" in errors
    assert "rank 1 of 3: ZeroDivisionError" in errors
    files_are_whole(tmp_path, [10, 20], [10], [])


@with_mpirun
def test_ctrl_c_that_does_not_wait_is_a_line_without_traceback(tmp_path):
    code, errors = start(tmp_path, "raise KeyboardInterrupt")
    assert code == 130
    assert "rank 1 of 3: interrupted" in errors
    assert "Traceback" not in errors


@with_mpirun
def test_a_rank_that_dies_ends_all(tmp_path):
    code, _ = start(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)")
    assert code != 0
    files_are_whole(tmp_path, [10, 20], [10], [])
    errors = goes_on(tmp_path)
    assert "took over the lock" in errors


@with_mpirun
@pytest.mark.parametrize("name", ["snapshot_000000025", "checkpoint_000000030"])
def test_a_disk_that_is_full_for_one_rank_ends_all_with_code_5(tmp_path, name):
    code, errors = start(tmp_path, "full = True", full=name)
    assert code == summary(tmp_path)["exit_code"] == 5
    assert errors.count(f"{name}") == 1
    assert "No space left on device; free some space" in errors
    assert "Traceback" not in errors
    files_are_whole(tmp_path, [10, 20])
    assert not list((tmp_path / "out").glob("*.partial"))


@with_mpirun
def test_a_signal_to_the_launcher_ends_all_ranks_with_code_4(tmp_path):
    (tmp_path / "case.toml").write_text(CASE)
    words = ["run", "case.toml", "--output", "out", "--set", "run.steps=1000000000"]
    words += ["--set", "output=[]"]
    environment = launcher.without_launcher() | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [MPIRUN, "-n", "2", sys.executable, "-m", "mpilbm", *words],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while not (tmp_path / "out/summary.json").exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGUSR1)
        _, errors = process.communicate(timeout=200)
    finally:
        process.kill()
    assert process.returncode == summary(tmp_path)["exit_code"] == 4
    assert errors.count("by SIGUSR1; continue from") == 1
    ((step, _),) = existing(tmp_path / "out")
    assert step == summary(tmp_path)["steps"] > 0
