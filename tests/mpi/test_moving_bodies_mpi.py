"""Bodies that move through the slabs of several ranks: forces and state have the same bits."""

import numpy as np
import pytest
from support.body_forces import OUTPUT, flow
from support.mpi_runs import datasets, run_on_rank_0, run_on_ranks

from mpilbm.case.case import parse_case
from mpilbm.parallel.ranks import world

pytestmark = pytest.mark.mpi
RING = {"name": "torus", "centre": [17.3, 10.4], "radius": 3.1, "tube": 1.3}
BODIES = [
    ({"name": "sphere", "centre": [6.7, 2.4], "radius": 2.3}, "translation", [0.03, 0.14]),
    ({"name": "box", "lower": [14.0, 6.1], "upper": [18.2, 8.0]}, "rotation", "0.04*cos(t/9)"),
    (RING, "translation", [0.02, 0.11]),
]


def moving(steps):
    bodies = []
    for number, (shape, name, given) in enumerate(BODIES):
        motion = {"name": name, "velocity" if name == "translation" else "rate": given}
        boundary = {"name": "partially_saturated"}
        part = {"label": f"{name}_{number}", "shape": shape, "boundary": boundary, "motion": motion}
        bodies.append(part)
    outputs = [OUTPUT, {"name": "checkpoint", "every": 10}]
    fields = ["u", "body", "body_share"]
    outputs.append({"name": "snapshot", "every": 20, "stride": 3, "fields": fields})
    tables = flow("D2Q9", size=[24, 16], body=bodies, output=outputs, run={"steps": steps})
    return parse_case(tables | {"backend": {"name": "cpu"}}, "moving.toml")


def test_ranks_and_restarts_do_not_show(mpi_tmp_path):
    """In 40 steps the disc moves by 6 cells, from the planes of one rank to those of another, and a
    ring, by a field of distances, by 4."""
    comm, whole, parts = world(), mpi_tmp_path / "whole", mpi_tmp_path / "parts"
    run_on_rank_0(comm, moving(40), whole)
    run_on_ranks(comm, comm.size, moving(20), parts)
    run_on_ranks(comm, comm.size, moving(40), parts, restart="auto")
    for name in ("forces_translation_0.csv", "forces_rotation_1.csv", "forces_translation_2.csv"):
        text = (whole / name).read_text()
        assert (parts / name).read_text() == text
        assert text.count("\n") == 42
    expected, found = (datasets(each / "checkpoint_000000040.h5") for each in (whole, parts))
    assert np.array_equal(found["fluid/f"], expected["fluid/f"])
    expected, found = (datasets(each / "snapshot_000000040.vtkhdf") for each in (whole, parts))
    for name in ("u", "body", "body_share", "solid"):
        place = f"VTKHDF/CellData/{name}"
        assert np.array_equal(found[place], expected[place]), name
        assert expected[place].any(), name
