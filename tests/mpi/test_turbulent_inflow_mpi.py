"""Turbulence at an inlet has the same bits on any number of ranks and after a restart."""

import numpy as np
import pytest
from support.faces import closed, table
from support.mpi_runs import datasets, run_on_rank_0, run_on_ranks

from mpilbm.case.case import parse_case
from mpilbm.parallel.ranks import world

pytestmark = pytest.mark.mpi


def flow(steps: int, layout: str):
    """A pipe with an inlet at x-, divided along z."""
    turbulence = {"intensity": 0.1, "length": 3.0, "length_along": 2.0}
    ends = [{"name": "equilibrium", "where": ["x-"], "velocity": [0.08, 0.0, 0.0],
             "turbulence": turbulence},
            {"name": "copy", "where": ["x+"], "rho": 1.0},
            table("bounce_back", "y-", "y+", "z-", "z+", D=3)]  # fmt: skip
    bore = {"name": "cylinder", "centre": [0, 6, 7], "radius": 5.5, "axis": "x"}
    solid = {"name": "box", "lower": [-9, -9, -9], "upper": [99, 99, 99]}
    wall = {"label": "wall", "shape": {"name": "difference", "of": [solid, bore]}}
    more = {"body": [wall | {"boundary": {"name": "bounce_back"}}], "layout": {"name": layout}}
    more |= {"run": {"steps": steps}, "backend": {"name": "cpu"}}
    more["output"] = [{"name": "checkpoint", "every": 50}]
    return parse_case(closed("D3Q19", [8, 12, 14], ends, **more), "pipe.toml")


@pytest.mark.parametrize("layout", ["ab", "moments"])
def test_ranks_and_restarts_have_the_bits_of_one(mpi_tmp_path, layout):
    comm = world()
    whole = mpi_tmp_path / "whole"
    run_on_rank_0(comm, flow(90, layout), whole)
    for number, (start, end) in enumerate([(1, comm.size), (comm.size, 1)]):
        parts = mpi_tmp_path / str(number)
        run_on_ranks(comm, start, flow(50, layout), parts)
        run_on_ranks(comm, end, flow(90, layout), parts, restart="auto")
        here, there = (datasets(each / "checkpoint_000000090.h5") for each in (whole, parts))
        assert here.keys() == there.keys()
        assert all(np.array_equal(here[key], there[key]) for key in here)
