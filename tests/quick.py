"""Pytest plugin: --quick takes, of each test function below, the first and the last case.

tools/test --quick takes at most five minutes on two cores with Zig and an empty cache of kernels.
"""

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

# file::function of this folder; each kind of test has one here.
QUICK = (
    "test_laws_lattice.py::*",
    "test_laws_collision.py::*",
    "test_laws_layout.py::*",
    "test_laws_walls.py::test_a_wall_at_a_fraction_of_a_cell",
    "test_laws_walls.py::test_free_slip_is_a_plane_of_symmetry",
    "test_laws_slabs.py::test_restart_does_not_show",
    "test_halo.py::*",
    "test_case.py::*",
    "test_case_errors.py::*",
    "test_cli.py::*",
    "test_backends.py::*",
    "test_compilers.py::*",
    "test_cache.py::*",
    "test_checkpoints.py::*",
    "test_outputs.py::*",
    "test_run.py::*",
    "test_cuda_emulation.py::test_it_does_what_the_c_text_does",
    "mpi/test_halo_mpi.py::*",
    "mpi/test_outputs_mpi.py::*",
    "mpi/test_run_mpi.py::*",
)


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="a few minutes' choice of the tests")


def name(item) -> tuple[str, str]:
    """File, from this folder on, and function of a test."""
    file = item.path.relative_to(Path(__file__).parent).as_posix()
    return file, item.nodeid.partition("[")[0].partition("::")[2]


def choose(functions: dict[tuple[str, str], list]) -> list:
    """The first and last case of each chosen function. UsageError for an entry without function."""
    files = {file for file, _ in functions}
    chosen = []
    for entry in QUICK:
        wanted, pattern = entry.split("::")
        found = [
            cases
            for (file, function), cases in functions.items()
            if file == wanted and fnmatchcase(function, pattern)
        ]
        if wanted in files and not found:
            raise pytest.UsageError(f"tests/quick.py: no test is called {entry}")
        chosen += [case for cases in found for case in dict.fromkeys((cases[0], cases[-1]))]
    return chosen


def pytest_collection_modifyitems(config, items):
    if not config.getoption("quick"):
        return
    functions = {}
    for item in items:
        functions.setdefault(name(item), []).append(item)
    chosen = choose(functions)
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen
