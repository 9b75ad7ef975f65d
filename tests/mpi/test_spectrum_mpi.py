"""Spectra have the same bits on any number of ranks."""

import numpy as np
import pytest
from support.mpi_runs import run_on_rank_0, run_on_ranks
from support.outputs_cases import make_case

from mpilbm.outputs.core.tables import read

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("size", [(6, 5, 9), (10, 9)])
@pytest.mark.parametrize("columns", [5, 1024])
def test_a_spectrum_has_the_bits_of_one_rank(comm, size, columns, mpi_tmp_path, monkeypatch):
    monkeypatch.setattr("mpilbm.outputs.spectra.COLUMNS", columns)
    case = make_case(
        size, [{"name": "spectrum", "every": 2}], run={"steps": 3},
        initial={"random": {"speed": 0.03, "peak": 1}},
    )  # fmt: skip
    run_on_rank_0(comm, case, mpi_tmp_path / "one")
    run_on_ranks(comm, comm.size, case, mpi_tmp_path / "all")
    one, other = (read(mpi_tmp_path / name / "spectrum_0.h5") for name in ("one", "all"))
    assert one["step"].tolist() == [2, 3]
    assert np.ptp(one["energy"]) > 0
    for name in one:
        assert one[name].tobytes() == other[name].tobytes(), name
