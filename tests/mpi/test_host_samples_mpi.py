"""VTKHDF statistics, higher moments, spectra of lines: the files of one rank, in every bit."""

import pytest
from support.host_samples import datasets, flow

from mpilbm.parallel.ranks import Serial
from mpilbm.run.run import run
from mpilbm.storage import planes

pytestmark = pytest.mark.mpi

OUTPUTS = [
    {"name": "higher_moments", "every": 2, "average": ["x", "z"], "label": "xz",
     "format": "both"},
    {"name": "higher_moments", "every": 2, "average": ["x"], "label": "x", "write": 4,
     "format": "both"},
    {"name": "line_spectra", "every": 2, "average": ["x", "y"], "label": "xy"},
    {"name": "line_spectra", "every": 2, "average": ["x", "z"], "label": "xz"},
    {"name": "statistics", "every": 2, "average": ["x", "z"], "format": "both"},
    {"name": "statistics", "every": 2, "average": ["x"], "format": "both"},
    {"name": "statistics", "every": 2, "format": "vtkhdf"},
]  # fmt: skip


@pytest.mark.parametrize("writer", ["own", "root"])
def test_files_are_those_of_one_rank(mpi_tmp_path, comm, monkeypatch, writer):
    """Also after a restart from a checkpoint of all ranks."""
    monkeypatch.setattr(planes, "best_writer", lambda comm, directory: writer)
    outputs = [*OUTPUTS, {"name": "checkpoint", "every": 4}]
    alone, together = mpi_tmp_path / "alone", mpi_tmp_path / "together"
    if comm.rank == 0:
        run(flow(outputs), Serial(), alone)
    run(flow(outputs, steps=4), comm, together)
    run(flow(outputs), comm, together, restart="auto")
    names = sorted(path.name for path in together.glob("[hls]*_000000008.*"))
    assert len([name for name in names if not name.startswith("snapshot")]) == 12
    for name in names if comm.rank == 0 else ():
        assert (alone / name).read_bytes() == (together / name).read_bytes(), name
    if comm.rank == 0:
        found, _ = datasets(together / "line_spectra_xz_000000008.h5")
        assert found["spectrum_x_u"].max() > 1e-6
