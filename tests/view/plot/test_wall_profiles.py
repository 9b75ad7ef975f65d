"""Statistics as pictures, in wall units where the flow is along a wall."""

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from support import ROOT

from mpilbm import Simulation, open_run
from mpilbm.case.case import parse_case
from mpilbm.case.driving import forced_channel
from mpilbm.cli import cli
from mpilbm.view.plot.statistics_profiles import in_wall_units

pytest.importorskip("matplotlib")

N, G, NU = 12, 1e-5, 0.005
CHANNEL = {
    "title": "Channel",
    "lattice": {"name": "D3Q19"},
    "backend": {"name": "cpu"},
    "domain": {"size": [4, 12, 5], "periodic": [True, False, True]},
    "fluid": {"viscosity": NU},
    "collision": {"name": "trt"},
    "force": {"name": "guo", "value": [G, 0, 0]},
    "boundary": [{"name": "bounce_back", "where": ["y-", "y+"]}],
    "initial": {"u": [f"{G}/(2*{NU})*y*(ny - y)", 0, 0], "non_equilibrium": True},
    "run": {"steps": 20},
    "output": [{"name": "statistics", "every": 5, "average": ["x", "z"]}],
}
DNS = ROOT / "cases/reference/channel_retau180_mkm1999.csv"


def run(folder, **changes):
    with Simulation(parse_case(CHANNEL | changes, "channel.toml"), directory=folder) as sim:
        sim.run()
    return open_run(folder)


@pytest.fixture(scope="module")
def laminar(tmp_path_factory):
    return run(tmp_path_factory.mktemp("wall") / "laminar")


def plot(folder, *arguments):
    return CliRunner().invoke(cli, ["plot", str(folder), *map(str, arguments)])


def test_poiseuille_flow_in_wall_units(laminar):
    """U+ = y+ (1 - y+ / (2 Re_tau)) between two walls, with u_tau^2 = G h."""
    wall = in_wall_units(laminar.case, laminar.profiles["y"])
    u_tau = (G * N / 2) ** 0.5
    assert wall.u_tau == pytest.approx(u_tau, rel=1e-12)
    assert wall.source == "from the driving force"
    assert wall.re_tau == pytest.approx(u_tau * N / 2 / NU)
    assert (wall.flow, wall.normal, wall.third) == ("x", "y", "z")
    assert wall.y == pytest.approx((np.arange(6) + 0.5) * u_tau / NU)
    exact = wall.y * (1 - wall.y / (2 * wall.re_tau))
    assert wall.columns["Uplus"] == pytest.approx(exact, abs=0.01)
    assert np.abs(wall.columns["uu"]).max() < 1e-3


def test_the_slope_at_the_wall_gives_the_same_friction(tmp_path):
    """A force that is a formula is not known to drive the flow."""
    given = {"name": "guo", "value": [f"{G} + 0*t", 0, 0]}
    found = run(tmp_path, force=given)
    assert forced_channel(found.case) is None
    wall = in_wall_units(found.case, found.profiles["y"])
    assert wall.source == "from the slope of U at the wall"
    assert wall.u_tau == pytest.approx((G * N / 2) ** 0.5, rel=0.01)


def test_a_wall_model_gives_the_friction_of_its_law(tmp_path):
    """At y+ = 2 nu U / y of the second cell, in place of the slope of U at the wall."""
    given = {"name": "guo", "value": [f"{G} + 0*t", 0, 0]}
    model = {"name": "wall_model", "law": "log", "sample": 2, "where": ["y-", "y+"]}
    found = run(tmp_path, force=given, boundary=[model])
    wall = in_wall_units(found.case, found.profiles["y"])
    assert wall.source == "from the law log at the mean of U"
    assert wall.u_tau == pytest.approx((G * (N - 1.5) / 2) ** 0.5, rel=0.005)


def test_a_mirror_and_one_wall_are_a_channel_of_the_whole_height():
    sides = [{"name": "bounce_back", "where": ["y+"]}, {"name": "free_slip", "where": ["y-"]}]
    channel = forced_channel(parse_case(CHANNEL | {"boundary": sides}, "channel.toml"))
    assert channel.h == N
    assert channel.u_tau == pytest.approx((G * N) ** 0.5)
    body = {
        "shape": {"name": "sphere", "centre": [2, 6, 2], "radius": 1.5},
        "boundary": {"name": "bounce_back"},
    }
    assert forced_channel(parse_case(CHANNEL | {"body": [body]}, "channel.toml")) is None


def test_stresses_seen_from_both_walls(laminar, tmp_path):
    """<u'v'> changes its sign with the normal, <u'u'> does not."""
    profile = laminar.profiles["y"]
    profile.stress["xy"][:] = np.linspace(-3, 3, N)
    profile.stress["xx"][:] = np.linspace(1, 3, N)
    wall = in_wall_units(laminar.case, profile)
    assert wall.columns["uv"] * wall.u_tau**2 == pytest.approx(np.linspace(-3, 3, N)[:6])
    assert wall.columns["uu"] * wall.u_tau**2 == pytest.approx(2)


def test_the_plot_is_compared_with_a_cited_reference(laminar, tmp_path):
    own = tmp_path / "own.csv"
    own.write_text("# CITE: Somebody 2001\nyplus,Uplus,uu\n3.5,3.5,0\n4.5,3,\n")
    done = plot(laminar.directory, "--reference", own, "--output", tmp_path)
    assert done.exit_code == 0, done.output
    assert "u_tau = 0.007746 cells/step from the driving force" in done.output
    assert "U+: largest deviation from own.csv is" in done.output
    assert (tmp_path / "statistics_y.png").stat().st_size > 10_000
    done = plot(laminar.directory, "--reference", DNS, "--output", tmp_path)
    assert done.exit_code == 0, done.output
    assert "<u' v'>+: largest deviation" in done.output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("yplus,speed\n1,1\n", "none of Uplus, uu, vv, ww, uv"),
        ("yplus,Uplus\n,1\n2,2\n", "has an empty or infinite yplus"),
        ("yplus,Uplus\n", "no points"),
        ("yplus,Uplus\n1,many\n", "cannot be read as a reference"),
    ],
)
def test_bad_references_are_refused(laminar, tmp_path, text, words):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    done = plot(laminar.directory, "--reference", path, "--output", tmp_path)
    assert done.exit_code == 2, done.output
    assert words in " ".join(done.output.split())
    assert "Traceback" not in done.output


def test_a_flow_without_walls_has_no_wall_units(tmp_path):
    domain = CHANNEL["domain"] | {"periodic": [True, True, True]}
    found = run(tmp_path / "open", domain=domain, boundary=[], initial={"u": [0.01, 0, 0]})
    done = plot(found.directory, "--output", tmp_path)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "statistics_y.png").exists()
    done = plot(found.directory, "--reference", DNS, "--output", tmp_path)
    assert done.exit_code == 2
    assert "is in wall units" in " ".join(done.output.split())


def test_a_damaged_file_is_refused(tmp_path):
    found = run(tmp_path)
    (path,) = tmp_path.glob("statistics_y_*.h5")
    with h5py.File(path, "r+") as file:
        del file["u"]
    done = plot(found.directory, "--output", tmp_path)
    assert done.exit_code == 2
    assert "has no dataset 'u'" in " ".join(done.output.split())
