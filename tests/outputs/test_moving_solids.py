"""Snapshots and films show bodies that move where they are at the step of the output."""

import h5py
import numpy as np
import pytest
from support.body_forces import flow
from support.cell_shares import shares
from support.runs import run_case
from support.slabs import Cluster

from mpilbm.case.case import parse_case
from mpilbm.outputs.drawing import SOLID
from mpilbm.solids.moving_cells import covered

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
    solid = covered(case, 40, *cells)
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


def test_a_body_that_moves_freely_is_not_shown_at_its_start():
    ball = {"name": "sphere", "centre": [6, 6], "radius": 3}
    case = tables(ball, {"name": "free", "density": 2.0}, (16, 16))
    cells = np.arange(16), np.arange(1), np.arange(16)
    assert not covered(parse_case(case, "test.toml"), 5, *cells).any()
