"""What boundaries keep, and what they read of other ranks, through checkpoints and alone."""

import numpy as np
import pytest
from support.faces import closed, table
from support.mpi_runs import datasets, run_on_rank_0, run_on_ranks

from mpilbm.case.case import parse_case
from mpilbm.parallel.ranks import world

pytestmark = pytest.mark.mpi


def flow(steps):
    faces = [("zou_he", "y-"), ("grad", "y+"), ("grad", "x+"), ("free_slip", "x-")]
    boundaries = [table(name, face, D=2) for name, face in faces]
    walls = [{"name": "interpolated", "order": 2}, {"name": "tamm_mott_smith"}]
    discs = [{"name": "sphere", "centre": [4.2, y], "radius": 1.3} for y in (4.4, 8.7)]
    parts = zip(("first", "second"), discs, walls, strict=True)
    more = {"body": [{"label": n, "shape": s, "boundary": wall} for n, s, wall in parts]}
    more |= {"run": {"steps": steps}, "backend": {"name": "cpu"}}
    more["output"] = [{"name": "checkpoint", "every": 4}]
    return parse_case(closed("D2Q9", [8, 13], boundaries, **more), "flow.toml")


def test_a_restart_on_other_ranks_finds_it(mpi_tmp_path):
    comm = world()
    whole = mpi_tmp_path / "whole"
    run_on_rank_0(comm, flow(7), whole)
    for number, (start, end) in enumerate([(1, comm.size), (comm.size, 1)]):
        parts = mpi_tmp_path / str(number)
        run_on_ranks(comm, start, flow(4), parts)
        run_on_ranks(comm, end, flow(7), parts, restart="auto")
        here, there = (datasets(each / "checkpoint_000000007.h5") for each in (whole, parts))
        assert here.keys() == there.keys()
        assert sum(name.startswith("boundary.") for name in here) == 4
        assert all(np.array_equal(here[key], there[key]) for key in here)
