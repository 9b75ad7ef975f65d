"""Flow rates on several ranks are those of one rank, bit for bit."""

import pytest
from support.channels import OUTPUT, PLANES, channel
from support.mpi_runs import run_on_rank_0

from mpilbm.case.case import parse_case
from mpilbm.parallel.ranks import world
from mpilbm.run.run import run

pytestmark = pytest.mark.mpi


def test_ranks_do_not_show(mpi_tmp_path):
    comm, across = world(), {"label": "across", "normal": "y", "position": 1}
    output = OUTPUT | {"every": 10, "plane": [*PLANES, across]}
    case = parse_case(channel(run={"steps": 25}, output=[output]), "channel.toml")
    single, many = mpi_tmp_path / "one", mpi_tmp_path / "many"
    run_on_rank_0(comm, case, single)
    run(case, comm, many)
    comm.Barrier()
    texts = [(folder / "flow_rate_0.csv").read_text() for folder in (single, many)]
    assert texts[0] == texts[1]
    assert len(texts[0].splitlines()) == 4  # the names, and steps 10, 20, 25
