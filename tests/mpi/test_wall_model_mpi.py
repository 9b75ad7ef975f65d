"""Wall models and their stresses on several ranks are those of one rank, bit for bit."""

import h5py
import numpy as np
import pytest
from support.mpi_runs import run_on_rank_0
from support.wall_models import channel

from mpilbm.case.case import parse_case
from mpilbm.parallel.ranks import world
from mpilbm.run.run import run

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("layout", ["aa", "moments"])
def test_ranks_do_not_show(layout, mpi_tmp_path):
    comm, size = world(), [5, 8, 9]
    tables = channel(layout={"name": layout})
    tables["domain"] = {"size": size, "periodic": [True, False, False]}
    tables["boundary"].append(tables["boundary"][0] | {"where": ["z-", "z+"], "sample": 3})
    block = {"name": "box", "lower": [1, 3, 1], "upper": [4, 5, 5]}
    wall = {"name": "wall_model", "law": "spalding"}
    ball = {"name": "sphere", "centre": [2.4, 4.2, 7.1], "radius": 1.3}
    shapes = {"block": block, "ball": ball}
    tables["body"] = [{"label": k, "shape": v, "boundary": wall} for k, v in shapes.items()]
    tables["output"].append({"name": "body_forces", "every": 1})
    tables["output"].append({"name": "checkpoint", "every": 6})
    case = parse_case(tables, "channel.toml")
    single, many = mpi_tmp_path / "one", mpi_tmp_path / "many"
    run_on_rank_0(comm, case, single)
    run(case, comm, many)
    comm.Barrier()
    for name in ("wall_stress.csv", "forces_block.csv", "forces_ball.csv"):
        texts = [(folder / name).read_text() for folder in (single, many)]
        assert texts[0] == texts[1]
    states = []
    for folder in (single, many):
        with h5py.File(folder / "checkpoint_000000006.h5") as file:
            states.append(file["fluid/f"][()])
    assert np.array_equal(*states)
