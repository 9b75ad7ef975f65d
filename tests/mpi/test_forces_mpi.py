"""Forces on bodies that several ranks share stand in the files bit for bit."""

import pytest
from support.body_forces import OUTPUT, flow
from support.mpi_runs import run_on_rank_0, run_on_ranks

from mpilbm.case.case import parse_case
from mpilbm.parallel.ranks import world

pytestmark = pytest.mark.mpi


def shared(steps):
    forces = OUTPUT | {"velocity": [0.1, 0.0], "length": 3.0, "split": True}
    outputs = [forces, {"name": "checkpoint", "every": 2}]
    more = {"run": {"steps": steps}, "backend": {"name": "cpu"}, "layout": {"name": "indirect"}}
    return parse_case(flow("D2Q9", output=outputs, **more), "flow.toml")


def test_ranks_and_restarts_do_not_show_in_forces(mpi_tmp_path):
    comm, whole, parts = world(), mpi_tmp_path / "whole", mpi_tmp_path / "parts"
    run_on_rank_0(comm, shared(5), whole)
    run_on_ranks(comm, comm.size, shared(2), parts)
    run_on_ranks(comm, comm.size, shared(5), parts, restart="auto")
    for name in ("forces_block.csv", "forces_ball.csv"):
        text = (whole / name).read_text()
        assert (parts / name).read_text() == text
        assert text.count("\n") == 7
