"""No verb executes code only because the current folder contains it.

More than 20 s: each verb is a process of its own, and some compile kernels.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT, tiny_compiler
from support.mpirun import MPIRUN
from support.pairs import ALL_COMBINATIONS

from mpilbm import cli
from mpilbm.backends.opencl import devices
from mpilbm.core import machine
from mpilbm.core.errors import CaseError

PACKAGES = (
    "click",
    "cupy",
    "h5py",
    "matplotlib",
    "mpi4py",
    "numpy",
    "pandas",
    "pint",
    "platformdirs",
    "pydantic",
    "pyopencl",
    "pytools",
    "rich",
    "sympy",
    "typing_extensions",
    "ziglang",
)
PROGRAMS = (
    "as",
    "cc",
    "clang",
    "fc-list",
    "gcc",
    "latex",
    "ld",
    "mpiexec",
    "mpirun",
    "nvcc",
    "nvidia-smi",
    "python",
    "python3",
    "zig",
)
# Python imports some of its own modules before it executes a line of ours.
LATE = {"python -m": (*PACKAGES, "json"), "mpilbm": (*PACKAGES, *sys.stdlib_module_names, "mpilbm")}
SMALL = ["--set", "domain.size=[12, 8]", "--set", "run.steps=2"]
MODEL = ["--lattice", "D2Q9", "--collision", "bgk"]
WEAK = ["--weak", "16x16", "--setting", "periodic", "--steps", "1"]
VERBS = {
    "new": ["new", "box"],
    "check": ["check", "box.toml", *SMALL],
    "run": ["run", "box.toml", *SMALL, "--overwrite"],
    "plot": ["plot", "box.out"],
    "watch": ["watch", "box.out", "--once"],
    "list": ["list", "lattices"],
    "source": ["source", "box.toml"],
    "schema": ["schema"],
    "info": ["info", "--probe"],
    "manual": ["manual"],
    "bench": ["bench", *MODEL, *WEAK, "--json", "figures/weak.json"],
    "precision": ["precision", "box.toml", *SMALL],
    "report": ["report", "figures"],
}
STARTUP = ["bench", *MODEL, "--startup"]


@pytest.fixture
def folder(tmp_path):
    """Where every file that might be executed in error writes its name into `executed`."""

    def fill(modules) -> Path:
        (tmp_path / "figures").mkdir()
        witness = tmp_path / "executed"
        for name in modules:
            text = f"open({str(witness)!r}, 'a').write({name!r} + '\\n')\nraise ImportError\n"
            (tmp_path / f"{name}.py").write_text(text)
        for name in PROGRAMS:
            (tmp_path / name).write_text(f"#!/bin/sh\necho {name} >>{witness}\nexit 1\n")
            (tmp_path / name).chmod(0o755)
        (tmp_path / "matplotlibrc").write_text("text.usetex: True\n")  # starts latex
        return tmp_path

    return fill


def run(folder: Path, *command, tools: Path | None = None, **variables) -> None:
    """In a folder that PATH searches first, last, and where it has an empty entry."""
    own = [str(tools)] if tools else []
    path = ":".join(["", ".", folder.name, *own, str(Path(sys.executable).parent)])
    variables = {"PATH": f"{path}:{os.environ['PATH']}:", "PYTHONPATH": str(ROOT)} | variables
    environment = {name: each for name, each in os.environ.items() if name != "CC"} | variables
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200
    )
    witness = folder / "executed"
    assert not witness.exists(), f"{command}: executed {witness.read_text()}"
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


def test_the_list_of_verbs_is_whole():
    assert set(VERBS) == set(cli.cli.commands)


@pytest.fixture
def tools(tmp_path_factory) -> Path:
    """A folder with the compiler of the tests."""
    found = tmp_path_factory.mktemp("tools")
    if tiny_compiler.chosen():
        (found / "cc").write_text(f'#!/bin/sh\nexec {os.environ["CC"]} "$@"\n')
        (found / "cc").chmod(0o755)
    return found


def test_verbs(folder, tools, tmp_path_factory):
    here = folder(LATE["mpilbm"])
    fonts = str(tmp_path_factory.mktemp("fonts"))  # an empty list, which is made by fc-list
    python = [sys.executable, "-P", "-m", "mpilbm"]  # what the script `mpilbm` does
    for words in [*VERBS.values(), *([STARTUP] if ALL_COMBINATIONS else [])]:
        own = {"tools": tools}
        if words == VERBS["info"]:  # tries the compiler of the system, which starts as and ld
            own = {"MPILBM_CACHE_DIR": str(tmp_path_factory.mktemp("kernels"))}
        run(here, *python, *words, MPLCONFIGDIR=fonts, **own)
    run(here, *machine.module("mpilbm", "--version"))


def test_verbs_that_compile_with_zig(folder, tmp_path_factory):
    pytest.importorskip("ziglang")
    here = folder(LATE["mpilbm"])
    cache = str(tmp_path_factory.mktemp("kernels"))
    for verb in ("new", "run", "info"):
        command = [sys.executable, "-P", "-m", "mpilbm", *VERBS[verb]]
        run(here, *command, CC="zig", MPILBM_CACHE_DIR=cache)


def test_a_module_of_python_that_runs_the_package(folder, tools):
    """`python -m mpilbm`, with the folder first on its path; the compiler is started as above."""
    here = folder(LATE["python -m"])
    for verb in ("new", "run"):
        run(here, sys.executable, "-m", "mpilbm", *VERBS[verb], tools=tools)


def test_ranks(folder, tools):
    if MPIRUN is None:
        pytest.skip("no mpirun")
    here = folder(LATE["mpilbm"])
    python = [sys.executable, "-P", "-m", "mpilbm"]
    run(here, *python, *VERBS["new"])
    run(here, MPIRUN, "-n", "2", *python, *VERBS["run"], tools=tools)


def test_a_child_imports_the_package_of_its_parent(tmp_path):
    """Also one that is not installed, and nothing else from its folder."""
    shutil.copytree(Path(machine.__file__).parents[2], tmp_path / "mpilbm")
    text = "import json, mpilbm.core.errors; print(mpilbm.core.errors.__file__)"
    parent = f"from mpilbm.core import machine; print(machine.python({text!r})[3])"
    options = {"capture_output": True, "text": True, "check": True, "cwd": "/"}
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", parent], env=alone | {"PYTHONPATH": str(tmp_path)}, **options
    )
    (tmp_path / "json.py").write_text("raise ImportError")
    child = subprocess.run([sys.executable, "-P", "-c", done.stdout], env=alone, **options)
    assert child.stdout.strip() == str(tmp_path / "mpilbm/core/errors.py")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("", None),
        (":", None),
        (".", None),
        ("here", None),
        ("{at}", "{at}/cc"),
        (":.:{at}:", "{at}/cc"),
    ],
)
def test_programs_are_found_in_absolute_folders_of_path(path, found, tmp_path, monkeypatch):
    (tmp_path / "cc").touch(0o755)
    (tmp_path / "here").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", path.format(at=tmp_path))
    assert machine.locate("cc") == (found and found.format(at=tmp_path))
    assert machine.locate("./cc") is None
    assert machine.locate(str(tmp_path / "cc")) == str(tmp_path / "cc")


def test_opencl(folder, tmp_path_factory):
    try:
        devices.devices()
    except CaseError:
        pytest.skip("no OpenCL device")
    here, cache = folder(LATE["mpilbm"]), str(tmp_path_factory.mktemp("kernels"))
    for words in (VERBS["new"], [*VERBS["run"], "--set", "backend.name='opencl'"]):
        run(here, sys.executable, "-P", "-m", "mpilbm", *words, MPILBM_CACHE_DIR=cache)
