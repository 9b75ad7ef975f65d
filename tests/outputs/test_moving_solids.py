"""Snapshots and films show bodies that move where they are at the step of the output."""

import h5py
import numpy as np
import pytest
from support.body_forces import flow
from support.cell_shares import shares
from support.mpi_runs import datasets
from support.runs import run_case
from support.slabs import Cluster

from mpilbm.case.case import parse_case
from mpilbm.outputs.drawing import SOLID
from mpilbm.parallel.ranks import world
from mpilbm.run.simulation import Simulation
from mpilbm.solids.moving_cells import PlacedBodies

Image = pytest.importorskip("PIL.Image")
to_rgb = pytest.importorskip("matplotlib.colors").to_rgb

BAR = {"name": "box", "lower": [6.2, 11.1], "upper": [20.1, 15.3]}
RING = {"name": "torus", "centre": [3.4, 5.3, 6.1], "radius": 3.1, "tube": 1.4, "axis": "y"}


def tables(shape, motion, size, outputs=()):
    body = {"label": "a", "shape": shape, "motion": motion}
    body |= {"boundary": {"name": "partially_saturated"}}
    lattice = "D2Q9" if len(size) == 2 else "D3Q19"
    given = flow(lattice, size=size, body=[body], output=list(outputs), run={"steps": 40})
    return given | {"initial": {"u": [0] * len(size)}}


@pytest.mark.parametrize(
    ("shape", "motion", "size"),
    [
        (BAR, {"name": "rotation", "rate": 0.02}, [27, 26]),
        (RING, {"name": "translation", "velocity": [-0.06, 0.05, 0.02]}, [15, 14, 16]),
    ],
)
def test_covered_cells_have_large_shares(shape, motion, size):
    """Also across periodic faces. At an edge through the centre it is about 1/4 or 3/4."""
    cluster = Cluster(tables(shape, motion, size), slabs=2).start().run(40)
    found, case = shares(cluster), cluster.case
    cells = (np.arange(n) for n in case.shape)
    placed = PlacedBodies.at(cluster.solvers[0].moving.bodies, 40)
    solid = placed.added(np.zeros(case.shape, bool), *cells)
    assert solid[found > 195].all()
    assert not solid[found < 60].any()
    assert solid.sum() > 50


def test_snapshots_and_films_of_a_bar_that_makes_a_quarter_turn(tmp_path):
    """Lying at first, upright at the end: cells of the snapshot, grey pixels of the pictures."""
    outputs = [
        {"name": "snapshot", "every": 160, "begin": 0},
        {"name": "picture", "every": 160, "begin": 0, "film": True, "range": [0, 1]},
    ]
    turn = {"name": "rotation", "angle": "pi/4*(1 - cos(pi*t/160))"}
    given = tables(BAR, turn, [27, 26], outputs) | {"run": {"steps": 160}}
    case = parse_case(given | {"backend": {"name": "cpu"}}, "a.toml")
    run_case(case, tmp_path / "run")
    for pattern, of in (("snapshot*.vtkhdf", cells_of), ("picture*.png", grey)):
        first, last = (of(file) for file in sorted((tmp_path / "run").glob(pattern)))
        (wide, low), (narrow, high) = extent(first), extent(last)
        assert wide > 2.5 * low, pattern
        assert high > 2.5 * narrow, pattern


def extent(flags):
    """The columns and rows with several of them: letters and frames have single grey pixels."""
    flags = flags.astype(bool)
    most = max(flags.sum(axis=0).max(), flags.sum(axis=1).max())
    return tuple(int((flags.sum(axis=a) > most / 5).sum()) for a in (0, 1))


def cells_of(path):
    with h5py.File(path) as file:
        found = []
        file.visititems(lambda name, each: found.append(each) if name.endswith("solid") else None)
        return np.squeeze(found[0][()]).reshape(26, 27)


def grey(path):
    """The pixels in the colour of solids."""
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB")).astype(int)
    return (np.abs(pixels - 255 * np.array(to_rgb(SOLID))) < 2).all(axis=2)


DISC = {"name": "sphere", "centre": [8.3, 9.4], "radius": 3.2}
FALLING = {"name": "free", "density": 20.0, "velocity": [0.09, 0.05]}


def falling(outputs=(), steps=50):
    given = tables(DISC, FALLING, [27, 26], outputs) | {"run": {"steps": steps}}
    return parse_case(given | {"backend": {"name": "cpu"}}, "falling.toml")


def test_a_body_that_moves_freely_is_shown_where_it_is(tmp_path):
    """In a program, in each file of a run, and in the picture of each of its steps."""
    centres = {}

    def check(sim):
        solid = sim.field("solid")
        centres[sim.step] = sim.bodies["a"].position
        assert centre_of(solid) == pytest.approx(centres[sim.step], abs=0.4)
        assert np.array_equal(sim.device_field("solid"), solid)

    outputs = [{"name": each, "every": 5, "begin": 0} for each in ("snapshot", "picture")]
    outputs[1] |= {"range": [0, 1]}
    with Simulation(falling(outputs), world(), directory=tmp_path) as sim:
        check(sim)
        sim.run(50, call=check, every=5)
    assert np.subtract(centres[50], centres[0]) @ [1, 1] > 3
    for step, centre in centres.items():
        solid = cells_of(tmp_path / f"snapshot_{step:09d}.vtkhdf")
        assert centre_of(solid) == pytest.approx(centre, abs=0.4)
    pictures = [grey(file) for file in sorted(tmp_path.glob("picture*.png"))]
    moved = centre_of(pictures[-1]) - centre_of(pictures[0])
    assert moved[0] > 20  # pixels, to the right
    assert moved[1] < -10  # and upwards


def centre_of(flags):
    return np.argwhere(flags).mean(axis=0)[::-1] + 0.5


def test_files_that_threads_write_show_the_step_of_their_name(tmp_path):
    """Steps continue while they write; bodies on given paths and free ones."""
    for motion in (FALLING, {"name": "translation", "velocity": [0.09, 0.05]}):
        found = []
        for background in (True, False):
            output = {"name": "snapshot", "every": 1, "background": background}
            given = tables(DISC, motion, [27, 26], [output])
            case = parse_case(given | {"backend": {"name": "cpu"}}, "a.toml")
            folder = tmp_path / f"{motion['name']}_{background}"
            run_case(case, folder)
            found.append([datasets(file) for file in sorted(folder.glob("snapshot*.vtkhdf"))])
        for at_once, later in zip(*found, strict=True):
            for name in at_once.keys() | later.keys():
                assert np.array_equal(at_once[name], later[name]), name
