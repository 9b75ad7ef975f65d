"""Flow rates on several ranks are those of one rank, bit for bit."""

import pytest
from support.channels import OUTPUT, PLANES, H, channel
from support.mpi_runs import run_on_rank_0

from mpilbm.case.case import parse_case
from mpilbm.parallel.ranks import world
from mpilbm.run.run import run

pytestmark = pytest.mark.mpi


def test_ranks_do_not_show(mpi_tmp_path):
    """Also of planes on both sides of a seam of two ranks, and of the last one."""
    comm = world()
    across = [
        {"label": f"y{k}", "normal": "y", "position": y} for k, y in enumerate((1, 3.9, 4.1, H))
    ]
    part = {"label": "seam", "normal": "x", "position": 5, "centre": [4], "radius": 1.5}
    output = OUTPUT | {"every": 10, "plane": [*PLANES, *across, part]}
    case = parse_case(channel(run={"steps": 25}, output=[output]), "channel.toml")
    single, many = mpi_tmp_path / "one", mpi_tmp_path / "many"
    run_on_rank_0(comm, case, single)
    run(case, comm, many)
    comm.Barrier()
    texts = [(folder / "flow_rate_0.csv").read_text() for folder in (single, many)]
    assert texts[0] == texts[1]
    assert len(texts[0].splitlines()) == 4  # the names, and steps 10, 20, 25


def test_a_run_ends_by_its_error_at_the_same_step(mpi_tmp_path):
    """Also after a restart on other ranks; steady.csv has the same bytes."""
    comm = world()
    steady = {"every": 2, "tolerance": 0.02, "of": "flow_rate", "by": "error"}
    outputs = [OUTPUT | {"every": 10}, {"name": "checkpoint", "every": 50}]
    texts = []
    for name, ends in (("one", (2000,)), ("parts", (50, 2000))):
        for end in ends:
            tables = channel(run={"steps": end, "steady": steady}, output=outputs)
            case = parse_case(tables, "channel.toml")
            alone = name == "one" or end == 50
            restart = "auto" if end != ends[0] else None
            if alone:
                run_on_rank_0(comm, case, mpi_tmp_path / name)
            else:
                run(case, comm, mpi_tmp_path / name, restart=restart)
            comm.Barrier()
        texts.append((mpi_tmp_path / name / "steady.csv").read_text())
    assert texts[0] == texts[1]
    assert 64 < len(texts[0].splitlines()) < 1000
    header, *_, last = texts[0].splitlines()
    assert header == "step,time,residual,total_pressure_drop"
    assert float(last.split(",")[2]) < 0.02
