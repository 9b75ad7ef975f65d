"""Tests that hang: what the plugin `reporting` prints, serially, under xdist, under mpirun.

More than 20 s: the tests that hang are those of processes, which wait for their time limit.
"""

import subprocess
import sys
from pathlib import Path

from support import ROOT, TESTS
from support.mpirun import MPIRUN, with_mpirun

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
# A signal does not interrupt it, as no call of MPI; but ranks that wait in MPI use their cores.
PLACE = "__import__('mpi4py').MPI.COMM_WORLD"
IN_MPI = f"__import__('mpi4py.MPI'); {PLACE}.recv(source={PLACE}.size - 1 - {PLACE}.rank)"
IN_A_LIBRARY = "[ctypes.CDLL(None).pthread_mutex_lock(MUTEX) for _ in 'ab']"
CASES = {
    "all, in a library": "8 60 --",
    "one test": "60 8 --",
    "all, xdist": "8 60 -- -n1",
    "all, mpirun": "8 60 mpirun -n 2 -- --with-mpi",
    "one, mpirun": "60 8 mpirun -n 2 -- --with-mpi",
}


def start(folder: Path, hang: str, words: str) -> subprocess.Popen:
    """What tools/test does, in another folder; words: time limits, launcher, -- and options."""
    folder.mkdir(exist_ok=True)
    (folder / "test_hanging.py").write_text(HANGING.format(hang=hang))
    (folder / "conftest.py").write_text('pytest_plugins = ["support.reporting"]')
    environment = without_launcher() | {"PYTHONPATH": str(TESTS)}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    command = ["bash", "-c", SHELL, str(ROOT), *words.split(), "test_hanging.py"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(command, cwd=folder, env=environment, text=True, **pipes)


def output_of(process: subprocess.Popen) -> str:
    return process.communicate(timeout=200)[0]


def reported(process: subprocess.Popen, output: str) -> bool:
    """The skip and its reason, the failure and its reason."""
    lines = output.splitlines()
    skipped = any(line.startswith("SKIPPED [1]") and "no unicorn" in line for line in lines)
    failed = any(line.startswith("FAILED test_hanging.py::test_3") for line in lines)
    return process.returncode != 0 and skipped and failed and "'left' == 'right'" in output


def test_a_time_limit_prints_failures_and_skips(tmp_path):
    """All at once, since they wait; on slow machines with longer limits, to reach the test."""
    open_cases = {name: words for name, words in CASES.items() if MPIRUN or "mpi" not in words}
    for seconds in ("8", "24", "60"):
        started = {
            name: start(tmp_path / name, IN_A_LIBRARY, words.replace("8", seconds, 1))
            for name, words in open_cases.items()
        }
        outputs = {name: output_of(process) for name, process in started.items()}
        open_cases = {
            name: open_cases[name]
            for name, process in started.items()
            if not reported(process, outputs[name])
        }
        for name in outputs.keys() - open_cases:
            whole = name.startswith("all")
            late = "FAILED: not finished within its time limit" in outputs[name]
            assert late == whole, outputs[name]
            if "mpirun" in name:
                assert outputs[name].count("SKIPPED [1]") == 1, outputs[name]
                assert "rank 1: test_hanging.py::test_3 (call)" in outputs[name]
        if not open_cases:
            break
    assert not open_cases, [outputs[name] for name in open_cases]


@with_mpirun
def test_a_receive_that_never_ends(tmp_path):
    for seconds in (1, 8, 60):  # on slow machines longer, to reach the test
        process = start(tmp_path, IN_MPI, f"60 {seconds} mpirun -n 2 -- --with-mpi")
        output = output_of(process)
        if reported(process, output):
            break
    assert reported(process, output), output
    assert "test_4: not finished after" in output
    assert "rank 1: test_hanging.py::test_3 (call)" in output


@with_mpirun
def test_other_ranks_print_failures_alone(tmp_path):
    process = start(tmp_path, "pass", "60 60 mpirun -n 2 -- --with-mpi")
    output = output_of(process)
    assert reported(process, output), output
    assert output.count("short test summary") == 1
    assert output.count("1 failed, 3 passed, 1 skipped") == 1
    assert output.count("rank 1: ") == 1
    assert "FAILED with exit code" in output


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
