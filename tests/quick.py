"""Pytest plugin: --quick takes of each test below the first and last of its parameters."""

from fnmatch import fnmatchcase
from pathlib import Path

# Patterns of node ids without parameters, beside this file. Each kind of test has one here.
QUICK = ("*.py::*",)


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="a few minutes' choice of the tests")


def ends(items: list) -> list:
    """Of each function the first and last item."""
    functions = {}
    for item in items:
        functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return [each for found in functions.values() for each in dict.fromkeys((found[0], found[-1]))]


def name(item) -> str:
    """The id of a test function, from this folder on."""
    function = item.nodeid.partition("[")[0].partition("::")[2]
    return f"{item.path.relative_to(Path(__file__).parent).as_posix()}::{function}"


def pytest_collection_modifyitems(config, items):
    if not config.getoption("quick"):
        return
    chosen = [i for i in items if any(fnmatchcase(name(i), pattern) for pattern in QUICK)]
    chosen = ends(chosen)
    config.hook.pytest_deselected(items=[i for i in items if i not in set(chosen)])
    items[:] = chosen
