"""Wall units in 2D, with moving walls and in SI."""

import pytest
from click.testing import CliRunner

from mpilbm import Simulation, open_run
from mpilbm.case.case import parse_case
from mpilbm.cli import cli
from mpilbm.view.plot.statistics_profiles import in_wall_units

pytest.importorskip("matplotlib")

FLAT = {
    "lattice": {"name": "D2Q9"},
    "backend": {"name": "cpu"},
    "collision": {"name": "trt"},
    "domain": {"size": [4, 10], "periodic": [True, False]},
    "fluid": {"viscosity": 0.1},
    "run": {"steps": 10},
    "output": [{"name": "statistics", "every": 5, "average": ["x"]}],
    "boundary": [{"name": "bounce_back", "where": ["y-", "y+"]}],
}
FORCE = {"name": "guo", "value": [1e-5, 0]}


def run(folder, **changes):
    with Simulation(parse_case(FLAT | changes, "flat.toml"), directory=folder) as sim:
        sim.run()
    return open_run(folder)


def test_couette_flow_is_seen_from_one_wall(tmp_path):
    """U+ = y+ from the wall at rest, over the whole height, with u_tau^2 = nu U / H."""
    walls = [
        {"name": "bounce_back", "where": ["y-"]},
        {"name": "bounce_back", "where": ["y+"], "velocity": [-0.05, 0]},
    ]
    initial = {"u": ["-0.05*y/ny", 0], "non_equilibrium": True}
    found = run(tmp_path, boundary=walls, initial=initial)
    wall = in_wall_units(found.case, found.profiles["y"])
    assert len(wall.y) == 10
    assert wall.third is None
    assert wall.u_tau == pytest.approx((0.1 * 0.05 / 10) ** 0.5, rel=0.01)
    assert wall.columns["Uplus"] == pytest.approx(wall.y, rel=0.02)
    assert "ww" not in wall.columns


def test_the_text_is_in_si(tmp_path):
    """A speed of 1 cell per step is 10 m/s."""
    units = {"cell": 0.001, "velocity": 10.0, "density": 1000.0}
    fluid = {"viscosity": "1e-3 m^2/s"}
    found = run(tmp_path, units=units, fluid=fluid, force=FORCE)
    done = CliRunner().invoke(cli, ["plot", str(tmp_path)])
    assert done.exit_code == 0, done.output
    u_tau = in_wall_units(found.case, found.profiles["y"]).u_tau
    assert u_tau == pytest.approx((1e-5 * 5) ** 0.5)
    assert f"u_tau = {10 * u_tau:.4g} m/s from the driving force" in done.output


def test_a_flow_at_rest_has_no_wall_units(tmp_path):
    found = run(tmp_path)
    assert in_wall_units(found.case, found.profiles["y"]) is None
    assert CliRunner().invoke(cli, ["plot", str(tmp_path)]).exit_code == 0
    assert (tmp_path / "statistics_y.png").exists()
