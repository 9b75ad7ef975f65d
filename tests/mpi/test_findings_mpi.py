"""The findings of a run are the same on any number of ranks, and rank 0 reports them."""

import re
from pathlib import Path

import numpy as np
import pytest
from support.findings import DUCT, REST, force, lines, tables
from support.guarded import alternating, heated, sounding
from support.mpi_runs import run_on_rank_0
from support.runs import summary

from mpilbm.case.case import parse_case
from mpilbm.core.errors import NonFiniteError
from mpilbm.parallel import on_root
from mpilbm.parallel.ranks import Serial, world
from mpilbm.run import steady
from mpilbm.run.run import run

pytestmark = pytest.mark.mpi


def of_run(directory):
    """The findings about steps, without the rank that owns a cell."""
    found = [each["message"] for each in summary(directory)["findings"]]
    return [re.sub(r" on rank \d+, which owns y = \d+ to \d+", "", text) for text in found
            if text.startswith("by step")]  # fmt: skip


@pytest.mark.parametrize(("case", "count"), [
    (alternating(200, "0.01*exp(t/50)", "aa"), 1),
    (heated(200, diffusivity=3e-3), 1),
    (sounding(1200), 2),
    (sounding(1200, along="x"), 2),
])  # fmt: skip
def test_a_run_finds_the_same_on_all_ranks(mpi_tmp_path, monkeypatch, case, count):
    monkeypatch.setattr(steady, "CHECK_EVERY", 40)
    run_on_rank_0(world(), case, mpi_tmp_path / "one")
    run(case, world(), mpi_tmp_path / "many")
    assert len(of_run(mpi_tmp_path / "one")) == count
    assert of_run(mpi_tmp_path / "many") == of_run(mpi_tmp_path / "one")


def test_a_scalar_that_grows_ends_the_run_on_all_ranks(mpi_tmp_path):
    comm, case = world(), heated(400)
    found = on_root(comm, bad_step, case, Serial(), mpi_tmp_path / "one")
    assert bad_step(case, comm, mpi_tmp_path / "many") == found


def bad_step(case, comm, directory):
    with pytest.raises(NonFiniteError, match="the scalar 'T' is") as raised:
        run(case, comm, directory)
    return raised.value.step


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
