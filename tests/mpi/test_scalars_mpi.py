"""Runs of flows with scalars on several ranks leave the files that one rank leaves, bit for bit."""

import numpy as np
import pytest
from support.mpi_runs import LAST, datasets, monitor, run_on_rank_0, run_on_ranks
from support.scalars import flow as carrying
from support.scalars import setting

from mpilbm.case.case import parse_case
from mpilbm.parallel.ranks import world
from mpilbm.run.run import run

pytestmark = pytest.mark.mpi
CASES = [("D2Q9", "ab", "body", "direct"), ("D3Q19", "esopull", "walls", "staged")]


def flow(lattice, layout, name, way="direct", steps=LAST):
    outputs = [
        {"name": "checkpoint", "every": 4},
        {"name": "snapshot", "every": 4, "fields": ["rho", "u", "T"]},
        {"name": "monitor", "every": 1},
    ]
    tables = carrying(lattice, layout, "single", **setting(name, int(lattice[1])))
    tables |= {"run": {"steps": steps}, "halo": {"name": way}, "backend": {"name": "cpu"}}
    return parse_case(tables | {"output": outputs}, "flow.toml")


@pytest.mark.parametrize(("lattice", "layout", "name", "way"), CASES)
def test_ranks_do_not_show(mpi_tmp_path, lattice, layout, name, way):
    comm = world()
    case = flow(lattice, layout, name, way)
    single, many = mpi_tmp_path / "one", mpi_tmp_path / "many"
    run_on_rank_0(comm, case, single)
    run(case, comm, many)
    comm.Barrier()
    for step in (4, LAST):
        for file in (f"checkpoint_{step:09d}.h5", f"snapshot_{step:09d}.vtkhdf"):
            assert (many / file).read_bytes() == (single / file).read_bytes()
    assert monitor(many) == monitor(single)
    assert datasets(single / f"snapshot_{LAST:09d}.vtkhdf")["VTKHDF/CellData/T"].std() > 1e-2


def test_a_restart_on_other_ranks_does_not_show(mpi_tmp_path):
    comm = world()
    whole, parts = mpi_tmp_path / "whole", mpi_tmp_path / "parts"
    run_on_rank_0(comm, flow("D2Q9", "ab", "body"), whole)
    run_on_ranks(comm, comm.size, flow("D2Q9", "ab", "body", steps=4), parts)
    rest = flow("D2Q9", "aa", "body")
    run_on_ranks(comm, max(1, comm.size - 1), rest, parts, restart="auto")
    for file in (f"checkpoint_{LAST:09d}.h5", f"snapshot_{LAST:09d}.vtkhdf"):
        here, there = datasets(whole / file), datasets(parts / file)
        assert here.keys() == there.keys()
        assert all(np.array_equal(here[key], there[key]) for key in here)
    assert monitor(parts) == monitor(whole)
