"""A package of PYTHONPATH that cannot be imported is named in one line, with the fix."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support import ROOT
from support.user_runs import CASE

from mpilbm.core.errors import import_problem
from mpilbm.parallel import launcher

BROKEN = {
    "numpy": ("from ._core import array", "No module named 'numpy._core'"),
    "h5py": ("from . import _errors", "cannot import name '_errors'"),
}


@pytest.fixture(params=BROKEN)
def foreign(request, tmp_path):
    """A package for Python 3.4 in a folder of PYTHONPATH: (name, folder)."""
    package = tmp_path / "other" / request.param
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(BROKEN[request.param][0])
    (package / "_core.cpython-34-x86_64-linux-gnu.so").touch()
    (tmp_path / "box.toml").write_text(CASE)
    return request.param, package.parent


def call(folder: Path, *words: str) -> subprocess.CompletedProcess:
    path = os.pathsep.join([str(folder / "other"), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-m", "mpilbm", *words],
        cwd=folder,
        encoding="utf-8",
        timeout=200,
        capture_output=True,
        env=launcher.without_launcher() | {"PYTHONPATH": path},
    )


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_command_ends_with_one_line(foreign, tmp_path, command):
    name, folder = foreign
    done = call(tmp_path, command, "box.toml")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    file = folder / name / "__init__.py"
    assert line.startswith(f"mpilbm: error: {name} cannot be imported: {file}: {BROKEN[name][1]}")
    assert "(it is for Python 3.4, not for 3." in line
    assert line.endswith(
        f"; PYTHONPATH takes {name} from {folder}: unset PYTHONPATH, or remove this folder from it"
    )
    assert not (tmp_path / "box.out").exists()


def test_info_names_it(foreign, tmp_path):
    name, folder = foreign
    done = call(tmp_path, "info")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"  {name:<12} cannot be imported: {folder}" in done.stdout
    assert f"-> PYTHONPATH takes {name} from {folder}" in done.stdout


def test_an_error_within_a_function_of_a_package_is_not_an_import():
    with pytest.raises(np.linalg.LinAlgError) as error:
        np.linalg.inv(np.zeros((2, 2)))
    assert import_problem(error.value) is None


def test_a_missing_package_is_named():
    with pytest.raises(ImportError) as error:
        import a_package_that_is_not_there  # noqa: F401
    assert import_problem(error.value).startswith("a_package_that_is_not_there is not installed;")
