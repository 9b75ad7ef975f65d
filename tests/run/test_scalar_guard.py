"""A run watches its scalars: finite, and within the bounds of initial and boundary values."""

import h5py
import numpy as np
import pytest
from support.guarded import COLD, HOT, heated
from support.runs import run_case, summary

from mpilbm.core.errors import NonFiniteError
from mpilbm.model.findings import WARNING, Finding
from mpilbm.physics.scalars.boundaries.outflow import ScalarOutflow
from mpilbm.run import steady
from mpilbm.run.checks import Alarm
from mpilbm.run.simulation import Simulation
from mpilbm.solver.scalar_bounds import Bounds
from mpilbm.solver.solver import Solver
from mpilbm.storage.directory import existing

MANY = {"name": "value", "where": ["x-", "x+", "y-", "y+"]}


def bounds_of(case, **options):
    with Simulation(case, **options) as sim:
        found = sim.context.solver.bounds.get("T")
    return found and (found.low, found.high)


def last_finding(directory):
    found = summary(directory)["findings"][-1]
    return found["severity"], found["where"], found["message"]


def test_a_scalar_that_grows_ends_the_run(tmp_path, monkeypatch):
    """It used to end with "done" and values between -30 447 and 490."""
    messages = []
    for every in (1000, 64):
        monkeypatch.setattr(steady, "CHECK_EVERY", every)
        with pytest.raises(NonFiniteError) as raised:
            run_case(heated(2000), tmp_path / str(every))
        assert raised.value.exit_code == summary(tmp_path / str(every))["exit_code"] == 3
        ((step, path),) = existing(tmp_path / str(every))
        text = str(raised.value)
        for words in (
            f"step {step + 1}: the scalar 'T' is ",
            "at cell (",
            f"range of its initial and boundary values is {COLD} to {HOT}",
            "outside by 10",
            "of this range",
            "raise scalar.T.diffusivity (found 1e-05) or use a finer box",
            f"{path} is the last good state",
        ):
            assert words in text
        messages.append(text.split(" (it was ")[0])
    assert messages[0] == messages[1]


def test_an_overshoot_is_a_finding(tmp_path, capsys):
    assert run_case(heated(300, diffusivity=3e-3), tmp_path) == "done"
    severity, where, message = last_finding(tmp_path)
    assert (severity, where) == ("warning", "scalar.T")
    assert message.startswith("by step 300 the scalar 'T' is ")
    assert "at cell (" in message
    assert f"warning: scalar.T: {message}" in capsys.readouterr().err


def test_a_run_watches_any_number_of_scalars(tmp_path):
    """The columns of 33 sums and more; the other scalars stay within their bounds."""
    others = [{"label": f"T{k}"} for k in range(16)]
    case = heated(20, diffusivity=0.1, others=others)
    with Simulation(case) as sim:
        sim.run()
        found = sim.context.totals.scalars.beyond
        means = [sim.sums()[f"mean_{label}"] for label in sim.case.labels]
    assert len(found) == 17
    assert not any(found.values())
    assert means == pytest.approx([means[0]] * 17, rel=1e-6)


def test_a_resolved_scalar_is_no_finding(tmp_path):
    run_case(heated(300, diffusivity=0.1), tmp_path)
    assert not any(each["where"] == "scalar.T" for each in summary(tmp_path)["findings"])


@pytest.mark.parametrize("monitor", [[], [{"name": "monitor", "every": 1}]])
def test_a_scalar_that_is_not_finite_in_a_finite_flow(tmp_path, monkeypatch, monitor):
    original = Solver.step

    def blow_up(solver):
        original(solver)
        if solver.steps == 7:
            bad = solver.read_state("T", 4, 5)
            bad[0, 1, 0, 2] = np.nan
            solver.write_state("T", 4, bad, 7)

    monkeypatch.setattr(Solver, "step", blow_up)
    words = r"step 7: the scalar 'T' is infinite or not a number, first at cell \(2, 4\) on rank 0"
    with pytest.raises(NonFiniteError, match=words):
        run_case(heated(20, monitor, diffusivity=0.1, source=1e-3), tmp_path)


BOUNDS = {
    "numbers": ({}, (COLD, HOT)),
    "initial formula": ({"initial": {"value": "200 + x"}}, (200.5, HOT)),
    "formula of places": ({"conditions": [MANY | {"value": "300 + 10*y"}]}, (295.0, 385.0)),
    "formula of time": ({"conditions": [MANY | {"value": "300 + 0.1*t"}]}, None),
    "source": ({"source": "1e-3*T"}, None),
    "adiabatic": ({"conditions": [{"name": "flux", "where": ["y-"]}]}, (COLD, COLD)),
    "flux": ({"conditions": [{"name": "flux", "where": ["y-"], "flux": 1e-3}]}, None),
    "surroundings": (
        {"conditions": [{"name": "robin", "where": ["y-"], "h": 0.1, "ambient": 250}]},
        (250, COLD),
    ),
    "surroundings that heat": (
        {"conditions": [{"name": "robin", "where": ["y-"], "h": "0.1 - x", "ambient": 250}]},
        None,
    ),
}
LABELS = "ABCDEFGHI"
BODY = {
    "label": "b",
    "shape": {"name": "sphere", "centre": [12, 4], "radius": 2.2},
    "boundary": {"name": "bounce_back"},
}
ON_BODY = {
    "held": ({"value": 500}, (COLD, 500)),
    "heated": ({"flux": 0.01}, None),
    "conducting": ({"conjugate": {"diffusivity": 0.1}}, (COLD, 600)),
    "insulated": ({"flux": 0.0}, (COLD, HOT)),
}


def through(conditions):
    """These conditions, and values where the fluid passes."""
    named = {face for each in conditions for face in each["where"]}
    inlet, outlet = {"name": "value", "value": COLD}, {"name": "outflow"}
    more = [
        each | {"where": [face]}
        for face, each in (("x-", inlet), ("x+", outlet))
        if face not in named
    ]
    return [*conditions, *more]


def test_bounds_follow_from_conditions():
    """Of scalars of one flow, each with its own conditions."""
    scalars = []
    for label, (name, (scalar, _)) in zip(LABELS, BOUNDS.items(), strict=False):
        more = {"label": label} | {k: v for k, v in scalar.items() if k != "conditions"}
        if "conditions" in scalar:
            more["boundary"] = through(scalar["conditions"])
        if name == "source":
            more["source"] = scalar["source"].replace("T", label)
        scalars.append(more)
    with Simulation(heated(0, others=scalars)) as sim:
        found = sim.context.solver.bounds
    for label, (name, (_, expected)) in zip(LABELS, BOUNDS.items(), strict=False):
        one = found.get(label)
        assert (one and (one.low, one.high)) == expected, name


def test_bounds_follow_from_bodies():
    """Initial values inside of a body count if it conducts."""
    initial = {"value": "where((x - 12)**2 + (y - 4)**2 < 4, 600, 300)"}
    labels = dict(zip(LABELS, ON_BODY, strict=False))
    on_body = {label: ON_BODY[name][0] for label, name in labels.items()}
    scalars = [{"label": label, "initial": initial, "diffusivity": 0.1} for label in labels]
    on_body["T"] = {"value": 500}
    body = {"body": [BODY | {"scalar": on_body}]}
    with Simulation(heated(0, boundary=body, others=scalars)) as sim:
        found = sim.context.solver.bounds
    for label, name in labels.items():
        one = found.get(label)
        assert (one and (one.low, one.high)) == ON_BODY[name][1], name


def test_a_condition_that_does_not_say_what_it_holds_leaves_no_bounds(monkeypatch):
    """Such as one of a plug-in."""
    monkeypatch.delattr(ScalarOutflow, "held")
    assert bounds_of(heated(0)) is None


def test_a_program_may_remove_findings():
    with Simulation(heated(0)) as sim:
        alarm = Alarm(sim.context, (1, 2))
        alarm.update(1.5, lambda: Finding(WARNING, "", "first"))
        sim.findings.clear()
        alarm.update(2.5, lambda: Finding(WARNING, "", "second"))
        assert [each.message for each in sim.findings] == ["second"]


def test_a_restart_keeps_the_bounds_of_the_first_step(tmp_path):
    outputs = [{"name": "checkpoint", "every": 5}]
    run_case(heated(5, outputs, initial={"value": "250 + x"}), tmp_path)
    ((_, path),) = existing(tmp_path)
    assert bounds_of(heated(9), restart=path) == (250.5, HOT)


def test_a_restart_does_not_use_initial_values_that_it_does_not_have(tmp_path):
    """After steps with a source the state has no known bounds."""
    run_case(heated(5, [{"name": "checkpoint", "every": 5}], source=1.0), tmp_path)
    ((_, path),) = existing(tmp_path)
    with h5py.File(path) as file:
        assert "low" not in file["T"].attrs
    assert bounds_of(heated(9), restart=path) is None


def test_beyond_is_relative_to_the_range_or_to_the_value():
    assert Bounds(300, 400).beyond(75) == pytest.approx(0.25)
    assert Bounds(300, 400, rounding=1.0).beyond(50.5) == 0
    assert Bounds(5, 5).beyond(1) == pytest.approx(0.2)
    assert Bounds(0, 0).beyond(1) == 0
    single = float(np.float32(300.1))  # an initial value from a file, beside a wall at 300.1
    assert Bounds(300.1, single).beyond(3.001) == pytest.approx(0.01, rel=1e-3)
    assert Bounds(300, 300.1).beyond(0.15) == pytest.approx(1)
