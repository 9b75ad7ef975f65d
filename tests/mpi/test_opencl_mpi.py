"""Ranks that share an OpenCL device: messages through host memory, and the bits of one CPU rank."""

import numpy as np
import pytest
from support.mpi_runs import datasets, monitor, run_on_rank_0
from support.opencl import needs_opencl
from support.settings import tables

from mpilbm.case.case import parse_case
from mpilbm.parallel.ranks import world
from mpilbm.run.run import run

pytestmark = [pytest.mark.mpi, needs_opencl()]
OUTPUTS = [
    {"name": "snapshot", "fields": ["rho", "u", "vorticity"]},
    {"name": "checkpoint", "every": 7},
    {"name": "monitor", "every": 2},
]


@pytest.mark.parametrize(
    ("layout", "setting", "precision"), [("ab", "walls", "single"), ("esopull", "periodic", "half")]
)
def test_the_files_are_those_of_one_cpu_rank(mpi_tmp_path, layout, setting, precision):
    comm, found = world(), tables("D2Q9", layout, "trt", setting, precision, output=OUTPUTS)
    many, one = mpi_tmp_path / "many", mpi_tmp_path / "one"
    on_opencl = {"backend": {"name": "opencl", "fused": False}, "halo": {"name": "auto"}}
    run(parse_case(found | on_opencl, "test.toml"), comm, many)
    run_on_rank_0(comm, parse_case(found | {"backend": {"name": "cpu"}}, "test.toml"), one)
    assert monitor(many) == monitor(one)
    for name in ("snapshot_000000007.vtkhdf", "checkpoint_000000007.h5"):
        here, there = datasets(one / name), datasets(many / name)
        assert here.keys() == there.keys()
        assert all(np.array_equal(here[key], there[key]) for key in here)
