"""Pictures of runs: drawn from synthetic snapshots whose profiles are known exactly.

More than 20 s: each test draws figures.
"""

from pathlib import Path

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from support.snapshots import last_snapshot, write_snapshot

from mpilbm.cli import cli
from mpilbm.view.plot.profiles import interpolate, pick_column, read_reference

pytest.importorskip("matplotlib")

SQUARE = """
title = "Square"
[lattice]
name = "D2Q9"
[domain]
size = [16, 12]
[fluid]
viscosity = 0.012
[[boundary]]
name = "bounce_back"
where = ["x-", "x+", "y-"]
[[boundary]]
name = "bounce_back"
where = ["y+"]
velocity = [0.1, 0]
[run]
steps = 1
"""
CHANNEL = """
title = "Channel with a ball"
[lattice]
name = "D3Q19"
[domain]
size = [13, 9, 10]
periodic = [true, true, true]
[fluid]
viscosity = 0.1
[[body]]
shape = {name = "sphere", centre = [6, 5, 5], radius = 2.0}
boundary = {name = "bounce_back"}
[run]
steps = 1
"""
MONITOR = "step,time,mass,momentum_x,momentum_y,kinetic_energy,glups\n"


def cavity_profile(y):
    """u/U of the synthetic cavity: a cubic, which the comparison interpolates exactly."""
    return y**3 - y * (1 - y)


@pytest.fixture
def square(tmp_path):
    """A square run whose u depends on y/L as cavity_profile, with v on x/L alike."""
    y, x = ((np.arange(n) + 0.5) / n for n in (12, 16))
    u = np.zeros((1, 12, 16, 3), np.float32)
    u[0, :, :, 0] = 0.1 * cavity_profile(y)[:, None]
    u[0, :, :, 1] = 0.1 * cavity_profile(x)[None, :]
    write_snapshot(tmp_path, SQUARE, np.zeros_like(u), step=3)
    write_snapshot(tmp_path, SQUARE, u)
    rows = "".join(f"{step},{step},192.0,{step},1,0.5,nan\n" for step in range(5))
    (tmp_path / "monitor.csv").write_text(MONITOR + rows)
    return tmp_path


def reference(path: Path, text: str) -> Path:
    path.write_text("# a comment, with a comma\n" + text)
    return path


def plot(*arguments):
    return CliRunner().invoke(cli, ["plot", *(str(argument) for argument in arguments)])


def test_draws_every_picture_and_says_where(square):
    result = plot(square, "--output", square / "pictures")
    assert result.exit_code == 0, result.output
    for name in ("speed", "vorticity", "profiles", "monitor"):
        file = square / "pictures" / f"{name}.png"
        assert file.read_bytes().startswith(b"\x89PNG")
        assert f"wrote {file}" in result.output


@pytest.mark.parametrize("still", [True, False])
def test_three_dimensions_with_a_body(tmp_path, still):
    rng = np.random.default_rng(1)
    u = np.zeros((10, 9, 13, 3)) if still else rng.normal(size=(10, 9, 13, 3))
    u[3:7, 3:7, 4:8] = 0
    write_snapshot(tmp_path, CHANNEL, u)
    result = plot(tmp_path)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "vorticity.png").exists()
    assert not (tmp_path / "monitor.png").exists()


def test_a_channel_of_one_cell(tmp_path):
    case = SQUARE.replace("[16, 12]", "[1, 12]")
    write_snapshot(tmp_path, case, np.ones((1, 12, 1, 3)))
    assert plot(tmp_path).exit_code == 0


def test_the_last_step_is_drawn(square, tmp_path):
    write_snapshot(square, CHANNEL, np.zeros((1, 12, 1, 3)), step=3)
    assert plot(square, "--output", tmp_path / "last").exit_code == 0
    assert plot(square, "--output", tmp_path / "given", "--step", "7").exit_code == 0
    last, given = (tmp_path.joinpath(name, "speed.png") for name in ("last", "given"))
    assert last.read_bytes() == given.read_bytes()


# -------------------------------------------------------------------------------- vorticity


@pytest.mark.parametrize(("across", "up", "normal"), [(0, 1, 2), (0, 2, 1), (1, 2, 0)])
def test_vorticity_of_a_rigid_rotation_is_twice_its_rate(tmp_path, across, up, normal):
    from mpilbm.view.plot.planes import cuts_of
    from mpilbm.view.plot.slices import slice_of
    from mpilbm.view.results.snapshot import view

    z, y, x = np.meshgrid(*(np.arange(n) + 0.5 for n in (10, 9, 13)), indexing="ij")
    rate = np.array([0.01, 0.02, 0.03])
    u = np.cross(rate, np.stack([x, y, z], axis=-1))
    write_snapshot(tmp_path, CHANNEL.split("[[body]]")[0] + "[run]\nsteps = 1\n", u)
    with view(last_snapshot(tmp_path)) as snapshot:
        cut = next(each for each in cuts_of(snapshot) if each.normal == normal)
        *_, vorticity = slice_of(snapshot, cut)
    assert (cut.across, cut.up) == (across, up)
    assert np.allclose(vorticity, 2 * rate[normal])


# ------------------------------------------------------------------------------- references


def test_deviation_from_a_reference(square):
    # Re = 0.1 * 12 / 0.012 = 100 across y, 0.1 * 16 / 0.012 = 133.3 across x
    y = np.array([0.0, 0.1, 0.3, 0.77, 1.0])
    rows = [f"{at},9,{cavity_profile(at) + 0.02 * (at == 0.3)}" for at in y]
    vertical = reference(square / "u.csv", "y,u_Re1000,u_Re100\n" + "\n".join(rows) + "\n0.5,1,\n")
    rows = [f"{at},{cavity_profile(at)}" for at in y]
    horizontal = reference(square / "v.csv", "x,v\n" + "\n".join(rows))
    result = plot(square, "--reference", vertical, "--reference", horizontal)
    assert result.exit_code == 0, result.output
    assert "u/U along y: largest deviation from u.csv (Re = 100) is 0.0200, at y = 0.3" in (
        result.output
    )
    assert "v/U along x: largest deviation from v.csv (Re = 133.3) is 0.0000" in result.output
    assert (square / "comparison.png").exists()


def test_reynolds_picks_the_column(square):
    file = reference(square / "u.csv", "y,u_Re100,u_Re400\n0.5,0,0\n0.6,0,0\n")
    assert "(Re = 400)" in plot(square, "--reference", file, "--reynolds", "400").output


def test_interpolation_is_exact_for_cubics():
    x = np.sort(np.random.default_rng(2).uniform(0, 1, 9))
    at = np.array([x[0], 0.5 * (x[0] + x[1]), 0.5, x[-1]])
    assert np.allclose(interpolate(x, 2 * x**3 - x + 1, at), 2 * at**3 - at + 1)


def test_the_published_tables_are_understood():
    folder = Path(__file__).parents[3] / "cases" / "reference"
    for file in folder.glob("cavity*.csv"):
        names, table = read_reference(file)
        assert table.shape[1] == len(names)
        assert pick_column(file, names, 1000.0)[0] >= 1


# -------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("y,u_Re400\n0.5,1\n", ("Reynolds number 100", "u_Re400", "--reynolds")),
        ("time,drag\n0,1\n", ("time,drag", "x, y or z")),
        ("y,u\n0.5,many\n", ("many",)),
        ("y,u\n0.5\n0.6,1\n", ("cannot be read", "lines of as many numbers")),
        ("", ("cannot be read", "a line of column names")),
        ("y,u\n", ("no points",)),
        ("y,u\n0,0\n1,1\n", ("no points between the walls",)),
        ("z,u\n0.5,0\n", ("two dimensions",)),
    ],
)
def test_bad_reference(square, text, words):
    result = plot(square, "--reference", reference(square / "bad.csv", text))
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    for word in ("bad.csv", *words):
        assert word in result.output


def test_missing_reference(square):
    result = plot(square, "--reference", "nowhere.csv")
    assert result.exit_code == 2
    assert "nowhere.csv" in result.output


def test_reference_without_a_lid(tmp_path):
    write_snapshot(tmp_path, SQUARE.replace("velocity = [0.1, 0]", ""), np.zeros((1, 12, 16, 3)))
    file = reference(tmp_path / "u.csv", "y,u\n0.5,0\n")
    result = plot(tmp_path, "--reference", file)
    assert result.exit_code == 2
    assert "moving wall" in result.output


def test_snapshot_without_velocity(tmp_path):
    write_snapshot(tmp_path, SQUARE, np.zeros((1, 12, 16)), name="rho")
    result = plot(tmp_path)
    assert result.exit_code == 2
    assert "no velocity" in result.output


@pytest.mark.parametrize("content", [b"", b"no HDF5 at all"])
def test_damaged_snapshot(tmp_path, content):
    (tmp_path / "snapshot_000000001.vtkhdf").write_bytes(content)
    result = plot(tmp_path)
    assert result.exit_code == 2
    assert "cannot be read" in result.output


def test_foreign_snapshot(tmp_path):
    with h5py.File(tmp_path / "snapshot_000000001.vtkhdf", "w") as file:
        file["VTKHDF/CellData/u"] = np.zeros(3)
    assert "is not a snapshot of mpilbm" in plot(tmp_path).output


def test_damaged_monitor(square):
    (square / "monitor.csv").write_text(MONITOR + "0,0,1,1,1,1,1\nx,0,1,1,1,1,1\n")
    result = plot(square)
    assert result.exit_code == 2
    assert "monitor.csv" in result.output


def test_without_matplotlib(square, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    result = plot(square)
    assert result.exit_code == 2
    assert "pip install 'mpilbm[plot]'" in result.output


def test_output_that_is_a_file(square):
    (square / "taken").write_text("")
    result = plot(square, "--output", square / "taken")
    assert result.exit_code == 2
    assert "taken is not a folder; choose another with --output" in result.output


def test_no_run_directory():
    assert "nowhere.out: no such folder" in plot("nowhere.out").output
