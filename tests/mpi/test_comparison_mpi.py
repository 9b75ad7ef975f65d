"""Number formats compared on several ranks: the deviations are those of one rank."""

import tomllib
from pathlib import Path

import pytest
from support.outputs_cases import make_case

from mpilbm.parallel.ranks import Serial, world
from mpilbm.view.bench.comparison import Comparison, variants

pytestmark = pytest.mark.mpi
WAVE = {"u": ["0.05*sin(2*pi*y/ny)", "0.02*cos(2*pi*x/nx)"]}


def rows(comm):
    case = make_case((12, 12), initial=WAVE, run={"steps": 20})
    found = Comparison(tomllib.loads(case.toml), Path("case.toml"), comm, 20)
    return [found.row(variant) for variant in variants(found.short, "precision")]


def test_the_same_rows_on_all_ranks_with_the_deviations_of_one():
    comm = world()
    together, alone = rows(comm), rows(Serial())
    assert all(found == together for found in comm.allgather(together))
    for here, there in zip(together, alone, strict=True):
        assert here.get("end") == there.get("end")
        assert here.get("problem") == there.get("problem")
    assert sum("end" in row for row in together) == 4
