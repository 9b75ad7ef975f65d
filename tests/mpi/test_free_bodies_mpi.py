"""Bodies that move freely through the slabs of several ranks: all files have the same bits."""

import numpy as np
import pytest
from support.body_forces import OUTPUT, flow
from support.mpi_runs import datasets, run_on_rank_0, run_on_ranks

from mpilbm.case.case import parse_case
from mpilbm.parallel.ranks import world

pytestmark = pytest.mark.mpi
CELLS = {"name": "partially_saturated"}
SHAPES = {
    "ball": {"name": "sphere", "centre": [6.7, 13.4], "radius": 2.6},
    "bar": {"name": "box", "lower": [14.0, 6.1], "upper": [18.2, 9.0]},
    "seed": {
        "name": "tilted_ellipsoid",
        "centre": [16.1, 15.2],
        "radii": [3.6, 2.1],
        "rotate": [0, 0, 20],
    },
}
MOTIONS = {
    "ball": {"density": 3.0, "gravity": 2e-3, "velocity": [0.03, -0.05]},
    "bar": {"density": 0.7, "gravity": 2e-3, "rate": 0.02, "spring": [1e-3, 0]},
    "seed": {"density": 2.0, "gravity": 2e-3},
}


def falling(steps):
    bodies = []
    for label, shape in SHAPES.items():
        motion = {"name": "free", **MOTIONS[label]}
        bodies.append({"label": label, "shape": shape, "boundary": CELLS, "motion": motion})
    outputs = [OUTPUT | {"every": 3, "body": ["ball"]}, {"name": "checkpoint", "every": 10}]
    fields = ["rho", "u", "body_share", "body"]
    outputs += [{"name": "snapshot", "every": 20, "fields": fields}]
    outputs += [{"name": "picture", "every": 20}, {"name": "surface", "every": 20}]
    tables = flow("D2Q9", size=[24, 20], body=bodies, output=outputs, run={"steps": steps})
    tables["domain"] = {"size": [24, 20], "periodic": [True, False]}
    tables["boundary"] = [{"name": "bounce_back", "where": ["y-", "y+"]}]
    return parse_case(tables | {"backend": {"name": "cpu"}}, "falling.toml")


def test_ranks_and_restarts_do_not_show(mpi_tmp_path):
    """In 60 steps the ball falls into the planes of another rank."""
    comm, whole, parts = world(), mpi_tmp_path / "whole", mpi_tmp_path / "parts"
    run_on_rank_0(comm, falling(60), whole)
    run_on_ranks(comm, comm.size, falling(36), parts)
    run_on_ranks(comm, comm.size, falling(60), parts, restart="auto")
    text = (whole / "forces_ball.csv").read_text()
    assert (parts / "forces_ball.csv").read_text() == text
    assert text.count("\n") == 22
    expected, found = (datasets(each / "checkpoint_000000060.h5") for each in (whole, parts))
    for name in ("fluid/f", "free.bodies"):
        assert np.array_equal(found[name], expected[name])
    assert expected["free.bodies"][0, 1] < 10.9  # y of the ball
    fields, pictures = (sorted(whole.glob(name)) for name in ("*.vtkhdf", "*.png"))
    assert (len(fields), len(pictures)) == (6, 3)
    for path in fields:
        found, expected = (datasets(folder / path.name) for folder in (parts, whole))
        for name in expected:
            assert np.array_equal(found[name], expected[name]), name
    for path in pictures:
        assert (parts / path.name).read_bytes() == path.read_bytes()
