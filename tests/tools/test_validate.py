"""tools/validate: its cases are valid, and one of them from end to end.

More than 20 s: validations run from end to end, in this process with the kernels of other tests.
"""

import json
import re
import runpy
import subprocess
import sys
from importlib import import_module
from math import erfc

import numpy as np
import pytest
from click.testing import CliRunner
from support import ROOT

from mpilbm.case.case import parse_case

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


@pytest.fixture
def run(tools, tmp_path, monkeypatch, optimised):
    """Calls tools/validate with these arguments; its settings are those of a new process."""
    main = runpy.run_path(str(ROOT / "tools/validate"))["main"]
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        for name in [name for name in sys.modules if name.startswith("validations.")]:
            monkeypatch.delitem(sys.modules, name)
        return CliRunner().invoke(main, arguments)

    return call


def test_a_cavity_is_compared_with_published_points(run, tmp_path):
    done = run("cavity2d", "--only", "^trt Re 100$")
    assert done.exit_code == 0, done.output
    assert "| trt Re 100 | u, largest: 0.0046" in done.output
    assert (tmp_path / "validation.out/cavity2d.json").exists()


def test_expressions_may_contain_commas(tools):
    named = runpy.run_path(str(ROOT / "tools/validate"))["named"]
    assert named("shan_chen, flat", ("drop", "chen, flat"))
    assert not named("shan_chen, flat", ("drop, flat",))
    assert named("shan_chen, flat", ())


def test_expressions_are_refused_that_are_invalid_or_match_nothing(run, tmp_path):
    done = run("cavity2d", "--only", "trt (Re")
    assert done.exit_code == 2
    assert "'trt (Re' is no regular expression: missing )" in done.output
    done = run("cavity2d", "--only", "^trt Re 100$", "--only", "trt,bgk")
    assert "--only 'trt,bgk': no variant matches; there are: " in str(done.exception)
    assert "trt Re 100" in str(done.exception)
    assert not list(tmp_path.glob("validation.out/*/*"))


def test_a_heavy_fluid_falls_as_fast_as_theory_has_it(run):
    """Also the tension of free_energy, and a force on each fluid."""
    done = run("rayleigh_taylor", "--set", "wavelengths=[72]")
    assert done.exit_code == 0, done.output
    found = re.search(r"growth over theory: ([.\d]+)", done.output)
    assert float(found[1]) == pytest.approx(0.966, abs=0.004)


def test_a_capillary_wave_of_two_fluids_that_repel_each_other(run, tmp_path):
    """A small wave; a flat interface and two drops give the tension that its theory uses.

    Its frequency is lower by 2 %; by 3.0, 1.2 and 0.4 % at 48, 80 and 112 cells.
    """
    small = ["--set", "wavelengths=[64]", "--set", "radii=[12, 16]"]
    done = run("capillary_wave", "--only", "shan_chen", *small)
    assert done.exit_code == 0, done.output
    facts = json.loads((tmp_path / "validation.out/capillary_wave.json").read_text())
    found = " ".join(row["found"] for row in facts["rows"])
    pairs = re.findall(r"([a-z][\w ]+): ([-+\w.]+) \(", found)
    figures = {name: float(value) for name, value in pairs}
    assert figures["frequency over theory"] == pytest.approx(0.981, abs=0.004)
    assert 1.05 < figures["decay rate over theory"] < 1.2
    assert abs(figures["tension of drops over flat interface"] - 1) < 0.03


def test_a_laminar_kida_vortex_loses_what_its_enstrophy_costs(run, tmp_path):
    """Within 2 %, with the settings of a smaller flow; the snapshots are gone when it ends.

    Its spectrum adds up to the energy of that time.
    """
    flow = ["--set", "size=48", "--set", "reynolds=[100]", "--set", "until=0.6"]
    flow += ["--set", "spectrum_at=0.5"]
    done = run("kida", "--only", "^regularized", *flow)
    assert done.exit_code == 0, done.output
    assert "| regularized Re 100 | transforms: 2 " in done.output
    assert done.output.count("over the law") == 2
    assert not list(tmp_path.glob("**/*.vtkhdf"))
    facts = json.loads((tmp_path / "validation.out/kida.json").read_text())
    curves = facts["curves"]["regularized Re 100"]
    k, E = curves["spectrum, Re = 100"]
    assert k[0] >= 2
    assert k[-1] < 24
    t, energy = curves["kinetic energy, Re = 100"]
    assert sum(E) == pytest.approx(np.interp(20 * 4 * 0.05 * 2 * np.pi / 48, t, energy), rel=2e-3)
    refused = run("kida", "--set", "sise=48")
    assert refused.exit_code == 1
    assert (
        "--set sise: unknown setting; allowed for kida: size, reynolds, until, spectra, spectrum_at"
        in str(refused.exception)
    )


@pytest.mark.parametrize("shape", [(10, 7, 12), (9, 8, 11)])
def test_transforms_of_waves(tools, shape):
    """omega.omega / 2, (div u)^2 and rho div u of waves that are known."""
    from spectral_balance import sums

    random = np.random.default_rng(1)
    z, y, x = np.meshgrid(*(2 * np.pi * np.arange(n) / n for n in shape), indexing="ij")

    def field():
        value, slopes = 0, [0, 0, 0]
        for _ in range(5):
            m, a, phase = random.integers(-2, 3, 3), random.normal(), random.uniform(0, 6)
            angle = m[0] * x + m[1] * y + m[2] * z + phase
            value = value + a * np.cos(angle)
            steps = 2 * np.pi * m / shape[::-1]
            slopes = [s - a * k * np.sin(angle) for s, k in zip(slopes, steps, strict=True)]
        return value, slopes

    (u, du), (v, dv), (w, dw), (p, _) = (field() for _ in range(4))
    curl, div = (dw[1] - dv[2], du[2] - dw[0], dv[0] - du[1]), du[0] + dv[1] + dw[2]
    found = sums(np.stack([u, v, w], -1), 1 + p)
    expected = {"enstrophy": sum(c**2 for c in curl) / 2, "dilatation": div**2, "work": p * div}
    assert found == pytest.approx({name: each.mean() for name, each in expected.items()})


def test_waves_of_theory(tools):
    """The solution at t = 0, without viscosity, and exp(z^2) erfc(z) in both half planes."""
    from validations.capillary_wave import damped_sine, prosperetti, scaled_erfc

    t = np.linspace(0, 40, 81)
    assert np.abs(prosperetti(t, 0.1, 1e-9, 0.04) - np.cos(0.2 * t)).max() < 1e-3
    assert abs(prosperetti(t, 0.1, 0.5, 0.04)[0] - 1) < 1e-9
    omega, decay = damped_sine(t, np.exp(-0.01 * t) * np.cos(0.2 * t + 0.3))
    assert abs(omega - 0.2) < 1e-9
    assert abs(decay - 0.01) < 1e-9
    for x in (-1.5, -0.2, 0.0, 0.7, 2.0):
        assert abs(scaled_erfc([x])[0] / (np.exp(x**2) * erfc(x)) - 1) < 1e-6


def test_a_wrong_flow_fails(tmp_path, tools):
    """Bounds are compared: NaN and what lies outside are not good."""
    from validations import Finding

    assert Finding("x", 0.5, 0, 1).good
    assert not Finding("x", 1.5, 0, 1).good
    assert not Finding("x", float("nan")).good


@pytest.mark.parametrize("n", [100, 384])
def test_the_lid_of_the_cavity_is_its_own_mirror_image(tools, n):
    """In every bit, in cells and on links between them: its loss of symmetry is the flow's."""
    from validations.cavity_precisions import LID, SPEED

    from mpilbm.core.formulas.parser import Formula

    lid = Formula(LID, ("x", "y", "nx", "ny"))
    for at in (np.arange(n) + 0.5, np.arange(n + 1.0)):
        u = lid.evaluate(x=at, y=at[:, None], nx=float(n), ny=float(n))
        assert (u == u[::-1]).all()
        assert (u == u[:, ::-1]).all()
        assert SPEED * 0.999 < u.max() <= SPEED


def test_settings_are_refused_before_anything_runs(run, tmp_path):
    """The first in a process of its own, which ends with a message."""
    command = [sys.executable, str(ROOT / "tools/validate"), "duct", "kida", "--only", "12"]
    command += ["--set", "size=48"]
    refused = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=280)
    assert refused.returncode == 1
    assert refused.stderr.startswith("tools/validate: ")
    assert "--set size: unknown setting; allowed for duct: nothing" in refused.stderr
    refused = run("kida", "duct", "--set", "size=8", "--set", "until=0.3")
    assert "--set size: unknown setting; allowed for duct: nothing" in str(refused.exception)
    assert not list(tmp_path.glob("validation.out/*/*"))
    refused = run("kida", "--set", "size=large")
    assert "--set size: found 'large'; allowed: a number" in str(refused.exception)


def test_one_reynolds_number_needs_no_list(tools, monkeypatch):
    from validations.kida import VALIDATION

    for given in (100, [100]):
        monkeypatch.setattr(VALIDATION, "settings", VALIDATION.settings | {"reynolds": given})
        assert "bgk Re 100" in VALIDATION.variants(False)


def test_a_run_starts_only_from_one_that_came_to_its_end(run, tmp_path):
    """One that ended in NaN leaves its first snapshot."""
    name = "validation.out/channel/832_x_104_x_104__start_of_the_larger"
    (tmp_path / name).mkdir(parents=True)
    (tmp_path / name / "snapshot_000000000.vtkhdf").touch()
    (tmp_path / name / "summary.json").write_text('{"status": "unstable"}')
    refused = run("channel", "--full", "--only", "^1664")
    assert refused.exit_code == 1
    assert "first run '832 x 104 x 104, start of the larger'" in str(refused.exception)
