"""cases/pipe.toml in coarse cells and with a viscous fluid: the law of Hagen & Poiseuille in SI."""

import csv
from math import pi

import pytest
from click.testing import CliRunner
from support import ROOT

from mpilbm.cli import cli

DENSITY = 998.2041  # kg/m^3, water at 20 degrees Celsius
VISCOSITY = 1e-4  # m^2/s
DIAMETER, SPEED = 0.01, 0.1
ODD = 3 * VISCOSITY * 2.25e-4 / 0.9e-3**2  # tau - 1/2 for a step of 0.225 ms


def mean_velocity(folder, loss, *settings):
    """The mean velocity in m/s after 0.25 s, and the drag of the wall per volume of its cells."""
    chosen = {
        "units.cell": "0.9 mm",
        "run.steps": "0.25 s",
        "fluid.viscosity": f"{VISCOSITY} m^2/s",
        "initial.u": '["0.1 m/s", 0, 0]',
        "collision.omega_third": 1 / (1 / 2 + 3 / 16 / ODD),
        "force.value": f'["{loss} Pa/m", 0, 0]',
        "body.wall.boundary.name": "interpolated",
    }
    options = [word for key, value in chosen.items() for word in ("--set", f"{key}={value}")]
    for value in settings:
        options += ["--set", value]
    options += ["--output", str(folder)]
    result = CliRunner().invoke(cli, ["run", str(ROOT / "cases" / "pipe.toml"), *options])
    assert result.exit_code == 0, result.output
    with (folder / "monitor.csv").open() as file:
        *_, monitor = csv.DictReader(file)
    with (folder / "forces_wall.csv").open() as file:
        *_, forces = csv.DictReader(file)
    length = 2 * 0.9e-3  # 1.6 mm are rounded to two cells
    fluid = DENSITY * length * pi * DIAMETER**2 / 4
    speed = float(monitor["momentum_x_kg_m_per_s"]) / fluid
    volume = float(monitor["mass_kg"]) / DENSITY
    assert float(monitor["time_s"]) == pytest.approx(0.25, rel=1e-3)
    return speed, float(forces["force_x_N"]) / volume


def test_the_pressure_loss_is_that_of_hagen_and_poiseuille(tmp_path):
    loss = 32 * VISCOSITY * DENSITY * SPEED / DIAMETER**2
    speed, drag = mean_velocity(tmp_path, round(loss, 3))
    assert drag == pytest.approx(loss, rel=1e-3)
    assert speed == pytest.approx(SPEED, rel=0.02)
