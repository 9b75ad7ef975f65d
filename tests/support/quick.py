"""Pytest plugin: --quick runs the first and the last case of each test function listed below.

tools/test --quick takes at most five minutes on two cores with Zig and an empty kernel cache.
"""

from fnmatch import fnmatchcase

import pytest

from support import TESTS

# file::function, relative to tests/; each kind of test has an entry.
QUICK = (
    "physics/test_lattices.py::*",
    "physics/test_collision_laws.py::*",
    "layouts/test_layouts.py::*",
    "laws/test_walls.py::test_a_wall_at_a_fraction_of_a_cell",
    "laws/test_walls.py::test_free_slip_is_a_plane_of_symmetry",
    "laws/test_slabs_and_layouts.py::test_restart_does_not_show",
    "halo/test_halo.py::*",
    "case/test_case.py::*",
    "case/test_case_errors.py::*",
    "cli/test_cli.py::*",
    "backends/test_backends.py::*",
    "backends/test_compilers.py::*",
    "core/test_cache.py::*",
    "outputs/test_checkpoints.py::*",
    "outputs/test_outputs.py::*",
    "run/test_run.py::*",
    "backends/test_cuda_emulation.py::test_it_does_what_the_c_text_does",
    "mpi/test_halo_mpi.py::*",
    "mpi/test_outputs_mpi.py::*",
    "mpi/test_run_mpi.py::*",
)


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="run a selection of a few minutes")


def name(item) -> tuple[str, str]:
    """(file relative to tests/, function) of a test."""
    file = item.path.relative_to(TESTS).as_posix()
    return file, item.nodeid.partition("[")[0].partition("::")[2]


def choose(functions: dict[tuple[str, str], list]) -> list:
    """The first and last case of each chosen function.

    Raises `pytest.UsageError` if an entry of QUICK matches no function."""
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
            raise pytest.UsageError(f"tests/support/quick.py: no test is called {entry}")
        chosen += [case for cases in found for case in dict.fromkeys((cases[0], cases[-1]))]
    return chosen


def pytest_ignore_collect(collection_path, config):
    """Files without an entry are not imported."""
    if not (config.getoption("quick") and collection_path.match("test_*.py")):
        return None
    files = {TESTS / entry.split("::")[0] for entry in QUICK}
    return True if collection_path not in files else None


def pytest_collection_modifyitems(config, items):
    if not config.getoption("quick"):
        return
    functions = {}
    for item in items:
        functions.setdefault(name(item), []).append(item)
    chosen = choose(functions)
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen
