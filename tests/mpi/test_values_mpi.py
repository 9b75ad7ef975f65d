"""Arrays and functions of a Python program as values of a case, on ranks."""

import numpy as np
import pytest
from support.faces import closed
from support.mpi_runs import datasets, run_on_rank_0, run_on_ranks

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.parallel.ranks import world

pytestmark = pytest.mark.mpi


def swirl(x, y, t):
    """A force that is no formula."""
    return 1e-5 * np.cos(float(t)) * y, -1e-5 * x


def inlet(x, y, t):
    """A velocity that is no formula."""
    return 0 * x, 0.02 * np.sin(float(t) / 5) * x * (8 - x) / 16


def flow(steps, force=swirl):
    ends = [{"name": "bounce_back", "where": ["x-", "x+"]},
            {"name": "zou_he", "where": ["y-"], "velocity": inlet},
            {"name": "regularized", "where": ["y+"], "rho": 1 + 0.001 * np.arange(8)}]  # fmt: skip
    disc = {
        "shape": lambda x, y: (x - 4) ** 2 + (y - 6) ** 2 < 3,
        "boundary": {"name": "interpolated"},
    }
    more = {"body": [disc], "run": {"steps": steps}, "backend": {"name": "cpu"}}
    more |= {"force": {"name": "guo", "value": force}}
    more["output"] = [{"name": "checkpoint", "every": 4}]
    return parse_case(closed("D2Q9", [8, 13], ends, **more), "flow.toml")


def test_ranks_have_the_bits_of_one(mpi_tmp_path):
    comm = world()
    whole = mpi_tmp_path / "whole"
    run_on_rank_0(comm, flow(7), whole)
    for number, (start, end) in enumerate([(1, comm.size), (comm.size, 1)]):
        parts = mpi_tmp_path / str(number)
        run_on_ranks(comm, start, flow(4), parts)
        run_on_ranks(comm, end, flow(7), parts, restart="auto")
        here, there = (datasets(each / "checkpoint_000000007.h5") for each in (whole, parts))
        assert here.keys() == there.keys()
        assert all(np.array_equal(here[key], there[key]) for key in here)


def test_all_ranks_report_a_function_that_fails_on_one(mpi_tmp_path):
    comm = world()

    def fails_above(x, y):
        return np.where(y > 12, 1 / np.zeros(x.size), 0.0), np.zeros(x.shape)

    with pytest.raises(CaseError, match=r"force.value.0: is inf in cell x=0, y=12"):
        run_on_ranks(comm, comm.size, flow(4, fails_above), mpi_tmp_path / "run")
