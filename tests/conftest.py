"""Kernels in C are compiled with -O0 here, and without vector instructions: five times as fast.

Their results do not depend on it (backends/test_compilers.py), and commands that tests start use
the flags of the package. For others: `CC="clang -Werror" pytest --kernel-flags=-O1 tests`.
They follow the flags of kernels in C; those that precede them are words of $CC, and of $CXX for the
CUDA text that is compiled as C++ (see support/emulated_device.py). The full product of options
(MPILBM_TEST_ALL) uses the flags of the package alone.

A kernel text is compiled in one unit, not in the ten to fifteen of the package: each of them takes
longer to read the definitions that all share than to compile its kernels with -O0, and other tests
use the other cores. The units of the package are those of backends/test_units.py, of `optimised`
and of commands that tests start.
"""

import os
from pathlib import Path

import pytest

from mpilbm.backends import units
from mpilbm.backends.cpu import compiler
from mpilbm.core import registry
from mpilbm.storage import planes

pytest_plugins = ["support.quick", "support.reporting"]
pytest.register_assert_rewrite("support")
FLAGS, LABEL = compiler.FLAGS, units.label


def pytest_addoption(parser):
    default = "" if os.environ.get("MPILBM_TEST_ALL") else "-O0 -DNO_VECTORS"
    parser.addoption(
        "--kernel-flags", default=default, help=f"further flags of kernels in C; now {default}"
    )


def pytest_configure(config):
    compiler.FLAGS = FLAGS + tuple(config.getoption("--kernel-flags").split())
    if not os.environ.get("MPILBM_TEST_ALL"):
        units.label = lambda kernel: ""


@pytest.fixture
def own_units(monkeypatch):
    """The units of the package."""
    monkeypatch.setattr(units, "label", LABEL)


@pytest.fixture
def optimised(monkeypatch, own_units):
    """The flags and units of the package, for flows of many steps."""
    monkeypatch.setattr(compiler, "FLAGS", FLAGS)


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
