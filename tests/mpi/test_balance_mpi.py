"""Ranks cut slabs of equal cost alike, as `check` plans them, and go on from any other cuts."""

import time
from pathlib import Path

import numpy as np
import pytest
from support.mpi_runs import run_on_rank_0, run_on_ranks
from support.plane_costs import tables, typed

from mpilbm.outputs.core.restart import opened
from mpilbm.parallel.ranks import world
from mpilbm.run.progress import Say
from mpilbm.run.run import run
from mpilbm.run.setup import build_solver
from mpilbm.solids import build, plane_costs
from mpilbm.solver import memory_plan

pytestmark = pytest.mark.mpi


@pytest.fixture
def folder(tmp_path):
    """The same folder on all ranks."""
    return Path(world().bcast(str(tmp_path)))


def a_case(folder, comm, layout, steps=6):
    """A rock with free planes below; rank 0 has written its mask when this returns."""
    made = None
    if comm.rank == 0:
        made = tables(folder, {"name": layout}) | {
            "run": {"steps": steps},
            "backend": {"name": "cpu"},
            "output": [{"name": "checkpoint", "every": 3}],
        }
    return typed(comm.bcast(made))


def datasets(file) -> dict:
    """All of them, in groups too."""
    found = {}
    file.visititems(
        lambda key, item: found.update({key: item[()]}) if hasattr(item, "shape") else None
    )
    return found


@pytest.mark.parametrize("layout", ["ab", "indirect"])
def test_slabs_are_those_that_one_process_plans(folder, layout):
    comm = world()
    case = a_case(folder, comm, layout)
    solver, _ = build_solver(case, comm, Say(comm))
    costs = plane_costs.plane_costs(case, 0, 17)
    assert tuple(comm.allgather(solver.slab)) == plane_costs.slabs(case, comm.size, costs)
    solver.exchanger.close()


def test_no_rank_allocates_before_all_have_read_the_free_memory(folder, monkeypatch):
    """The last rank is the slowest; the others must not count what is taken as missing."""
    comm, read, checks = world(), folder / "read", []
    case, require, built = a_case(folder, comm, "ab"), memory_plan.require_host, build.build

    def slow(*arguments):
        if comm.rank == comm.size - 1 and not checks:
            time.sleep(0.3)
            read.touch()
        checks.append(arguments)
        require(*arguments)

    def building(*arguments):
        assert read.exists()
        return built(*arguments)

    monkeypatch.setattr(memory_plan, "require_host", slow)
    monkeypatch.setattr(build, "build", building)
    solver, _ = build_solver(case, comm, Say(comm))
    assert len(checks) == 2
    solver.exchanger.close()


def test_a_restart_on_other_ranks_ends_in_the_same_bytes(folder):
    comm = world()
    case, half = (a_case(folder, comm, "indirect", steps) for steps in (6, 3))
    run_on_rank_0(comm, case, folder / "whole")
    run(half, comm, folder / "parts")
    run_on_ranks(comm, max(1, comm.size - 1), case, folder / "parts", restart="auto")
    if comm.rank == 0:
        found = []
        for name in ("whole", "parts"):
            with opened(folder / name / "checkpoint_000000006.h5") as file:
                found.append(datasets(file))
        assert any(values.ndim == 4 for values in found[0].values())
        assert found[0].keys() == found[1].keys()
        assert all(np.array_equal(found[0][key], found[1][key]) for key in found[0])
    comm.Barrier()
