"""A body from a file of triangles: any number of ranks has the bits of one."""

import csv
from pathlib import Path

import pytest
from support.mpi_runs import run_on_rank_0
from support.surfaces import write_ball

from mpilbm.case.case import parse_case
from mpilbm.parallel.ranks import world
from mpilbm.run.run import run

pytestmark = pytest.mark.mpi


def test_the_fields_of_one_rank(tmp_path):
    comm = world()
    folder = Path(comm.bcast(str(tmp_path)))
    if comm.rank == 0:
        write_ball(folder / "ball.stl")
    comm.barrier()
    shape = {"name": "mesh", "file": "ball.stl", "scale": 5, "at": [9.1, 8.2, 8.3]}
    tables = {
        "lattice": {"name": "D3Q19"},
        "domain": {"size": [20, 17, 16], "periodic": [True] * 3},
        "fluid": {"viscosity": 0.1},
        "collision": {"name": "trt"},
        "force": {"name": "guo", "value": [1e-5, 0, 0]},
        "body": [{"label": "ball", "shape": shape, "boundary": {"name": "interpolated"}}],
        "output": [{"name": "body_forces", "every": 5, "velocity": [0.01, 0, 0]}],
        "backend": {"name": "cpu"},
        "run": {"steps": 10},
    }
    case = parse_case(tables, folder / "case.toml")
    run(case, comm, folder / "ranks")
    run_on_rank_0(comm, case, folder / "one")
    if comm.rank == 0:
        name = "forces_ball.csv"
        text = (folder / "ranks" / name).read_text()
        assert text == (folder / "one" / name).read_text()
        *_, last = csv.DictReader(text.splitlines())
        assert float(last["c_d +x"]) > 0
