"""Forces on bodies that several ranks share, and the state, have the same bits as on one rank."""

import numpy as np
import pytest
from support.body_forces import OUTPUT, flow
from support.mpi_runs import datasets, run_on_rank_0, run_on_ranks

from mpilbm.case.case import parse_case
from mpilbm.parallel.ranks import world

pytestmark = pytest.mark.mpi
LAYOUTS = {"bounce_back": "indirect", "partially_saturated": "moments"}


def shared(boundary, steps):
    forces = OUTPUT | {"velocity": [0.1, 0.0], "length": 3.0}
    forces["split"] = boundary == "bounce_back"
    outputs = [forces, {"name": "checkpoint", "every": 2}]
    more = {"run": {"steps": steps}, "backend": {"name": "cpu"}}
    more["layout"] = {"name": LAYOUTS[boundary]}
    tables = flow("D2Q9", {"name": boundary}, output=outputs, **more)
    return parse_case(tables, "flow.toml")


@pytest.mark.parametrize("boundary", LAYOUTS)
def test_ranks_and_restarts_do_not_show_in_forces(boundary, mpi_tmp_path):
    comm, whole, parts = world(), mpi_tmp_path / "whole", mpi_tmp_path / "parts"
    run_on_rank_0(comm, shared(boundary, 5), whole)
    run_on_ranks(comm, comm.size, shared(boundary, 2), parts)
    run_on_ranks(comm, comm.size, shared(boundary, 5), parts, restart="auto")
    for name in ("forces_block.csv", "forces_ball.csv"):
        text = (whole / name).read_text()
        assert (parts / name).read_text() == text
        assert text.count("\n") == 7
    expected, found = (datasets(each / "checkpoint_000000005.h5") for each in (whole, parts))
    assert np.array_equal(found["fluid/f"], expected["fluid/f"])
