"""Kernels in C are compiled by the Tiny C Compiler here (support/tiny_compiler.py), in 0.03 s each.

Without it (Debian's package tcc) they are compiled by the compiler of the package with -O0 and
without vector instructions, in 0.5 s and more. Results do not depend on it
(backends/test_compilers.py). Commands that tests start use it, too, in the units of the package;
without it, the compiler and the flags of the package, which take 10 to 30 s for a case. For others:
`CC="clang -Werror" pytest --kernel-flags=-O1 tests`; either leaves tcc out. They follow the flags
of kernels in C; those that precede them are words of $CC, and of $CXX for the CUDA text that is
compiled as C++ (see support/emulated_device.py). The full product of options (MPILBM_TEST_ALL) uses
the flags of the package alone.

A kernel text is compiled in one unit, not in the ten to fifteen of the package: each of them takes
longer to read the definitions that all share than to compile its kernels with -O0, and other tests
use the other cores. The units of the package are those of backends/test_units.py and of commands
that tests start.
"""

import gc
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mpilbm.backends import units
from mpilbm.backends.cpu import compiler, kernels
from mpilbm.core import registry
from mpilbm.storage import planes

pytest_plugins = ["support.quick", "support.reporting"]
pytest.register_assert_rewrite("support")
FLAGS, LABEL = compiler.FLAGS, units.label
ALL = bool(os.environ.get("MPILBM_TEST_ALL"))
DEFAULT = "" if ALL else "-O0 -DNO_VECTORS"
FAST = "-O1", "-DNO_VECTORS"  # follow the flags of the package


def pytest_addoption(parser):
    parser.addoption("--kernel-flags", help=f"further flags of kernels in C; now {DEFAULT}")


def pytest_configure(config):
    from support import tiny_compiler

    # Processes that tests start import the package in 0.7 s less if its bytecode is kept.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    # With the expressions that SymPy keeps, searches for reference cycles took a sixth of the time.
    gc.set_threshold(20_000, 20, 20)
    flags = config.getoption("--kernel-flags")
    compiler.FLAGS = FLAGS + tuple((DEFAULT if flags is None else flags).split())
    if not ALL:
        units.label = lambda kernel: ""
    other = flags is not None or ("CC" in os.environ and not tiny_compiler.chosen())
    if not ALL and not other and tiny_compiler.works():
        tiny_compiler.use_in_commands()
        tiny_compiler.use()
        compiler.FLAGS += (tiny_compiler.mark(),)


@pytest.fixture
def own_units(monkeypatch):
    """The units of the package."""
    monkeypatch.setattr(units, "label", LABEL)


@pytest.fixture
def optimised(monkeypatch):
    """Kernels of a step with -O1, for flows of many steps; all others as in other tests.

    They run ten times as fast as those of tcc, and as fast as those of the package, whose units
    take eight times as long to compile. From a million updates of cells on it saves time.
    """
    usual, quick = kernels.unit, compiler.FLAGS[len(FLAGS) :]

    def of_a_step(kernel):
        return kernel.phase == "collide" or kernel.role in ("show", "look")  # of coupled fluids

    def unit(program, some):
        found = usual(program, some)
        return replace(found, flags=found.flags + (FAST if any(map(of_a_step, some)) else quick))

    if not ALL:
        monkeypatch.setattr(compiler, "FLAGS", FLAGS)
        monkeypatch.setattr(units, "label", lambda kernel: str(of_a_step(kernel)))
        monkeypatch.setattr(kernels, "unit", unit)


@pytest.fixture(autouse=True)
def _writes_by_the_system(monkeypatch):
    """By os.pwrite, which tests replace, also where the temporary folder is in memory (tmpfs)."""
    monkeypatch.setattr(planes, "threads_write", lambda _: "in_turns")


@pytest.fixture
def case(tmp_path, monkeypatch):
    """The name of a case file in the current directory."""
    from support.commands import CASE

    monkeypatch.chdir(tmp_path)
    Path("cavity.toml").write_text(CASE)
    return "cavity.toml"


@pytest.fixture
def stand_ins(monkeypatch):
    """Names of our own in the registry until the test ends."""
    from support.case_tables import register_stand_ins

    for kind in registry.KINDS:
        registry.names(kind)
        monkeypatch.setitem(registry._classes, kind, dict(registry._classes[kind]))
    register_stand_ins()
