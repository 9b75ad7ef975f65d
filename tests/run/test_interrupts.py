"""Ctrl-C and errors in a program: the next run continues as if nothing had happened, or refuses."""

import json
import os
import re
import signal
from contextlib import nullcontext, suppress

import numpy as np
import pytest
from support.mpirun import python, with_mpirun
from support.runs import flow, monitor, pushed, signal_at, summary

import mpilbm
from mpilbm.core.machine import cache
from mpilbm.outputs.core.writers import Writers
from mpilbm.outputs.monitor import MonitorWriter
from mpilbm.run import stopping
from mpilbm.run.stopping import interrupts
from mpilbm.solver.solver import Solver
from mpilbm.storage.background import Background
from mpilbm.storage.directory import existing

OUTPUTS = [
    {"name": "checkpoint", "every": 10},
    {"name": "snapshot", "every": 15},
    {"name": "monitor", "every": 5},
    {"name": "probe", "every": 3, "points": [[3, 3]], "format": "csv"},
]
STEPS = 40


def files(directory):
    """Names and content of all files; of the monitor without the speed, of summary.json none."""
    found = {path.name: path.read_bytes() for path in sorted(directory.iterdir())}
    timed = {"monitor.csv": monitor(directory), "monitor.csv.digests": b"", "summary.json": b""}
    return found | timed


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    directory = tmp_path_factory.mktemp("expected") / "out"
    with mpilbm.Simulation(flow(STEPS, OUTPUTS), directory=directory) as sim:
        sim.run()
    return files(directory)


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def before(monkeypatch, of, name, action=interrupt, times=1, after=0):
    """Replaces a method by one that calls `action` first, after so many calls without it."""
    original, calls = getattr(of, name), []

    def changed(*arguments):
        calls.append(name)
        if after < len(calls) <= after + times:
            action()
        return original(*arguments)

    monkeypatch.setattr(of, name, changed)


PLACES = {
    "step": (Solver, "step", 13),
    "outputs": (Writers, "write", 7),
    "sampling": (MonitorWriter, "write", 3),
    "row": (MonitorWriter, "add_rows", 2),
    "background": (Background, "settle", 9),
    "checkpoint": (Background, "begin", 1),
    "start": (Writers, "write", 0),
    "end": (Writers, "finish", 0),
}


@pytest.mark.parametrize("place", PLACES)
def test_after_ctrl_c_the_next_run_continues_as_if_nothing_had_happened(
    place, tmp_path, monkeypatch, expected
):
    of, name, after = PLACES[place]
    before(monkeypatch, of, name, after=after)
    handler = signal.getsignal(signal.SIGINT)
    with mpilbm.Simulation(flow(STEPS, OUTPUTS), directory=tmp_path / "out") as sim:
        with pytest.raises(KeyboardInterrupt):
            sim.run()
        assert signal.getsignal(signal.SIGINT) is handler
        assert sim.step == STEPS or place != "end"
        sim.run()
    assert files(tmp_path / "out") == expected
    assert summary(tmp_path / "out")["status"] == "done"


def test_after_ctrl_c_the_end_of_the_block_leaves_complete_files(tmp_path, monkeypatch, expected):
    case, out = flow(STEPS, OUTPUTS), tmp_path / "out"
    with monkeypatch.context() as patch:
        signal_at(patch, 13, signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), mpilbm.Simulation(case, directory=out) as sim:
            sim.run()
    assert (summary(out)["status"], summary(out)["steps"]) == ("interrupted", sim.step)
    rows = [int(row.split(",")[0]) for row in monitor(out)[1:]]
    assert rows == list(range(0, sim.step + 1, 5))
    with mpilbm.Simulation(case, directory=out, restart="auto") as sim:
        sim.run()
    assert files(out) == expected


def test_an_error_of_the_function_leaves_complete_outputs(tmp_path, expected):
    def fails(sim):
        if sim.step in (7, 10):
            raise ZeroDivisionError

    with mpilbm.Simulation(flow(STEPS, OUTPUTS), directory=tmp_path / "out") as sim:
        for step in (7, 10):
            with pytest.raises(ZeroDivisionError):
                sim.run(call=fails)
            assert sim.step == step
        sim.run()
    assert files(tmp_path / "out") == expected


@pytest.mark.parametrize("closed", [True, False])
def test_rows_are_complete_if_the_function_ends_the_program(closed, tmp_path):
    def fails(sim):
        if sim.step == 12:
            raise ZeroDivisionError

    sim = mpilbm.Simulation(flow(STEPS, OUTPUTS), directory=tmp_path)
    with suppress(ZeroDivisionError), nullcontext() if closed else sim:
        sim.run(call=fails)
    sim.close()
    assert [int(row.split(",")[0]) for row in monitor(tmp_path)[1:]] == [0, 5, 10]
    assert [step for step, _ in existing(tmp_path)] == [10]


def test_ctrl_c_in_the_function_is_not_delayed(tmp_path, expected):
    calls = []

    def function(sim):
        calls.append(sim.step)
        if sim.step == 7:
            interrupt()
            raise AssertionError("not reached")

    with mpilbm.Simulation(flow(STEPS, OUTPUTS), directory=tmp_path / "out") as sim:
        with pytest.raises(KeyboardInterrupt):
            sim.run(call=function)
        assert calls == list(range(1, 8))
        sim.run(call=function)
        assert calls == list(range(1, STEPS + 1))
    assert files(tmp_path / "out") == expected


def test_a_method_is_complete_before_ctrl_c_is_raised(tmp_path, monkeypatch):
    path = tmp_path / "state.h5"
    with mpilbm.Simulation(flow(STEPS, [])) as sim:
        sim.run(4)
        before(monkeypatch, Solver, "read_state")
        with pytest.raises(KeyboardInterrupt):
            sim.checkpoint(path)
        sim.run(4)
    with mpilbm.Simulation(flow(STEPS, []), restart=path) as again:
        assert again.step == 4
    assert not list(tmp_path.glob("*.partial"))


def test_two_simulations_one_in_the_function_of_the_other():
    with mpilbm.Simulation(flow(STEPS, [])) as outer, mpilbm.Simulation(flow(STEPS, [])) as inner:

        def function(sim):
            if sim.step == 3:
                inner.run(2, call=lambda sim: interrupt() if sim.step == 1 else None)

        with pytest.raises(KeyboardInterrupt):
            outer.run(call=function)
        assert (outer.step, inner.step) == (3, 1)
        outer.run()
        inner.run()
        assert (outer.field("u") == inner.field("u")).all()


def twice(monkeypatch):
    """An action that sends two signals, of which the second one does not wait."""
    monkeypatch.setattr(stopping, "INTERVAL", -1.0)

    def send():
        interrupt()
        interrupt()

    return send


def test_a_second_ctrl_c_in_a_step_leaves_a_simulation_that_refuses_all(tmp_path, monkeypatch):
    before(monkeypatch, Solver, "step", twice(monkeypatch), after=12)
    with mpilbm.Simulation(flow(STEPS, OUTPUTS), directory=tmp_path) as sim:
        with pytest.raises(KeyboardInterrupt):
            sim.run()
        sentence = r"failed in the steps after step \d+ \(KeyboardInterrupt\), .*restart = \"auto\""
        for call in (sim.run, sim.sums, lambda: sim.field("u"), lambda: sim.save(tmp_path / "s")):
            with pytest.raises(mpilbm.UsageError, match=sentence):
                call()
        assert sim.step == 12
    assert summary(tmp_path)["status"] == "interrupted"
    with mpilbm.Simulation(flow(STEPS, OUTPUTS), directory=tmp_path, restart="auto") as sim:
        assert sim.step in (0, 10)  # the thread had named the file of step 10, or not


def test_an_output_that_fails_leaves_the_state_but_no_further_run(tmp_path, monkeypatch):
    def fails():
        raise ZeroDivisionError("of a plug-in")

    before(monkeypatch, MonitorWriter, "write", fails, after=2)
    with mpilbm.Simulation(flow(STEPS, OUTPUTS), directory=tmp_path / "out") as sim:
        with pytest.raises(ZeroDivisionError):
            sim.run()
        with pytest.raises(
            mpilbm.UsageError,
            match=re.escape(
                "failed at step 10 (ZeroDivisionError: of a plug-in), and cannot continue"
            ),
        ):
            sim.run()
        sim.checkpoint(tmp_path / "rescued.h5")
    assert summary(tmp_path / "out")["status"] == "failed"
    with mpilbm.Simulation(flow(STEPS, []), restart=tmp_path / "rescued.h5") as sim:
        assert sim.step == 10


@pytest.mark.parametrize("folder", [True, False])
def test_a_flow_that_failed_is_set_again_only_without_files(folder, tmp_path):
    """The rows of the steps that failed are in the files."""
    with mpilbm.Simulation(pushed(5000, push=0.05), directory=tmp_path if folder else None) as sim:
        with pytest.raises(mpilbm.NonFiniteError):
            sim.run()
        sim.set_field("u", np.zeros((6, 7, 2)))
        if folder:
            with pytest.raises(mpilbm.UsageError, match=r"NonFiniteError: .*cannot continue"):
                sim.run(1)
        else:
            sim.run(1)


def test_a_handler_of_the_program_remains():
    seen = []
    previous = signal.signal(signal.SIGINT, lambda *_: seen.append("seen"))
    try:
        with mpilbm.Simulation(flow(3, [])) as sim:
            sim.run(1, call=lambda _: interrupt())
        assert seen == ["seen"]
    finally:
        signal.signal(signal.SIGINT, previous)
    assert not interrupts.caught


RANKS = """
import json, os, signal
import mpilbm
from mpi4py import MPI
from mpilbm.solver.solver import Solver

original = Solver.step

def step(solver):
    original(solver)
    if solver.slab.rank == 1 and solver.steps == 13:
        os.kill(os.getpid(), signal.SIGINT)

Solver.step = step
steps = []
with mpilbm.Simulation(mpilbm.load_case({case!r}), directory={out!r}) as sim:
    try:
        sim.run()
    except KeyboardInterrupt:
        steps.append(sim.step)
    sim.run()
found = sim.comm.gather(steps)
if sim.rank == 0:
    print(json.dumps(found))
"""


@with_mpirun
def test_all_ranks_are_interrupted_at_the_same_step(tmp_path, expected):
    case = {
        "title": "files",
        "lattice": {"name": "D2Q9"},
        "domain": {"size": [7, 6], "periodic": [True, True]},
        "fluid": {"viscosity": 0.1},
        "initial": {"u": ["0.05*sin(2*pi*y/ny)", "0.02*cos(2*pi*x/nx)"]},
        "run": {"steps": STEPS},
        "backend": {"name": "cpu"},
        "output": OUTPUTS,
    }
    out = tmp_path / "out"
    kept = {"MPILBM_CACHE_DIR": str(cache.directory())}
    code, printed, errors = python(RANKS.format(case=case, out=str(out)), 2, tmp_path, **kept)
    assert code == 0, errors
    first, second = json.loads(printed)
    assert len(first) == 1
    assert first == second
    for name in ("monitor.csv", "probe_3.csv"):
        assert files(out)[name] == expected[name]
