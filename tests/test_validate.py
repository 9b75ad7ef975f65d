"""tools/validate: its cases are valid, and one of them from end to end."""

import subprocess
import sys
from importlib import import_module
from math import erfc
from pathlib import Path

import numpy as np
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


def test_a_heavy_fluid_falls_as_fast_as_theory_has_it(tmp_path):
    """Also the tension of free_energy, and a force on each fluid."""
    done = run("rayleigh_taylor", "--only", "128", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "growth over theory: 0.99" in done.stdout


def test_waves_of_theory(tools):
    """The solution at t = 0, without viscosity, and exp(z^2) erfc(z) in both half planes."""
    from validations.capillary_wave import frequency, prosperetti, scaled_erfc

    t = np.linspace(0, 40, 81)
    assert np.abs(prosperetti(t, 0.1, 1e-9, 0.04) - np.cos(0.2 * t)).max() < 1e-3
    assert abs(prosperetti(t, 0.1, 0.5, 0.04)[0] - 1) < 1e-9
    assert abs(frequency(t, np.exp(-0.01 * t) * np.cos(0.2 * t + 0.3)) - 0.2) < 1e-9
    for x in (-1.5, -0.2, 0.0, 0.7, 2.0):
        assert abs(scaled_erfc([x])[0] / (np.exp(x**2) * erfc(x)) - 1) < 1e-6


def test_a_wrong_flow_fails(tmp_path, tools):
    """Bounds are compared: NaN and what lies outside are not good."""
    from validations import Finding

    assert Finding("x", 0.5, 0, 1).good
    assert not Finding("x", 1.5, 0, 1).good
    assert not Finding("x", float("nan")).good
