"""The outputs of scalars on several ranks are those of one rank, bit for bit."""

import numpy as np
import pytest
from support.mpi_runs import LAST, datasets, monitor, run_on_rank_0
from support.scalars import flow as carrying
from support.scalars import setting

from mpilbm.case.case import parse_case
from mpilbm.parallel.ranks import world
from mpilbm.run.run import run

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize(("lattice", "layout"), [("D2Q9", "aa"), ("D3Q19", "esopull")])
def test_ranks_do_not_show(mpi_tmp_path, lattice, layout):
    comm, D = world(), int(lattice[1])
    outputs = [
        {"name": "nusselt", "every": 2, "axis": "xyz"[D - 1], "difference": 1.0},
        {"name": "monitor", "every": 2},
        {"name": "statistics", "every": 1},
        {"name": "statistics", "every": 1, "average": ["xyz"[D - 1]]},
    ]
    tables = carrying(lattice, layout, "single", **setting("body", D))
    tables |= {"run": {"steps": LAST}, "backend": {"name": "cpu"}, "output": outputs}
    case = parse_case(tables, "flow.toml")
    single, many = mpi_tmp_path / "one", mpi_tmp_path / "many"
    run_on_rank_0(comm, case, single)
    run(case, comm, many)
    comm.Barrier()
    texts = [(folder / "nusselt.csv").read_text() for folder in (single, many)]
    assert texts[0] == texts[1]
    assert len(texts[0].splitlines()) == 5
    assert "rate_0" in texts[0]
    assert monitor(many) == monitor(single)
    for path in single.glob("statistics_*.h5"):
        here, there = datasets(path), datasets(many / path.name)
        assert "flux_T" in here
        assert all(np.array_equal(here[k], there[k], equal_nan=True) for k in here)
