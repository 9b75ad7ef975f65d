"""Curves over time, and options of `mpilbm plot`.

More than 20 s: each test draws figures.
"""

import numpy as np
import pytest
from click.testing import CliRunner
from support.image_cases import run as run_parts
from support.image_cases import tables

from mpilbm import Simulation, open_run
from mpilbm.case.case import parse_case
from mpilbm.cli import cli
from mpilbm.outputs.core.averages import last_half
from mpilbm.view.plot.forces import forces_figure
from mpilbm.view.plot.frequencies import oscillation
from mpilbm.view.plot.pictures import pyplot
from mpilbm.view.plot.time_series import (
    monitor_figure,
    permeability_figure,
)

pytest.importorskip("matplotlib")


@pytest.mark.parametrize("frequency", [0.01, 0.0137, 0.00731])
def test_the_frequency_is_that_of_the_zero_crossings(frequency):
    """To 1e-3 in a few periods, with harmonics, a trend and noise; the error covers it."""
    time = np.arange(0, 5.5 / frequency, 5.0)
    wave = 2 * np.pi * frequency * time + 0.4
    found = oscillation(time, 3 + 0.2 * np.sin(wave))
    assert found.frequency == pytest.approx(frequency, rel=2e-4)
    assert found.periods in (4, 5)
    noise = 0.01 * np.random.default_rng(3).standard_normal(time.size)
    other = 3 + time / 500 + np.sin(wave) * (1 + time / 1000) + 0.2 * np.sin(2 * wave) + noise
    found = oscillation(time, other)
    assert found.frequency == pytest.approx(frequency, rel=2e-3)
    assert abs(found.frequency - frequency) < 5 * found.error < 0.02 * frequency


def test_what_does_not_oscillate_has_no_frequency():
    time = np.arange(100.0)
    sine = np.sin(2 * np.pi * time / 12)
    assert oscillation(time, np.full(100, 2.0)) is None
    assert oscillation(time, time) is None
    assert oscillation(time[:30], sine[:30]) is None  # less than three periods
    assert oscillation(time, np.sin(2.1 * time)) is None  # less than four values in a period
    assert last_half(time) == slice(50, None)


def test_neither_have_noise_and_a_force_that_is_round_off_beside_the_drag():
    rng, time = np.random.default_rng(1), np.arange(0, 400, 2.0)
    smooth = np.ones(6) / 6
    for _ in range(50):
        noise = rng.standard_normal(time.size)
        assert oscillation(time, noise) is None
        assert oscillation(time, np.convolve(noise, smooth, "same")) is None
    tiny = 1e-7 * np.sin(2 * np.pi * time / 40)
    assert oscillation(time, tiny) is not None
    assert oscillation(time, tiny, size=0.8) is None


CYLINDER = {
    "lattice": {"name": "D2Q9"},
    "domain": {"size": [24, 12], "periodic": [True, True]},
    "fluid": {"viscosity": 0.1},
    "run": {"steps": 60, "steady": {"every": 20, "tolerance": 1e-9}},
    "initial": {"u": [0.05, 0]},
    "backend": {"name": "cpu"},
    "body": [
        {
            "label": "rod",
            "shape": {"name": "cylinder", "centre": [8, 6], "radius": 2},
            "boundary": {"name": "bounce_back"},
        }
    ],
    "output": [
        {"name": "body_forces", "every": 5, "velocity": [0.05, 0]},
        {"name": "snapshot", "every": 30},
        {"name": "monitor", "every": 10},
        {"name": "probe", "every": 10, "points": [[14, 6]]},
    ],
}


@pytest.fixture(scope="module")
def cylinder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cylinder") / "rod.out"
    with Simulation(parse_case(CYLINDER, "rod.toml"), directory=folder) as sim:
        sim.run()
    return folder


def plot(*arguments):
    return CliRunner().invoke(cli, ["plot", *map(str, arguments)])


def test_all_that_a_run_has_is_drawn_with_names_and_units(cylinder, tmp_path):
    result = plot(cylinder, "--output", tmp_path, "--format", "svg")
    assert result.exit_code == 0, result.output
    drawn = {path.stem for path in tmp_path.glob("*.svg")}
    assert drawn == {"speed", "vorticity", "profiles", "monitor", "forces_rod", "probe_3", "steady"}
    assert "rod: c_d +x: mean" in result.output
    figure, _ = forces_figure(pyplot(), open_run(cylinder), "forces_rod")
    drag = open_run(cylinder).table("forces_rod")["c_d"]
    assert f"mean {drag[len(drag) // 2 :].mean():.5g}, rms" in figure.axes[0].get_title()
    for axis in figure.axes:
        assert axis.get_ylabel() in ("c_d +x", "c_l +y")
    assert figure.axes[-1].get_xlabel() == "time (steps)"


SLIT = {
    "lattice": {"name": "D2Q9"},
    "domain": {"size": [4, 5], "periodic": [True, False]},
    "fluid": {"viscosity": 0.2},
    "collision": {"name": "trt", "magic": 3 / 16},
    "force": {"name": "guo", "value": [1e-5, 0]},
    "backend": {"name": "cpu"},
    "boundary": [{"name": "bounce_back", "where": ["y-", "y+"]}],
    "run": {"steps": 800},
    "precision": {"compute": "float64", "storage": "float64"},
}


@pytest.mark.parametrize(
    ("more", "unit", "words"),
    [
        ({}, "cells^2", "permeability k_x = 2.125 cells^2, "),
        ({"voxel": "5 um"}, "mD", "permeability k_x = 53829 mD (5.3125e-11 m^2, 2.125 cells^2), "),
    ],
)
def test_the_permeability_has_one_unit_on_its_axis_and_a_line_of_text(tmp_path, more, unit, words):
    """The slit of test_permeability.py: k = 5^2/12 + 1/24."""
    outputs = [{"name": "permeability", "every": 100} | more]
    with Simulation(parse_case(SLIT | {"output": outputs}, "slit.toml"), directory=tmp_path) as sim:
        sim.run()
    plt, run = pyplot(), open_run(tmp_path)
    figure, lines = permeability_figure(plt, run)
    (axis,) = figure.axes
    (curve,) = axis.lines
    table = run.table("permeability")
    assert axis.get_ylabel() == f"permeability ({unit})"
    assert np.array_equal(curve.get_ydata(), table["k_x_mD" if more else "k_x"])
    number = words.split(" = ")[1].split(" ")[0]
    assert curve.get_label() == f"k_x, last: {number} {unit}"
    reynolds = table["reynolds"][-1]
    text = f"Re = <u> sqrt(k) / nu = {reynolds:.3g}, porosity 1, tortuosity 1 at step 800"
    assert lines == [words + text]
    assert lines[0] in plot(tmp_path).output
    plt.close(figure)


@pytest.mark.parametrize("units", [None, {"cell": "1 mm", "step": "1 ms", "density": "1 kg/m^3"}])
def test_each_panel_of_the_monitor_has_a_unit(tmp_path, units):
    tables = SLIT | {"output": [{"name": "monitor", "every": 1}], "run": {"steps": 3}}
    tables["scalar"] = [{"label": "T", "diffusivity": 0.1}]
    case = parse_case(tables | ({"units": units} if units else {}), "slit.toml")
    with Simulation(case, directory=tmp_path) as sim:
        sim.run()
    plt = pyplot()
    figure = monitor_figure(plt, dict(open_run(tmp_path).table("monitor")), "slit")
    found = {axis.get_title(): axis.get_ylabel() for axis in figure.axes}
    shared = {
        "relative change of mass": "(1)",
        "mean T": "(unit of T)",
        "glups": "(10^9 cells/s)",
        "variance T": "(unit of T)^2",
    }
    assert found == shared | (
        {
            "momentum": "(kg m/s/m)",
            "kinetic energy": "(J/m)",
            "enstrophy": "(m^3/s^2/m)",
            "max speed": "(m/s)",
            "dissipation T": "(unit of T)^2/s",
        }
        if units
        else {
            "momentum": "(rho_0 cells^3/step)",
            "kinetic energy": "(rho_0 cells^4/step^2)",
            "enstrophy": "(cells^2/step^2)",
            "max speed": "(cells/step)",
            "dissipation T": "(unit of T)^2/step",
        }
    )
    assert {axis.get_xlabel() for axis in figure.axes} == {"time (s)" if units else "time (steps)"}
    plt.close(figure)


@pytest.mark.parametrize(
    ("units", "unit"),
    [
        ({"cell": "1 mm", "step": "1 ms", "density": "1000 kg/m^3"}, "N/m"),
        (None, "rho_0 cells^3/step^2"),
    ],
)
def test_forces_are_in_the_units_of_the_time_axis(tmp_path, units, unit):
    changed = {"output": [{"name": "body_forces", "every": 1}], "run": {"steps": 4}}
    case = parse_case(CYLINDER | changed | ({"units": units} if units else {}), "rod.toml")
    with Simulation(case, directory=tmp_path) as sim:
        sim.run()
    plt, run = pyplot(), open_run(tmp_path)
    figure, lines = forces_figure(plt, run, "forces_rod")
    assert [axis.get_ylabel() for axis in figure.axes] == [f"force {a} ({unit})" for a in "xy"]
    last = "force_x_N_per_m" if units else f"force_x ({unit})"
    assert figure.axes[0].lines[0].get_ydata()[-1] == run.table("forces_rod")[last][-1]
    assert lines[0].startswith(f"rod: force x ({unit}): mean ")
    plt.close(figure)


def test_a_step_a_field_and_a_plane_are_chosen(tmp_path):
    outputs = [{"name": "snapshot", "every": 10}]
    fields = run_parts(tmp_path / "run", given=tables(outputs=outputs))
    result = plot(tmp_path / "run", "--field", "u", "--plane", "x=6.5", "--step", 20)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "run" / "u.png").stat().st_size > 5000
    assert not (tmp_path / "run" / "speed.png").exists()
    assert np.isfinite(fields["u"]).all()


def test_a_film_of_all_snapshots(cylinder, tmp_path):
    pytest.importorskip("PIL")
    result = plot(cylinder, "--film", "--field", "rho", "--output", tmp_path)
    assert result.exit_code == 0, result.output
    (made,) = tmp_path.iterdir()
    assert made.name in ("rho.mp4", "rho.gif")
    assert made.stat().st_size > 1000
    result = plot(cylinder, "--film", "--field", "phi")
    assert result.exit_code == 2
    assert "allowed: rho, u" in result.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--step", 7], r"has no 'snapshot' of step 7; allowed: 30, 60"),
        (["--field", "phi"], r"has no field 'phi'; allowed: rho, u"),
        (["--plane", "x=3"], r"no meaning in two dimensions"),
        (["--format", "bmp"], r"'bmp' is not one of"),
    ],
)
def test_wrong_choices(cylinder, options, message):
    result = plot(cylinder, *options)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize("plane", ["x=21", "w=3", "x", "x=3 kg", "=", "y=nan"])
def test_wrong_planes(tmp_path, plane):
    run_parts(tmp_path / "run", given=tables(outputs=[{"name": "snapshot", "every": 20}]))
    result = plot(tmp_path / "run", "--plane", plane)
    assert result.exit_code == 2
    assert "allowed: an axis and a position in cells, x=0 to 20" in result.output
