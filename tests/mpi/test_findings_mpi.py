"""The findings of a run are the same on any number of ranks, and rank 0 reports them."""

from pathlib import Path

import numpy as np
import pytest
from support.findings import DUCT, REST, force, lines, tables

from mpilbm.case.case import parse_case
from mpilbm.parallel.agree import on_root
from mpilbm.parallel.ranks import world
from mpilbm.run.run import run

pytestmark = pytest.mark.mpi


def test_a_run_reports_what_one_process_plans(tmp_path, capfd):
    """Of a rock with narrow channels and isolated fluid across the cuts."""
    comm = world()
    folder = Path(comm.bcast(str(tmp_path)))
    rock = np.random.default_rng(4).random((24, 40)) < 0.5
    on_root(comm, np.save, folder / "rock.npy", rock)
    case = tables(**DUCT, **force(1e-3, 0), run={"steps": 2})
    case["body"] = [{"mask": "rock.npy", "boundary": REST}]
    case = parse_case(case, folder / "rock.toml")
    run(case, comm, folder / "out")
    said = [line for line in capfd.readouterr().err.splitlines()
            if line.startswith(("serious:", "warning:", "note:"))]  # fmt: skip
    wanted = lines(case)
    assert {line.split(":")[1] for line in wanted} >= {" channels", " isolated fluid"}
    assert said == (wanted if comm.rank == 0 else [])
