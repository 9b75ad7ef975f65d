"""surface_<label>_<step>.vtkhdf on several ranks: the same bits as on one."""

import numpy as np
import pytest
from support.mpi_runs import datasets, run_on_rank_0
from support.surface_files import ball_tables
from support.surfaces import write_ball

from mpilbm.case.case import parse_case
from mpilbm.run.run import run
from mpilbm.storage import planes

pytestmark = pytest.mark.mpi
MESH = {"name": "mesh", "file": "ball.stl", "scale": 3.2, "at": [12.1, 5.2, -0.1]}
SPHERE = {"name": "sphere", "centre": [12.1, 5.2, -0.1], "radius": 3.2}


@pytest.mark.parametrize("writer", ["own", "root"])
@pytest.mark.parametrize(
    ("shape", "moves"),
    [(MESH, False), (SPHERE, False), (SPHERE, True)],
    ids=["mesh", "cells", "moving"],
)
def test_any_number_of_ranks_writes_the_same_bits(
    comm, mpi_tmp_path, shape, moves, writer, monkeypatch
):
    monkeypatch.setattr(planes, "best_writer", lambda *_: writer)
    folder = mpi_tmp_path
    if comm.rank == 0:
        write_ball(folder / "ball.stl", 2)
    comm.Barrier()
    tables = ball_tables(shape)
    if moves:
        tables["domain"]["size"] = [14, 13, 12]
        motion = {"name": "translation", "velocity": [0.05, 0, 0.08]}
        tables["body"][0] |= {"boundary": {"name": "partially_saturated"}, "motion": motion}
    case = parse_case(tables, folder / "case.toml")
    run(case, comm, folder / "many")
    run_on_rank_0(comm, case, folder / "one")
    if comm.rank == 0:
        name = "surface_wall_000000020.vtkhdf"
        one, many = datasets(folder / "one" / name), datasets(folder / "many" / name)
        assert one.keys() == many.keys()
        for key, values in one.items():
            np.testing.assert_array_equal(values, many[key])
        assert np.isfinite(one["VTKHDF/CellData/pressure"]).all()
