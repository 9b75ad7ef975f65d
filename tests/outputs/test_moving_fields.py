"""The fields of moving bodies: the share of each cell, and the number of the body."""

import h5py
import numpy as np
import pytest
from support.body_forces import flow
from support.cell_shares import shares
from support.commands import call
from support.runs import run_case
from support.slabs import Cluster

from mpilbm.case.case import parse_case
from mpilbm.codegen.program import MOVED
from mpilbm.core.errors import CaseError
from mpilbm.view.plot.planes import Cut

CELLS = {"name": "partially_saturated"}
FREE = {"name": "free", "density": 2.0, "velocity": [0.0, -0.05, 0.03]}
TURN = {"name": "rotation", "rate": 0.02}
NAMES = ["body_share", "body"]


def tables(D, *outputs, **more):
    """A free ball, a post at rest, and a bar that turns: bodies 1, 2 and 3."""
    ball = {"name": "sphere", "centre": [4.3, 11.4, 6.2][:D], "radius": 3.1}
    bar = {"name": "box", "lower": [10.2, 8.1, 3.3][:D], "upper": [18.1, 11.3, 8.6][:D]}
    post = {"name": "sphere", "centre": [4.0, 3.5, 6.0][:D], "radius": 2.0}
    free = FREE | {"velocity": FREE["velocity"][:D]}
    bodies = [
        {"label": "ball", "shape": ball, "boundary": CELLS, "motion": free},
        {"label": "post", "shape": post, "boundary": CELLS},
        {"label": "bar", "shape": bar, "boundary": CELLS, "motion": TURN},
    ]
    size, lattice = [22, 19, 17][:D], ("D2Q9", "D3Q19")[D - 2]
    given = flow(lattice, size=size, body=bodies, output=list(outputs), run={"steps": 20})
    return given | {"initial": {"u": [0] * D}, "backend": {"name": "cpu"}} | more


@pytest.mark.parametrize("layout", ["ab", "moments"])
@pytest.mark.parametrize("D", [2, 3])
def test_fields_are_those_of_the_step(D, layout):
    """Of cells around moving bodies; bodies at rest have neither."""
    cluster = Cluster(tables(D, layout={"name": layout}), slabs=2).start().run(20)
    found, moved = cluster.fields(*NAMES), shares(cluster, MOVED)
    used = np.where(moved > 0, shares(cluster), 0)
    assert found["body_share"] == pytest.approx(used / 255, rel=1e-6)
    assert np.array_equal(found["body"], np.array([0, 1, 3])[moved])
    volume = np.pi * 3.1**2 if D == 2 else 4 / 3 * np.pi * 3.1**3
    assert found["body_share"][found["body"] == 1].sum() == pytest.approx(volume, rel=0.01)


def test_files_plots_and_pictures(tmp_path):
    """A snapshot, a part of the box that is computed cell by cell, means over blocks, pictures."""
    every = {"every": 20, "fields": NAMES}
    outputs = [
        {"name": "snapshot", **every, "fields": ["u", *NAMES]},
        {"name": "box", **every, "from": [6, 9], "to": [8, 14]},
        {"name": "snapshot", **every, "label": "means", "stride": 2, "fields": NAMES},
        {"name": "picture", "every": 20, "field": "body_share", "range": [0, 1]},
    ]
    folder = tmp_path / "run"
    run_case(parse_case(tables(2, *outputs), "a.toml"), folder)
    whole, part, means = (
        cells(folder / f"{stem}_000000020.vtkhdf")
        for stem in ("snapshot", "box_1", "snapshot_means")
    )
    assert set(np.unique(whole["body"])) == {0, 1, 3}
    for name in NAMES:
        assert np.array_equal(part[name], whole[name][:, 9:14, 6:8])
        assert len(np.unique(part[name])) > 1
    blocks = blocks_of(whole["body_share"]).mean(axis=(1, 3))
    fluid = ~blocks_of(resting(whole)).any(axis=(1, 3))
    assert means["body_share"][0][fluid] == pytest.approx(blocks[fluid], rel=1e-6)
    assert np.array_equal(means["body"][0], blocks_of(whole["body"]).max(axis=(1, 3)))
    assert np.array_equal(means["solid"][0], blocks_of(whole["solid"]).min(axis=(1, 3)))
    assert (means["solid"][0][means["body"][0] > 0] == 1).any()
    assert call("plot", folder, "--field", "body_share").exit_code == 0
    assert colours(folder / "picture_3_000000020.png") > 20


def resting(found):
    """Cells of the post: solid, and without a moving body."""
    return (found["solid"] == 1) & (found["body"] == 0)


def blocks_of(cells):
    """Whole blocks of 2 x 2 cells, (rows, 2, x, 2)."""
    return cells[0, :18, :22].reshape(9, 2, 11, 2)


def cells(path):
    with h5py.File(path) as file:
        return {name: item[()] for name, item in file["VTKHDF/CellData"].items()}


def colours(path):
    image = pytest.importorskip("PIL.Image")
    with image.open(path) as picture:
        return len(
            np.unique(np.asarray(picture.convert("RGB"))[50:-50, 50:400].reshape(-1, 3), axis=0)
        )


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (
            {"name": "probe", "every": 5, "points": [[3, 3]]},
            r"'body' has no values between cells; use",
        ),
        ({"fields": ["bodyshare"]}, r"did you mean 'body_share'"),
    ],
)
def test_messages(output, text):
    with pytest.raises(CaseError, match=text):
        parse_case(tables(2, {"name": "snapshot", "fields": NAMES, **output}), "a.toml")


def test_flows_without_moving_bodies_have_no_such_fields():
    given = tables(2, {"name": "snapshot", "fields": NAMES})
    for body in given["body"]:
        body.pop("motion", None)
    with pytest.raises(CaseError, match="'body_share' is not a field"):
        parse_case(given, "a.toml")


def test_a_scalar_may_have_the_name_of_such_a_field():
    outputs = [{"name": "probe", "every": 5, "points": [[3, 3]], "fields": ["body"]}]
    given = tables(2, *outputs, scalar=[{"label": "body", "diffusivity": 0.1}])
    del given["body"]
    parse_case(given, "a.toml")


def test_a_plot_between_cells_has_no_mean_of_numbers():
    """The number of a body that fills the cells of one side only."""
    stored = np.zeros((2, 3, 4))
    stored[0, 1], stored[1, :, 2] = 3, 2
    cut = Cut(0, 1, 2, slice(0, 2), 1.0)
    assert set(np.unique(cut.largest(stored))) == {0, 2, 3}
