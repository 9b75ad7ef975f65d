"""tools/validate: its cases are valid, and one of them from end to end."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from mpilbm.case import parse_case

ROOT = Path(__file__).parents[1]
NAMES = sorted(path.stem for path in ROOT.glob("tools/validations/[a-z]*.py"))


@pytest.fixture
def tools(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_the_cases_of_a_validation_are_valid(tools, name, full):
    validation = import_module(f"validations.{name}").VALIDATION
    variants = validation.variants(full)
    assert variants
    for variant in variants.values():
        tables = {key: value for key, value in variant.tables.items() if value is not None}
        tables["run"] = {key: value for key, value in tables["run"].items() if value is not None}
        parse_case(tables, ROOT / "cases/validation.toml")
    for x, y in validation.reference().values():
        assert len(x) == len(y) > 3


def run(*arguments, cwd):
    command = [sys.executable, str(ROOT / "tools/validate"), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=280)


def test_a_cavity_is_compared_with_published_points(tmp_path):
    done = run("cavity2d", "--only", "^trt Re 100$,nothing", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| trt Re 100 | u, largest: 0.0046" in done.stdout
    assert (tmp_path / "validation.out/cavity2d.json").exists()


def test_a_wrong_flow_fails(tmp_path, tools):
    """Bounds are compared: NaN and what lies outside are not good."""
    from validations import Finding

    assert Finding("x", 0.5, 0, 1).good
    assert not Finding("x", 1.5, 0, 1).good
    assert not Finding("x", float("nan")).good
