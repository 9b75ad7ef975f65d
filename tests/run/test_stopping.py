"""When a run stops early, and what it prints meanwhile."""

import json
import os
import pty
import signal
import subprocess
import sys
import time

import pytest
from support.runs import flow, run_case

from mpilbm.core.errors import StoppedEarly, Terminated
from mpilbm.core.machine import cache
from mpilbm.parallel.ranks import Serial
from mpilbm.run.progress import Progress, say
from mpilbm.run.stopping import INTERVAL, Signals, Stopping, time_limit
from mpilbm.solver.solver import Solver
from mpilbm.storage.directory import existing


class Clock:
    stepping = outputs = wall = 0.0


def test_ranks_agree_about_once_a_second():
    clock = Clock()
    stopping = Stopping(Serial(), clock, time_limit(None, clock, {}), 0, 0)
    steps = []
    for _ in range(20):
        clock.wall = stopping.next_step * 0.0101
        stopping.agree(stopping.next_step)
        steps.append(stopping.next_step - stopping.step)
    assert steps[:5] == [2, 4, 5, 8, 16]
    assert set(steps[10:]) == {96}  # 99 in a second
    assert stopping.next_step % 4 == 0  # groups of steps are whole


def stopping_at(wall, limit):
    clock = Clock()
    clock.wall = wall
    return clock, Stopping(Serial(), clock, time_limit(limit, clock, {}), 0, 0)


def test_the_limit_leaves_time_for_a_checkpoint():
    clock, stopping = stopping_at(69, 100)
    clock.wall = 70
    assert stopping.agree(1, checkpoint_seconds=10) == ""
    clock.wall = 79
    assert stopping.agree(2, checkpoint_seconds=10) == "wall-time limit of 100 s"


def test_the_limit_leaves_time_for_snapshots_on_their_way():
    clock, stopping = stopping_at(39, 100)
    clock.wall = 40
    assert stopping.agree(1, checkpoint_seconds=10) == ""
    assert stopping.agree(2, checkpoint_seconds=10, left=20) == "wall-time limit of 100 s"


def test_the_limit_leaves_time_for_an_output_as_long_as_one_before():
    clock, stopping = stopping_at(0, 100)
    for clock.wall, reason in ((30, ""), (60, ""), (69, ""), (70, "wall-time limit of 100 s")):
        assert stopping.agree(stopping.next_step) == reason


@pytest.mark.parametrize(
    ("walltime", "end", "left", "whose"),
    [
        (None, None, None, None),
        (50, None, 50, "wall-time limit of 50 s"),
        (50, 600, 50, "wall-time limit of 50 s"),
        (5000, 600, 607, "time limit of the SLURM job"),
        (None, 600, 607, "time limit of the SLURM job"),
        (None, -1, None, None),  # of a job that is over
    ],
)
def test_the_earlier_limit_counts(monkeypatch, walltime, end, left, whose):
    clock = Clock()
    clock.wall = 7.0
    monkeypatch.setattr(time, "time", lambda: 1e9)
    environment = {} if end is None else {"SLURM_JOB_END_TIME": str(10**9 + end)}
    assert time_limit(walltime, clock, environment) == (None if left is None else (left, whose))


def test_the_end_of_the_slurm_job_leaves_a_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_END_TIME", str(int(time.time()) + 3))
    with pytest.raises(StoppedEarly, match="time limit of the SLURM job"):
        run_case(flow(steps=10**9, outputs=[]), tmp_path)
    assert len(existing(tmp_path)) == 1


def test_a_signal_before_the_first_step_is_not_lost(tmp_path, monkeypatch):
    original = Solver.__init__

    def with_signal(*arguments):
        os.kill(os.getpid(), signal.SIGUSR1)
        original(*arguments)

    monkeypatch.setattr(Solver, "__init__", with_signal)
    with pytest.raises(StoppedEarly, match="stopped at step 1 by SIGUSR1"):
        run_case(flow(steps=10**9, outputs=[]), tmp_path)
    assert [step for step, _ in existing(tmp_path)] == [1]


BEFORE = """
import os, signal, sys
from mpilbm.cli import main
from mpilbm.solver.solver import Solver

name = "{name}"
if name:
    Solver.__init__ = lambda *_: os.kill(os.getpid(), signal.Signals[name]) or signal.pause()
sys.argv[1:] = ["run", "case.toml", "--output", "out"]
main()
"""
CASE = """
lattice = {name = "D2Q9"}
domain = {size = [6, 5], periodic = [true, true]}
fluid = {viscosity = 0.1}
run = {steps = 1000000000}
backend = {name = "cpu"}
"""


@pytest.fixture(autouse=True)
def _no_nohup():
    """SIGHUP as in a terminal, also where the tests run under nohup; child processes inherit it."""
    handler = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, handler)


def signalled(folder, name="", **streams):
    """A run that gets this signal before its first step."""
    (folder / "case.toml").write_text(CASE)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-c", BEFORE.format(name=name)],
        cwd=folder,
        env=environment | {"MPILBM_CACHE_DIR": str(cache.directory())},
        **({"stderr": subprocess.PIPE, "text": True} | streams),
    )


def test_sigterm_before_the_first_step_ends_the_process(tmp_path):
    with signalled(tmp_path, "SIGTERM") as process:
        _, errors = process.communicate(timeout=200)
    assert process.returncode == 128 + signal.SIGTERM
    assert errors.splitlines()[-1] == "mpilbm: error: ended by SIGTERM before the first step"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_what_ends_the_process_before_the_first_step_leaves_a_checkpoint_after_it(name):
    number = signal.Signals[name]
    with Signals() as signals:
        with pytest.raises(Terminated) as ended:
            os.kill(os.getpid(), number)
        assert ended.value.exit_code == 128 + number
        signals.stepping = True
        os.kill(os.getpid(), number)
        assert signals.caught == name


def test_a_closed_terminal_leaves_a_checkpoint(tmp_path):
    """Also where the terminal is gone before the signal arrives: writing to it fails."""
    master, slave = pty.openpty()
    streams = {"stdin": slave, "stdout": slave, "stderr": slave}
    with signalled(tmp_path, **streams) as process:
        while not (tmp_path / "out/summary.json").exists():
            time.sleep(0.05)
        os.close(slave)
        os.close(master)
        time.sleep(0.5)  # two updates of the line that moves
        process.send_signal(signal.SIGHUP)
        process.wait(60)
    assert json.loads((tmp_path / "out/summary.json").read_text())["exit_code"] == 4
    assert len(existing(tmp_path / "out")) == 1


def test_nohup_is_respected():
    handler = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Signals():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, handler)


def test_ctrl_c_before_the_first_step_ends_at_once_and_twice_does_too(monkeypatch):
    with Signals() as signals:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        signals.stepping = True
        for _ in range(2):  # from the terminal and from the launcher
            os.kill(os.getpid(), signal.SIGINT)
        assert signals.caught == "SIGINT"
        later = time.monotonic() + 2 * INTERVAL
        monkeypatch.setattr(time, "monotonic", lambda: later)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_a_job_in_the_background_goes_on_ignoring_ctrl_c():
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Signals():
            assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, handler)


def test_progress_shows_speed_and_time_left(capsys):
    clock = Clock()
    with Progress(Serial(), 0, 200, 10**6, clock) as progress:
        clock.stepping, clock.outputs = 8.0, 2.0
        progress.update(50)
        assert progress.line() == "step 50/200 (25 %)  0.00625 GLUPS  30 s left"
        clock.stepping = 1798.0
        assert progress.line().endswith("90 min left")
    assert capsys.readouterr().out.startswith("step 50/200")
    say(Serial(), "a note")
    assert capsys.readouterr().err == "a note\n"
