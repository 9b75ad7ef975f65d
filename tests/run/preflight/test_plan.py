"""`mpilbm check`: the plan, and what would not run."""

import pytest
from support.commands import call, refused

from mpilbm.backends import memory
from mpilbm.backends.cpu import Cpu
from mpilbm.case.case import load_case
from mpilbm.parallel.slabs import split
from mpilbm.run.preflight import plan as check
from mpilbm.run.preflight.plan import plan
from mpilbm.run.preflight.rank_memory import halo_bytes


def test_check_plans(case):
    options = "--gpu-memory", "1", "--set", "backend.name='cpu'"
    result = call("check", case, "--ranks", "3", *options)
    assert result.exit_code == 0, result.output
    for word in ("tau", "Mach", "Reynolds", "3 to 4 planes", "links", "memory", "it would run"):
        assert word in result.output


def test_check_names_the_speed_and_counts_the_findings(case):
    sound = call("check", case).output.splitlines()
    assert sound[-1] == "it would run"
    (line,) = [line for line in sound if line.split()[:1] == ["speed"]]
    assert line.rstrip().endswith("cells per step, the largest given: boundary.1.velocity")
    result = call("check", case, "--set", "boundary.1.velocity=[0.3, 0]")
    last = result.output.splitlines()[-1]
    findings = [
        line
        for line in result.output.splitlines()
        if line.startswith(("serious: ", "warning: ", "note: "))
    ]
    assert result.exit_code == 0
    assert last.startswith(f"valid; {len(findings)} finding")
    assert "serious" in last


def test_check_counts_what_is_exact(case):

    lines = {line.what: line for line in plan(load_case(case)).sections["box"]}
    assert lines["cells"].value == "12 x 10 = 120"
    assert lines["fluid"].value == "120"
    # the walls at rest own the upper corners' links
    links = [line.value for what, line in lines.items() if what.startswith("boundary")]
    assert links == [f"{30 + 30 + 36 - 2} links", f"{36 - 2} links"]


def test_check_shows_ramps_and_sponges(case):
    """Ramps in crossings of the box, and the largest relaxation time in a sponge."""
    settings = ["boundary.1.ramp=100", 'sponge=[{where = ["x+"], thickness = 4, viscosity = 0.5}]']
    loaded = load_case(case, settings)
    lines = {line.what: line for line in plan(loaded).sections["box"]}
    assert lines["boundary.1.ramp"].value == "100 steps"
    assert lines["boundary.1.ramp"].verdict == "4.81 crossings of the box by sound"  # 100 cs / 12
    tau = 3 * (loaded.fluids[0].viscosity + 0.5) + 0.5
    assert lines["sponge x+"].value == "4 cells"
    assert lines["sponge x+"].verdict == f"tau up to {tau:.4g}"


def test_check_halo_is_what_a_step_sends(case):

    loaded = load_case(case, ["domain.size=[32, 12]"])
    first, middle, _ = split(loaded.shape, 3, False)
    row = loaded.layout.grid(loaded.lattice, 4, 1, 32).slot_stride * 4
    assert halo_bytes(loaded, first) == (3 * row, 1)
    assert halo_bytes(loaded, middle) == (6 * row, 2)


def test_check_refuses_what_does_not_fit(case):
    output = refused("check", case, "--gpu-memory", "0.00001")
    assert "it would not run" in output
    assert "domain.size" in output
    assert "ranks or more" in output


@pytest.mark.parametrize("ranks", [1, 8])
def test_check_reports_a_mistyped_size_before_it_looks_at_cells(case, ranks, monkeypatch):
    """Neither at those of bodies, nor at the initial fields."""

    for module, name in (
        (check, "largest_speed"),
        (check.build, "survey"),
        (check.plane_costs, "plane_costs"),
    ):
        monkeypatch.setattr(module, name, lambda *_, **__: pytest.fail("looked at cells"))
    monkeypatch.setattr(memory, "least", lambda: (20 * 10**9, 24 * 10**9))
    size = ("--set", "domain.size=[200000, 200000]", "--set", "backend.name='cpu'")
    output = " ".join(refused("check", case, "--ranks", ranks, *size).split())
    for words in (
        "it would not run",
        "domain.size: a rank needs",
        "24 GB",
        "--gpu-memory",
        "ranks or more or a smaller box",
    ):
        assert words in output
    output = refused("check", case, "--ranks", ranks, *size, "--set", "layout.name='ab'")
    assert "ranks or more, the layout 'aa', or a smaller box" in " ".join(output.split())


def test_check_uses_the_memory_of_this_machine_by_default(case, monkeypatch):

    monkeypatch.setattr(memory, "least", lambda: (20, 24))
    here = ("--set", "backend.name='cpu'")
    assert "24 B that this machine has" in " ".join(refused("check", case, *here).split())
    assert call("check", case, *here, "--gpu-memory", "1").exit_code == 0


def test_check_warns_of_fast_flow(case):
    result = call("check", case, "--set", "boundary.1.velocity=[0.3, 0]")
    assert result.exit_code == 0
    assert "serious: boundary.1.velocity: the speed 0.3, Mach number 0.52, is too fast" in (
        result.output
    )


def test_check_notes_an_array_larger_than_the_driver_guarantees(case, monkeypatch):
    options = "--set", "backend.name='cpu'"
    words = "note: domain.size: an array of populations takes"
    assert words not in call("check", case, *options).output
    monkeypatch.setattr(Cpu, "largest_array", lambda self: 4000)
    output = call("check", case, *options).output
    assert words in output
    assert "guarantees 4 kB; if it refuses the array, use 16-bit storage" in output
    assert words not in call("check", case, *options, "--gpu-memory", "1").output
    has = call("check", case, *options, "--set", "precision.storage='float16'").output
    assert "if it refuses the array, use more ranks on more devices or a smaller box" in has
