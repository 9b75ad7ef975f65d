"""A run watches its flow: too fast, not finite, and where and when that began."""

from types import SimpleNamespace

import numpy as np
import pytest
from support.coupled import two_fluids, walled
from support.outputs_cases import make_case
from support.runs import flow, monitor, pushed, run_case, signal_at, state, summary
from support.scalars import flow as carrying
from support.scalars import setting
from support.settings import tables

from mpilbm.case.case import parse_case
from mpilbm.core.errors import NonFiniteError
from mpilbm.outputs import Context
from mpilbm.parallel.ranks import Serial
from mpilbm.parallel.slabs import split
from mpilbm.run import last_good, steady
from mpilbm.run.last_good import LastGood
from mpilbm.run.progress import Say
from mpilbm.run.setup import build_solver
from mpilbm.solver.fields.diagnostics import Diagnostics
from mpilbm.solver.solver import Solver
from mpilbm.storage.directory import existing


def blow_up_at(monkeypatch, step):
    """A value that is not a number in cell (2, 4) from this step on."""
    original = Solver.step

    def blow_up(solver):
        original(solver)
        if solver.steps == step:
            bad = solver.read_state("", 4, 5)
            bad[0, 1, 0, 2] = np.nan
            solver.write_state("", 4, bad, step)

    monkeypatch.setattr(Solver, "step", blow_up)


def test_a_flow_faster_than_sound_ends_the_run(tmp_path, capsys):
    """A force that accelerates the flow to 2 cells per step used to end with "done"."""
    with pytest.raises(NonFiniteError) as raised:
        run_case(pushed(2000), tmp_path)
    assert raised.value.exit_code == summary(tmp_path)["exit_code"] == 3
    ((step, path),) = existing(tmp_path)
    assert step == pytest.approx(1000 / 3**0.5, abs=2)
    for words in (
        f"step {step + 1}: the flow is faster than sound (Mach 1)",
        "first at cell (0, 0)",
        f"finite at step {step}, noticed at step 1000",
        f"{path} is the last good",
    ):
        assert words in str(raised.value)
    assert "replaying from step 0" in capsys.readouterr().err


def test_a_steady_flow_is_checked_at_its_last_step(tmp_path, monkeypatch):
    """That step is a multiple of `steady.every`, not of the steps between checks."""
    monkeypatch.setattr(Solver, "speeds", lambda it: (np.full(6, 0.9 * it.steps), np.zeros(6)))
    case = make_case(
        (7, 6),
        [],
        run={"steps": 30, "steady": {"every": 1, "tolerance": 1e9}},
        initial={"u": [0.01, 0]},
    )
    with pytest.raises(NonFiniteError, match=r"step 1: the flow is faster than sound \(Mach 1.56"):
        run_case(case, tmp_path)


def test_a_fast_flow_is_reported_once(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(steady, "CHECK_EVERY", 50)
    assert run_case(pushed(350), tmp_path) == "done"
    lines = [
        line for line in capsys.readouterr().err.splitlines() if "the flow has reached Mach" in line
    ]
    assert len(lines) == 1
    assert lines[0].startswith("warning: by step 250 the flow has reached Mach 0.43, above 0.4: ")
    assert run_case(pushed(200), tmp_path, overwrite=True) == "done"
    assert "has reached Mach" not in capsys.readouterr().err


@pytest.mark.parametrize("outputs", [[], [{"name": "monitor", "every": 4}]])
def test_where_it_began_is_found_between_two_checks(tmp_path, monkeypatch, outputs):
    """By replaying; the state before is a checkpoint, and that of the undisturbed run."""
    run_case(flow(16, [{"name": "checkpoint", "every": 8}]), tmp_path / "whole")
    blow_up_at(monkeypatch, 17)
    monkeypatch.setattr(last_good, "STRIDES", 3)
    monkeypatch.setattr(steady, "CHECK_EVERY", 10)
    checkpoints = {"name": "checkpoint", "every": 7, "keep": 1}
    with pytest.raises(NonFiniteError) as raised:
        run_case(flow(100, [*outputs, checkpoints]), tmp_path / "cut")
    noticed = 20
    for words in (
        "step 17: the flow is infinite or not a number, first at cell (2, 4) on rank 0",
        f"finite at step 16, noticed at step {noticed}",
        "00016.h5 is the last good",
    ):
        assert words in str(raised.value)
    assert [step for step, _ in existing(tmp_path / "cut")] == [14, 16]
    assert np.array_equal(state(tmp_path / "cut", 16), state(tmp_path / "whole", 16))


def test_a_run_goes_on_from_the_last_good_state(tmp_path, monkeypatch):
    """With new means: those of the failed run hold samples of the bad steps."""
    outputs = [{"name": "statistics", "every": 3}, {"name": "checkpoint", "every": 8}]
    with monkeypatch.context() as patch:
        blow_up_at(patch, 17)
        with pytest.raises(NonFiniteError):
            run_case(flow(30, outputs), tmp_path)
    assert run_case(flow(30, outputs), tmp_path, restart="auto") == "done"
    assert summary(tmp_path)["first_step"] == 16
    assert np.isfinite(state(tmp_path)).all()


def test_a_run_goes_on_from_step_0(tmp_path, monkeypatch, capsys):
    """The last good state of a flow that fails in its first step."""
    outputs = [{"name": "statistics", "every": 3}, {"name": "monitor", "every": 5}]
    with monkeypatch.context() as patch:
        blow_up_at(patch, 1)
        with pytest.raises(NonFiniteError, match=r"step 1: .*00000.h5 is the last good state"):
            run_case(flow(30, outputs), tmp_path)
    outputs.append({"name": "checkpoint", "every": 30})
    assert run_case(flow(30, outputs), tmp_path, restart="auto") == "done"
    assert "holds no sums" not in capsys.readouterr().err
    run_case(flow(30, outputs), tmp_path / "whole")
    assert np.array_equal(state(tmp_path), state(tmp_path / "whole"))
    assert monitor(tmp_path) == monitor(tmp_path / "whole")


def test_without_memory_the_two_checks_are_reported(tmp_path, monkeypatch):
    blow_up_at(monkeypatch, 17)
    monkeypatch.setattr(steady, "CHECK_EVERY", 10)
    monkeypatch.setattr(Diagnostics, "spare_bytes", 1000)
    with pytest.raises(
        NonFiniteError,
        match=rf"step 20: .*finite at step 10\); .* is no checkpoint in {tmp_path}",
    ):
        run_case(flow(100, []), tmp_path)


@pytest.mark.parametrize(("spare", "copies"), [(1600, 1), (1599, 0)])
def test_a_copy_takes_at_most_half_of_the_free_memory(spare, copies):
    population = SimpleNamespace(current=lambda: {"f": np.zeros(100)})
    given = {"diagnostics": SimpleNamespace(spare_bytes=spare), "all": [population]}
    solver = SimpleNamespace(device=SimpleNamespace(allocate=np.empty), entry_states=[], **given)
    context = SimpleNamespace(solver=solver, comm=Serial())
    assert [array.shape for array in LastGood(context)._allocate()] == [(100,)] * copies


def test_a_failure_that_a_replay_does_not_show_is_one_of_the_hardware(tmp_path, monkeypatch):
    original, failed = Solver.step, []

    def once(solver):
        original(solver)
        if solver.steps == 17 and not failed:
            failed.append(solver.write_state("", 4, solver.read_state("", 4, 5) * np.nan, 17))

    monkeypatch.setattr(Solver, "step", once)
    with pytest.raises(NonFiniteError, match=r"step 30: .*; a replay did not fail: check the hard"):
        run_case(flow(30, []), tmp_path)
    assert not existing(tmp_path)


def test_a_bad_start_is_reported_without_replay(tmp_path, monkeypatch):
    signal_at(monkeypatch, 5)
    with pytest.raises(Exception, match="SIGUSR1"):
        run_case(flow(30), tmp_path)
    ((step, path),) = existing(tmp_path)
    monkeypatch.setattr(Solver, "speeds", lambda solver: (np.full(6, 0.9), np.zeros(6)))
    with pytest.raises(
        NonFiniteError, match=rf"step {step}: .* sound \(Mach 1.56\).*{path.name} is"
    ):
        run_case(flow(30), tmp_path, restart="auto")


def test_the_watch_changes_no_bit(tmp_path, monkeypatch):
    outputs = [{"name": "checkpoint", "every": 30}]
    run_case(flow(30, outputs), tmp_path / "rare")
    monkeypatch.setattr(steady, "CHECK_EVERY", 1)
    run_case(flow(30, outputs), tmp_path / "often")
    assert np.array_equal(state(tmp_path / "rare"), state(tmp_path / "often"))


def outlets(lattice, layout):
    """Boundaries that keep values from step to step."""
    made = tables(lattice, layout, "trt", "through", "single")
    made["boundary"][1] = {"name": "grad", "where": made["boundary"][1]["where"]}
    made["body"] = [
        {
            "shape": {"name": "sphere", "centre": [2.5, 6], "radius": 1.2},
            "boundary": {"name": "full_way"},
        }
    ]
    return made


CASES = {
    "ab": lambda: tables("D2Q9", "ab", "trt", "walls", "mixed"),
    "aa": lambda: tables("D2Q9", "aa", "trt", "walls", "mixed"),
    "esopull": lambda: tables("D3Q19", "esopull", "trt", "walls", "half"),
    "moments": lambda: tables("D2Q9", "moments", "regularized", "walls", "single"),
    "indirect": lambda: tables("D2Q9", "indirect", "trt", "walls", "single"),
    "D3Q13": lambda: tables("D3Q13", "aa", "mrt", "walls", "single"),
    "kept by boundaries": lambda: outlets("D2Q9", "aa"),
    "coupled": lambda: two_fluids("D2Q9") | walled("D2Q9"),
    "scalar": lambda: carrying(layout="aa", **setting("walls", 2)),
}


@pytest.mark.parametrize("name", CASES)
def test_going_back_restores_all_that_the_next_steps_depend_on(tmp_path, name):
    case = parse_case(CASES[name]() | {"backend": {"name": "cpu"}}, "box.toml")
    solver, _ = build_solver(case, Serial(), Say(Serial()))
    solver.initialise()
    slabs = tuple(split(case.shape, 1, True))
    context = Context(
        case=case, slab=slabs[0], slabs=slabs, comm=Serial(), solver=solver, directory=tmp_path
    )
    kept = LastGood(context)

    def everything():
        values = [
            solver.read_state(group.label, 0, solver.slab.planes) for group in solver.state_groups
        ]
        fields = solver.fields(("rho", "u"), 0, solver.slab.planes)
        return [*values, *(each.read() for each in solver.entry_states), *fields.values()]

    for start in (0, 7):
        solver.advance(start - solver.steps)
        kept.keep(start)
        solver.advance(5)
        expected = everything()
        solver.advance(3)
        kept._go_back(start, start + 5)
        assert solver.steps == start + 5
        for a, b in zip(everything(), expected, strict=True):
            np.testing.assert_array_equal(a, b)
