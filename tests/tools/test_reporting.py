"""Tests that hang: what the plugin `reporting` prints, serially, under xdist, under mpirun."""

import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT, TESTS
from support.mpirun import with_mpirun

from mpilbm.parallel.launcher import without_launcher

# As all that is started with &, the shell and what it starts ignore Ctrl-C.
SHELL = 'trap "" INT; source "$0/tools/parts.sh"; part tests limited "$@"; finish'
HANGING = """
import ctypes, pytest
MUTEX = ctypes.create_string_buffer(64)
def test_1(): pass
def test_2(): pytest.skip("no unicorn")
def test_3(): assert "left" == "right"
def test_4(): {hang}
def test_5(): pass
"""
IN_A_LIBRARY = "[ctypes.CDLL(None).pthread_mutex_lock(MUTEX) for _ in 'ab']"
PLACE = "__import__('mpi4py').MPI.COMM_WORLD"
IN_MPI = f"__import__('mpi4py.MPI'); {PLACE}.recv(source={PLACE}.size - 1 - {PLACE}.rank)"


def run(folder: Path, hang: str, words: str) -> subprocess.CompletedProcess:
    """What tools/test does, in another folder; words: time limits, launcher, -- and options."""
    (folder / "test_hanging.py").write_text(HANGING.format(hang=hang))
    (folder / "conftest.py").write_text('pytest_plugins = ["support.reporting"]')
    environment = without_launcher() | {"PYTHONPATH": str(TESTS)}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    command = ["bash", "-c", SHELL, str(ROOT), *words.split(), "test_hanging.py"]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200
    )


def reported(done) -> bool:
    """The skip and its reason, the failure and its reason."""
    lines = done.stdout.splitlines()
    skipped = any(line.startswith("SKIPPED [1]") and "no unicorn" in line for line in lines)
    failed = any(line.startswith("FAILED test_hanging.py::test_3") for line in lines)
    return done.returncode != 0 and skipped and failed and "'left' == 'right'" in done.stdout


@pytest.mark.parametrize(
    ("hang", "words"),
    [
        pytest.param(IN_A_LIBRARY, "2 60 --", id="all, in a library"),
        pytest.param(IN_A_LIBRARY, "60 2 --", id="one test"),
        pytest.param(IN_A_LIBRARY, "4 60 -- -n1", id="all, xdist"),
        pytest.param(IN_MPI, "5 60 mpirun -n 2 -- --with-mpi", id="all, mpirun", marks=with_mpirun),
        pytest.param(IN_MPI, "60 3 mpirun -n 2 -- --with-mpi", id="one, mpirun", marks=with_mpirun),
    ],
)
def test_a_time_limit_prints_failures_and_skips(hang, words, tmp_path):
    """On slow machines, with a longer limit: the tests must reach the one that hangs."""
    limit, others = words.split(maxsplit=1)
    for seconds in (limit, "20", "60"):
        done = run(tmp_path, hang, f"{seconds} {others}")
        if reported(done):
            break
    assert reported(done), done.stdout + done.stderr
    whole = words[0] != "6"
    assert ("FAILED: not finished within its time limit" in done.stdout) == whole
    if hang == IN_MPI:
        assert done.stdout.count("SKIPPED [1]") == 1, done.stdout
        assert "rank 1: test_hanging.py::test_3 (call)" in done.stdout


@with_mpirun
def test_other_ranks_print_failures_alone(tmp_path):
    done = run(tmp_path, "pass", "60 60 mpirun -n 2 -- --with-mpi")
    assert reported(done)
    assert done.stdout.count("short test summary") == 1
    assert done.stdout.count("1 failed, 3 passed, 1 skipped") == 1
    assert done.stdout.count("rank 1: ") == 1
    assert "FAILED with exit code" in done.stdout


def test_time_limits_grow_with_the_time_to_compile(tmp_path):
    """On a machine that is 50 times as slow as the reference."""
    (tmp_path / "python").write_text("#!/bin/sh\necho 5000\n")
    (tmp_path / "python").chmod(0o700)
    script = 'source "$0/tools/parts.sh"; PATH=$1:$PATH scale_limits; timeout() { echo "$@"; }'
    script += "; limited 10 2 --"
    done = subprocess.run(
        ["bash", "-c", script, str(ROOT), str(tmp_path)], capture_output=True, text=True
    )
    assert "time limits are multiplied by 50.00" in done.stdout
    assert "--deadline=500 --timeout=100" in done.stdout
