"""Tests that hang: what the plugin `reporting` prints, serially, under xdist, under mpirun."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mpilbm.halo.launcher import without_launcher

TESTS = Path(__file__).parent
MPIRUN = shutil.which("mpirun")
PYTEST = [sys.executable, "-m", "pytest", "--rootdir=.", "-c", os.devnull, "-p", "no:cacheprovider"]
OPTIONS = ["-p", "reporting", "-rfEs", "--timeout-method=thread"]
HANGING = """
import ctypes, time, pytest
MUTEX = ctypes.create_string_buffer(64)
def test_1(): pass
def test_2(): pytest.skip("no unicorn")
def test_3(): assert "left" == "right"
def test_4(): {hang}
def test_5(): pass
"""
IN_PYTHON = "time.sleep(100)"
IN_A_LIBRARY = "[ctypes.CDLL(None).pthread_mutex_lock(MUTEX) for _ in 'ab']"
PLACE = "__import__('mpi4py').MPI.COMM_WORLD"
IN_MPI = f"__import__('mpi4py.MPI'); {PLACE}.recv(source={PLACE}.size - 1 - {PLACE}.rank)"


def run(folder: Path, hang: str, *options: str, launcher=()) -> subprocess.CompletedProcess:
    (folder / "test_hanging.py").write_text(HANGING.format(hang=hang))
    ignoring = ["bash", "-c", 'trap "" INT; exec "$@"', "bash"]  # as all that is started with &
    command = [*launcher, *ignoring, *PYTEST, *OPTIONS, *options, "test_hanging.py"]
    environment = without_launcher() | {"PYTHONPATH": str(TESTS)}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )


def reported(done) -> bool:
    """The skip and its reason, the failure and its reason."""
    lines = done.stdout.splitlines()
    skipped = any(line.startswith("SKIPPED [1]") and "no unicorn" in line for line in lines)
    failed = any(line.startswith("FAILED test_hanging.py::test_3") for line in lines)
    return done.returncode != 0 and skipped and failed and "'left' == 'right'" in done.stdout


@pytest.mark.parametrize(
    ("hang", "options"),
    [
        pytest.param(IN_PYTHON, ["--deadline=2"], id="deadline"),
        pytest.param(IN_A_LIBRARY, ["--deadline=2"], id="deadline, in a library"),
        pytest.param(IN_A_LIBRARY, ["--timeout=2"], id="one test"),
        pytest.param(IN_A_LIBRARY, ["--deadline=4", "-n1"], id="deadline, xdist"),
    ],
)
def test_a_time_limit_prints_failures_and_skips(hang, options, tmp_path):
    done = run(tmp_path, hang, *options)
    assert reported(done), done.stdout + done.stderr


@pytest.mark.skipif(MPIRUN is None, reason="no mpirun")
@pytest.mark.parametrize("option", ["--deadline=5", "--timeout=3"])
def test_ranks_that_wait_for_each_other(option, tmp_path):
    done = run(tmp_path, IN_MPI, "--with-mpi", option, launcher=["mpirun", "-n", "2"])
    assert reported(done), done.stdout + done.stderr
    assert done.stdout.count("SKIPPED [1]") == 1, done.stdout
    assert "rank 1: test_hanging.py::test_3 (call)" in done.stdout


@pytest.mark.skipif(MPIRUN is None, reason="no mpirun")
def test_other_ranks_print_failures_alone(tmp_path):
    done = run(tmp_path, "pass", "--with-mpi", launcher=["mpirun", "-n", "2"])
    assert reported(done)
    assert done.stdout.count("short test summary") == 1
    assert done.stdout.count("1 failed, 3 passed, 1 skipped") == 1
    assert done.stdout.count("rank 1: ") == 1
