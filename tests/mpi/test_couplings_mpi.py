"""Runs of coupled fluids on several ranks leave the files that one rank leaves, bit for bit."""

import numpy as np
import pytest
from support.coupled import one_fluid, two_fluids, walled
from support.free_energy import waves
from support.mpi_runs import LAST, datasets, monitor, run_on_rank_0, run_on_ranks
from support.slabs import PRECISIONS

from mpilbm.case.case import parse_case
from mpilbm.parallel.ranks import world
from mpilbm.run.run import run

pytestmark = pytest.mark.mpi

SINGLE = {"precision": PRECISIONS["single"]}
TABLES = {
    "two": lambda: two_fluids("D2Q9", **SINGLE, **walled("D2Q9")),
    "neutral": lambda: two_fluids("D2Q9", "exact_difference", **walled("D2Q9", None)),
    "one": lambda: one_fluid("D2Q9"),
    "free": lambda: waves("D2Q9", {"angle": 60}, "single"),
}


def flow(name, layout, way="direct", steps=LAST):
    tables = TABLES[name]()
    own = {"two": ["rho_water", "rho_oil"], "free": ["phi"]}
    fields = ["rho", "u", "vorticity", "pressure", *own.get(name, ())]
    outputs = [
        {"name": "checkpoint", "every": 4},
        {"name": "snapshot", "every": 4, "fields": fields},
        {"name": "monitor", "every": 1},
        {"name": "statistics", "every": 3},
    ]
    tables |= {"run": {"steps": steps}, "halo": {"name": way}, "backend": {"name": "cpu"}}
    return parse_case(tables | {"layout": {"name": layout}, "output": outputs}, "flow.toml")


@pytest.mark.parametrize(
    ("name", "layout", "way"),
    [
        ("two", "ab", "direct"),
        ("neutral", "esopull", "staged"),
        ("one", "aa", "direct"),
        ("free", "aa", "direct"),
    ],
)
def test_ranks_do_not_show(mpi_tmp_path, name, layout, way):
    comm = world()
    case, (single, many) = flow(name, layout, way), (mpi_tmp_path / "one", mpi_tmp_path / "many")
    run_on_rank_0(comm, case, single)
    run(case, comm, many)
    comm.Barrier()
    for step in (4, LAST):
        for file in (f"checkpoint_{step:09d}.h5", f"snapshot_{step:09d}.vtkhdf"):
            assert (many / file).read_bytes() == (single / file).read_bytes()
    assert monitor(many) == monitor(single)
    p = datasets(single / f"snapshot_{LAST:09d}.vtkhdf")["VTKHDF/CellData/pressure"]
    assert p.std() > 1e-3


@pytest.mark.parametrize(("before", "after"), [("ab", "aa"), ("aa", "ab")])
def test_a_restart_on_other_ranks_does_not_show(mpi_tmp_path, before, after):
    comm = world()
    whole, parts = mpi_tmp_path / "whole", mpi_tmp_path / "parts"
    run_on_rank_0(comm, flow("two", before), whole)
    run_on_ranks(comm, comm.size, flow("two", before, steps=4), parts)
    run_on_ranks(comm, max(1, comm.size - 1), flow("two", after), parts, restart="auto")
    for file in (f"checkpoint_{LAST:09d}.h5", f"snapshot_{LAST:09d}.vtkhdf"):
        here, there = datasets(whole / file), datasets(parts / file)
        assert here.keys() == there.keys()
        assert all(np.array_equal(here[key], there[key]) for key in here)
    assert monitor(parts) == monitor(whole)
