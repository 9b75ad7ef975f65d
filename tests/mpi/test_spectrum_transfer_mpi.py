"""Transfer, dissipation and spectral enstrophy have the same bits on any number of ranks."""

import numpy as np
import pytest
from support.mpi_runs import monitor, run_on_rank_0, run_on_ranks
from support.outputs_cases import make_case

from mpilbm.outputs.core.tables import read

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("size", [(6, 5, 9), (10, 9)])
@pytest.mark.parametrize("columns", [5, 1024])
def test_the_transfer_has_the_bits_of_one_rank(comm, size, columns, mpi_tmp_path, monkeypatch):
    monkeypatch.setattr("mpilbm.outputs.spectra.COLUMNS", columns)
    spectrum = {"name": "spectrum", "every": 2, "transfer": True}
    outputs = [
        spectrum, spectrum | {"format": "csv"}, {"name": "monitor", "every": 2, "spectral": True}
    ]  # fmt: skip
    initial = {"random": {"speed": 0.03, "peak": 1}}
    case = make_case(size, outputs, run={"steps": 3}, initial=initial)
    run_on_rank_0(comm, case, mpi_tmp_path / "one")
    run_on_ranks(comm, comm.size, case, mpi_tmp_path / "all")
    one, other = (read(mpi_tmp_path / name / "spectrum_0.h5") for name in ("one", "all"))
    assert np.ptp(one["transfer"]) > 0
    for name in one:
        assert one[name].tobytes() == other[name].tobytes(), name
    one, other = ((mpi_tmp_path / name / "spectrum_1.csv").read_text() for name in ("one", "all"))
    assert one == other
    columns = [row.split(",") for row in monitor(mpi_tmp_path / "one")]
    assert columns == [row.split(",") for row in monitor(mpi_tmp_path / "all")]
    assert "enstrophy_spectral" in columns[0]
