"""The start of a run: what it imports with cached kernels, and the lines about slow stages."""

import gc
import os
import subprocess
import sys
import time
from threading import active_count

import pytest
from click.testing import CliRunner
from support.runs import flow

from mpilbm.backends.cpu import Cpu, CpuDevice
from mpilbm.cli import cli
from mpilbm.core.machine import terminal
from mpilbm.run import progress
from mpilbm.run.progress import Say
from mpilbm.run.simulation import Simulation

FLOW = """
[lattice]
name = "D2Q9"
[domain]
size = [16, 12]
periodic = [true, false]
[fluid]
viscosity = 0.1
[collision]
name = "mrt"
closure = {name = "smagorinsky"}
[force]
name = "guo"
value = ["1e-5*(1 + sin(2*pi*x/nx))", 0]
[initial]
u = ["0.01*sin(2*pi*y/ny)", 0]
[[boundary]]
name = "bounce_back"
where = ["y-", "y+"]
[[body]]
label = "ball"
shape = {name = "sphere", centre = [8, 6], radius = 2.5}
boundary = {name = "interpolated"}
[[output]]
name = "body_forces"
every = 1
[run]
steps = 2
"""
COMMAND = """
import atexit, sys
atexit.register(lambda: print("imported", *sys.modules))
from mpilbm.backends.cpu import compiler
compiler.FLAGS += ("-O0",)  # this test does not depend on the speed of the kernels
from mpilbm.cli import cli
cli(sys.argv[1:])
"""


SLOW = {"cupy", "matplotlib", "PIL", "pint", "pyopencl", "scipy", "sympy"}
# Modules of names that the case does not select.
UNUSED = {f"mpilbm.physics.collisions.{name}" for name in ("cumulant", "entropic", "kbc")} | {
    f"mpilbm.{name}"
    for name in ("layouts.esopull", "outputs.surface", "solids.shapes.mesh", "codegen.programs")
}


def imported(folder, *words, unwanted=SLOW):
    """The unwanted modules that a command imports, with a kernel cache in a folder."""
    environment = os.environ | {"MPILBM_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *words],
        cwd=folder, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return unwanted & set(done.stdout.splitlines()[-1].split()[1:])


def test_with_cached_kernels_neither_run_nor_check_imports_sympy(tmp_path):
    (tmp_path / "flow.toml").write_text(FLOW)
    again = FLOW.replace("viscosity = 0.1", "viscosity = 0.05").replace("[16, 12]", "[18, 12]")
    (tmp_path / "again.toml").write_text(again)
    assert imported(tmp_path, "run", "flow.toml") == {"sympy"}
    assert imported(tmp_path, "run", "again.toml", unwanted=SLOW | UNUSED) == set()
    assert imported(tmp_path, "check", "again.toml") == set()
    assert imported(tmp_path, "info") == set()


class Rank:
    """A communicator of which only the rank is read."""

    def __init__(self, rank):
        self.rank = rank


@pytest.fixture
def lines(monkeypatch):
    """The printed lines."""
    found = []
    monkeypatch.setattr(terminal, "print_line", found.append)
    return found


def test_a_slow_stage_is_printed_before_it_ends(lines, monkeypatch):
    monkeypatch.setattr(progress, "SLOW_SECONDS", 0.0)
    messages = []
    with Say(Rank(0), messages).during("reading the mesh"):
        while not lines:
            time.sleep(0.01)
    assert (lines, messages) == (["reading the mesh ..."], [])


def test_a_stage_that_ends_earlier_is_not_printed(lines):
    before = active_count()
    with Say(Rank(0)).during("reading the mesh"):
        assert active_count() == before + 1
    assert lines == []


@pytest.mark.parametrize(("rank", "prints"), [(1, True), (0, False)])
def test_other_ranks_and_silent_simulations_print_no_stage(rank, prints, lines, monkeypatch):
    monkeypatch.setattr(progress, "SLOW_SECONDS", 0.0)
    before = active_count()
    with Say(Rank(rank), [], prints).during("reading the mesh"):
        assert active_count() == before
    assert lines == []


def test_an_error_ends_the_stage(lines, monkeypatch):
    with pytest.raises(OSError, match="no mesh"), Say(Rank(0)).during("reading the mesh"):
        raise OSError("no mesh")
    assert lines == []


def test_a_slow_compiler_is_named(lines, monkeypatch):
    monkeypatch.setattr(progress, "SLOW_SECONDS", 0.0)
    seen, found = [], CpuDevice.compile

    def slow(device, *arguments):
        while not lines or not lines[-1].startswith("compiling"):
            time.sleep(0.01)
        seen.append((lines[-1], device.compiler))
        monkeypatch.setattr(CpuDevice, "compile", found)
        return found(device, *arguments)

    monkeypatch.setattr(CpuDevice, "compile", slow)
    with Simulation(flow(), verbose=True):
        pass
    ((line, compiler),) = seen
    assert line == f"compiling the kernels with {compiler} ..."


@pytest.mark.parametrize("slow", ["--version", "probe.c"])
def test_the_test_of_a_slow_compiler_is_named(slow, lines, monkeypatch, tmp_path):
    """Zig takes a minute for the first text that it compiles."""
    monkeypatch.setattr(progress, "SLOW_SECONDS", 0.05)
    script = tmp_path / "cc"
    script.write_text(f'#!/bin/sh\ncase "$*" in *{slow}*) sleep 0.5;; esac\necho "slow 1.0"\n')
    script.chmod(0o700)
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("MPILBM_CACHE_DIR", str(tmp_path / "cache"))
    with Say(Rank(0)).during("opening the device"):
        assert Cpu().open().compiler == "slow 1.0"
    assert f"opening the device: testing the C compiler {script} ..." in lines


def test_a_run_leaves_the_search_for_garbage_as_it_was(tmp_path):
    (tmp_path / "flow.toml").write_text(FLOW)
    case, folder = str(tmp_path / "flow.toml"), str(tmp_path / "out")
    assert CliRunner().invoke(cli, ["run", case, "--output", folder]).exit_code == 0
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
