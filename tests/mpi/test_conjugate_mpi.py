"""Bodies that conduct a scalar or have a flux of it: ranks and restarts do not show."""

import numpy as np
import pytest
from support.conduction import conducting
from support.mpi_runs import LAST, datasets, run_on_rank_0, run_on_ranks
from support.scalars import carried, closed
from support.scalars import flow as carrying

from mpilbm.case.case import parse_case
from mpilbm.parallel.ranks import world

pytestmark = pytest.mark.mpi


def flow(layout: str, steps=LAST):
    """A flow around a body that conducts T, across the face of a slab, and one with a flux."""
    solid = conducting({"name": "sphere", "centre": [2.5, 4.5], "radius": 1.4}, 0.05, 2.5)
    warm = {"shape": {"name": "sphere", "centre": [5.0, 7.0], "radius": 0.9},
            "boundary": {"name": "bounce_back"}, "scalar": {"T": {"flux": 0.002}}}  # fmt: skip
    outputs = [
        {"name": "checkpoint", "every": 4},
        {"name": "snapshot", "every": 4, "fields": ["rho", "u", "T"]},
    ]
    tables = carrying("D2Q9", layout, "single", scalars=[carried()], body=[solid, warm],
                      **closed(2))  # fmt: skip
    tables |= {"run": {"steps": steps}, "backend": {"name": "cpu"}, "output": outputs}
    return parse_case(tables, "flow.toml")


@pytest.mark.parametrize("layout", ["ab", "esopull"])
def test_ranks_and_a_restart_do_not_show(mpi_tmp_path, layout):
    comm = world()
    whole, parts = mpi_tmp_path / "whole", mpi_tmp_path / "parts"
    run_on_rank_0(comm, flow(layout), whole)
    run_on_ranks(comm, comm.size, flow(layout, steps=4), parts)
    run_on_ranks(comm, max(1, comm.size - 1), flow("aa"), parts, restart="auto")
    comm.Barrier()
    for file in (f"checkpoint_{LAST:09d}.h5", f"snapshot_{LAST:09d}.vtkhdf"):
        here, there = datasets(whole / file), datasets(parts / file)
        assert here.keys() == there.keys()
        assert [key for key in here if not np.array_equal(here[key], there[key])] == []
    T = datasets(whole / f"snapshot_{LAST:09d}.vtkhdf")["VTKHDF/CellData/T"]
    assert T.reshape(9, -1)[4, 2] != 0
