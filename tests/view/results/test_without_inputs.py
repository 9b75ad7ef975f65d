"""Results are read without the input files of the run, in a folder that was moved.

More than 20 s: a run with all kinds of input, and each command that reads or draws it.
"""

import csv
import json
import shutil

import numpy as np
import pytest
from click.testing import CliRunner

import mpilbm
from mpilbm.cli import cli

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
STEPS = 40
OUTPUTS = [
    {"name": "snapshot", "every": 20},
    {"name": "snapshot", "label": "coarse", "every": 20, "stride": 2},
    {"name": "monitor", "every": 5},
    {"name": "statistics", "average": ["x", "z"], "every": 2, "write": 20},
    {"name": "probe", "every": 5, "file": "points.csv"},
    {"name": "checkpoint", "every": 20},
]
UNITS = {"cell": "1 mm", "step": "1 ms", "density": "1000 kg/m^3"}
LENGTHS = {"rock": 3.0, "ball": 4.0}  # of forces with a velocity; the others follow from the files


def box(*sides):
    """An STL file of a box of these sides, as text: two triangles on each side."""
    corners = np.array([[x, y, z] for z in (0, 1) for y in (0, 1) for x in (0, 1)]) * sides
    quads = [(0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5)]
    facets = [each for a, b, c, d in quads for each in ((a, b, c), (a, c, d))]
    loops = (
        "".join(f"vertex {x:g} {y:g} {z:g}\n" for x, y, z in corners[list(each)]) for each in facets
    )
    return (
        "solid box\n"
        + "".join(f"facet normal 0 0 0\nouter loop\n{loop}endloop\nendfacet\n" for loop in loops)
        + "endsolid box\n"
    )


def flow(folder):
    """A case in 3D with a body from each kind of file, and the velocities of an inlet."""
    mask = np.zeros((8, 12, 20), bool)
    mask[1:4, 1:4, 4:7] = True
    np.save(folder / "mask.npy", mask)
    (folder / "box.stl").write_text(box(3, 3, 3))
    (folder / "spheres.csv").write_text("x,y,z,r\n0,0,0,2\n1,0,0,1.5\n")
    np.save(folder / "scan.npy", mask[:4, :4, :8].astype("u1"))
    np.save(folder / "start.npy", np.full((8, 12, 20), 0.01))
    (folder / "inlet.csv").write_text("0,0.02,0,0\n40,0.03,0,0\n")
    (folder / "warm.csv").write_text("0,0.01\n40,0.02\n")
    (folder / "points.csv").write_text("2.5,2.5,2.5\n12.5,6.5,4.5\n")
    wall = {"name": "bounce_back"}
    return {
        "title": "flow",
        "lattice": {"name": "D3Q19"},
        "fluid": {"viscosity": 0.1},
        "domain": {"size": [20, 12, 8], "periodic": [False, False, True]},
        "backend": {"name": "cpu"},
        "run": {"steps": STEPS},
        "units": UNITS,
        "scalar": [
            {
                "label": "T",
                "diffusivity": 0.1,
                "initial": {"value": "start.npy"},
                "boundary": [
                    {"name": "value", "where": ["x-"], "value": "warm.csv"},
                    {"name": "outflow", "where": ["x+"]},
                ],
            }
        ],
        "boundary": [
            {"name": "equilibrium", "where": ["x-"], "velocity": "inlet.csv"},
            {"name": "equilibrium", "where": ["x+"], "rho": 1},
            {"name": "bounce_back", "where": ["y-", "y+"]},
        ],
        "body": [
            {"label": "mask", "mask": "mask.npy", "boundary": wall},
            {
                "label": "ball",
                "boundary": wall,
                "shape": {"name": "spheres", "file": "spheres.csv", "at": [12, 8, 4]},
            },
            {
                "label": "rock",
                "boundary": wall,
                "shape": {"name": "mesh", "file": "box.stl", "scale": 1, "at": [16, 3, 4]},
            },
            {
                "label": "scan",
                "boundary": wall,
                "shape": {"name": "voxels", "file": "scan.npy", "solid": ">= 1", "at": [0, 7, 0]},
            },
        ],
        "output": [
            *OUTPUTS,
            {"name": "body_forces", "every": 2, "body": ["mask"]},
            {"name": "body_forces", "every": 2, "body": ["rock", "ball"], "velocity": [0.02, 0, 0]},
        ],
    }


def command(*arguments):
    result = CliRunner().invoke(cli, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    """The results of a run by the command line, in another place, and its input files removed."""
    pytest.importorskip("trimesh")
    from mpilbm.core import printable

    folder = tmp_path_factory.mktemp("case")
    (folder / "flow.toml").write_text(printable.dumps(flow(folder)))
    command("run", folder / "flow.toml", "--output", folder / "flow.out")
    target = tmp_path_factory.mktemp("moved") / "results"
    shutil.move(folder / "flow.out", target)
    shutil.rmtree(folder)
    return target


def test_open_run_reads_all_results(moved):
    run = mpilbm.open_run(moved)
    assert run.size == (20, 12, 8)
    assert run.in_si
    assert run.field("u").shape == (8, 12, 20, 3)
    assert 0 < np.abs(run.field("u", lattice_units=True)).max() < 0.1
    assert run.solid().sum() > 27
    assert run.part("snapshot_coarse").field("u").shape == (4, 6, 10, 3)
    assert run.times[-1] == pytest.approx(STEPS * 1e-3)
    assert run.table("forces_rock").rows > 2
    for name in run.tables:
        assert run.table(name).rows > 2
    assert set(run.statistics()) == {"y"} == set(run.profiles)
    assert run.case.bodies[2].shape.file == "box.stl"


def test_commands_read_the_results(moved, tmp_path):
    output = command("plot", moved, "--output", tmp_path / "pictures")
    names = {path.stem for path in (tmp_path / "pictures").iterdir()}
    assert {"speed", "profiles", "monitor", "statistics_y", "forces_rock", "forces_mask"} <= names
    assert "rock: c d" in output or "rock: c_d" in output
    command("plot", moved, "--output", tmp_path / "one", "--field", "rho", "--plane", "x=4 mm")
    page = tmp_path / "page"
    page.mkdir()
    command("report", moved, "--output", page)
    text = next(page.iterdir()).read_text()
    assert "Reynolds" in text
    assert "No pictures" not in text
    assert "cannot be read" not in text
    assert "flow" in command("watch", moved, "--once")


def test_lengths_that_follow_from_files_are_in_the_summary(moved):
    found = json.loads((moved / "summary.json").read_text())["lengths"]
    assert found == pytest.approx(LENGTHS)


def test_xarray_reads_the_results(moved):
    xr = pytest.importorskip("xarray")
    backend = pytest.importorskip("mpilbm.view.results.xarray_backend").MpilbmBackend
    for part, values in (("snapshot", 8 * 12 * 20), ("snapshot_coarse", 4 * 6 * 10)):
        with xr.open_dataset(moved, engine=backend, part=part) as data:
            assert data["rho"].sel(time=0.02).size == values


def test_a_run_of_a_program_with_functions_and_arrays(tmp_path):
    def disc(x, y):
        return (x - 10) ** 2 + (y - 6) ** 2 < 9

    case = {
        "lattice": {"name": "D2Q9"},
        "fluid": {"viscosity": 2e-4},
        "backend": {"name": "cpu"},
        "domain": {"size": [20, 12], "periodic": [True, True]},
        "run": {"steps": STEPS},
        "initial": {"u": [np.full((12, 20), 0.01), 0]},
        "body": [
            {
                "label": "disc",
                "shape": disc,
                "boundary": {"name": "bounce_back", "velocity": ["-0.001*(y-6)", "0.001*(x-10)"]},
            }
        ],
        "output": [
            {"name": "snapshot", "every": 20},
            {"name": "body_forces", "every": 2, "velocity": [0.01, 0]},
        ],
    }
    with mpilbm.Simulation(mpilbm.load_case(case), directory=tmp_path / "run") as sim:
        sim.run()
    run = mpilbm.open_run(tmp_path / "run")
    assert run.field("u").shape == (12, 20, 2)
    with open(tmp_path / "run" / "forces_disc.csv") as file:
        assert len(list(csv.reader(file))) > 10
    command("report", tmp_path / "run")
    text = (tmp_path / "run" / "report.html").read_text()
    assert "predicted before the run, which was stable until its last step" in text
    assert "No pictures" not in text


def test_the_strouhal_number_uses_the_recorded_length(moved):
    from mpilbm.view.plot.forces import Scale, _strouhal_scale

    run = mpilbm.open_run(moved)
    assert _strouhal_scale(run, "ball") == pytest.approx(Scale(4.0, 4.0 / 0.02 * 1e-3))
    assert _strouhal_scale(run, "mask") is None
