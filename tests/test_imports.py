"""Imports go down only, and what not every machine has is imported where it is needed."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from support import TESTS

from mpilbm.view.manual import LAYERS

PACKAGE = Path(__file__).parents[1] / "mpilbm"

ORDER = " ".join(names for names, _ in LAYERS).split()
HEAVY = {"h5py", "mpi4py", "cupy", "cupyx", "pyopencl", "sympy", "matplotlib"}
ALLOWED = {
    "cupy": ("backends.cuda", "halo.cuda_ipc", "halo.nccl"),
    "cupyx": ("backends.cuda",),
    "pyopencl": ("backends.opencl.devices",),
    "h5py": ("outputs", "view.results", "storage", "core.files"),
    "mpi4py": ("halo", "outputs", "parallel", "run", "view.bench"),
    "sympy": ("codegen", "core.formulas"),
    "matplotlib": ("outputs.drawing", "view.plot"),
}


def modules() -> dict[str, Path]:
    """Names without the package's: `solver`, `codegen.cell`, `codegen` for its __init__."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)
        found[name] = path
    return found


MODULES = modules()
MODULES_OF: dict[str, set[str]] = {}  # of a folder or module at the top of the package
for _name in MODULES:
    MODULES_OF.setdefault(_name.partition(".")[0], set()).add(_name)
over_folders = pytest.mark.parametrize("folder", MODULES_OF)


def within(name: str, part: str) -> bool:
    return name == part or name.startswith(f"{part}.")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(nodes) -> set[str]:
    """Full names of all that the import statements among the nodes name."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are written in full"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def run_time(nodes):
    """The nodes without those in blocks `if TYPE_CHECKING`."""
    for node in nodes:
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield node
            yield from run_time(ast.iter_child_nodes(node))


@cache
def imported_by(name: str) -> frozenset[str]:
    """What a module imports; of `model`, whose protocols name classes above it, at run time."""
    nodes = run_time if within(name, "model") else ast.walk
    return frozenset(
        imported(nodes(tree(MODULES[name]) if nodes is ast.walk else [tree(MODULES[name])]))
    )


def own(names: Iterable[str]) -> set[str]:
    """The modules of this package behind names like mpilbm.case.case.Case."""
    found = set()
    for name in names:
        package, _, rest = name.partition(".")
        if package == "mpilbm":
            module = rest if rest in MODULES else rest.rpartition(".")[0]
            found.add(module or "__init__")
    return found


def layer(name: str) -> int:
    return ORDER.index(name.partition(".")[0])


def test_every_folder_has_its_layer():
    assert {name.partition(".")[0] for name in MODULES} - {"__init__"} == set(ORDER)


@over_folders
def test_imports_go_down(folder):
    for name in MODULES_OF[folder] - {"__init__"}:
        wanted = own(imported_by(name)) - {"__init__"}
        assert wanted <= MODULES.keys(), name
        assert [other for other in wanted if layer(other) > layer(name)] == [], name


def test_folders_introduce_themselves():
    for path in PACKAGE.rglob("__init__.py"):
        assert ast.get_docstring(tree(path)), path


def test_no_module_imports_itself_round_a_corner():
    """Also inside functions, and between modules of one level.

    The package itself imports its public names when they are used: `__version__` needs none.
    """
    graph = {name: own(imported_by(name)) - {"__init__"} for name in MODULES}
    assert len(list(TopologicalSorter(graph).static_order())) >= len(MODULES) - 1


@over_folders
def test_devices_mpi_and_files_stay_at_the_rim(folder):
    for name in MODULES_OF[folder]:
        for package in {full.partition(".")[0] for full in imported_by(name)}:
            allowed = ALLOWED.get(package, [name])
            assert any(within(name, part) for part in allowed), (name, package)


@over_folders
def test_nothing_is_imported_by_a_name_put_together(folder):
    """Such imports would escape these tests; the registry alone finds modules by name."""
    for name in MODULES_OF[folder] - {"core.registry"}:
        text = MODULES[name].read_text(encoding="utf-8")
        assert not [word for word in ("import_module", "__import__") if word in text], name


LAZY = {
    "mpilbm": set(),
    "mpilbm.cli": set(),
    "mpilbm.case.case": set(),
    "mpilbm.codegen": set(),
    "mpilbm.solver.solver": set(),
    "mpilbm.run.preflight.plan": set(),
    "mpilbm.solids.build": set(),
    "mpilbm.run.run": {"mpi4py", "h5py"},
}


@pytest.mark.parametrize("name", LAZY)
def test_what_an_import_brings_along(name):
    """`mpilbm list` and the like start quickly, and without MPI, HDF5, SymPy or CUDA."""
    text = f"import sys, {name}; print(*({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=200,
        env=os.environ | {"PYTHONPATH": str(PACKAGE.parent)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) <= LAZY[name]


LISTED = """
import sys
from mpilbm.core import registry
from mpilbm.case.case import parse_case
for kind in registry.KINDS:
    registry.names(kind)
parse_case({"lattice": {"name": "D2Q9"}, "domain": {"size": [4, 4], "periodic": [True, True]},
            "fluid": {"viscosity": 0.1}, "run": {"steps": 1},
            "initial": {"u": ["0.1*sin(x)", 0]}}, "a.toml")
print(*({"cupy", "mpi4py", "sympy", "matplotlib"} & set(sys.modules)))
"""


def test_listing_names_and_reading_a_case_need_no_mpi_and_no_gpu():
    environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run([sys.executable, "-c", LISTED], capture_output=True, text=True,
                          timeout=200, env=environment)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


READ = """
import sys
from mpilbm.case.case import parse_case
parse_case({"lattice": {"name": "D2Q9"}, "domain": {"size": [4, 4], "periodic": [True, True]},
            "fluid": {"viscosity": 0.1}, "run": {"steps": 1},
            "collision": {"name": "mrt"}}, "a.toml")
found = [name for name in sys.modules if name.startswith("mpilbm.physics.")]
print(*(name.removeprefix("mpilbm.physics.") for name in found if name.count(".") == 3))
"""


def test_a_case_imports_the_models_that_it_names():
    """A run starts quickly: other lattices, collisions and boundaries stay on the disk."""
    environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run([sys.executable, "-c", READ], capture_output=True, text=True,
                          timeout=200, env=environment)  # fmt: skip
    assert done.returncode == 0, done.stderr
    wanted = {"lattices.velocity_sets", "collisions.mrt"}
    others = {"equilibria.hermite", "equilibria.compressible", "lattices.basis"}
    allowed = wanted | others | {"scalars.collisions", "scalars.boundaries"}
    assert wanted <= set(done.stdout.split()) <= allowed


def test_functions_are_looked_into():
    text = "import a.b\nif x:\n    from c import d\ndef f():\n    from mpilbm.case.case import Case"
    found = ast.parse(text)
    assert imported(ast.walk(found)) == {"a.b", "c.d", "mpilbm.case.case.Case"}
    names = {"mpilbm.case.case.Case", "mpilbm.codegen.kernel_text", "mpilbm.__version__", "numpy"}
    assert own(names) == {
        "case.case", "codegen.kernel_text", "__init__",
    }  # fmt: skip


def test_no_test_module_imports_another():
    """What several of them need is in tests/support, which imports none of them either."""
    paths = sorted(TESTS.rglob("*.py"))
    modules = {path.stem for path in paths if path.stem.startswith("test_")}
    found = {
        path.relative_to(TESTS).as_posix(): sorted(parts & modules)
        for path in paths
        for parts in [{part for name in imported(ast.walk(tree(path))) for part in name.split(".")}]
        if parts & modules
    }
    assert found == {}
