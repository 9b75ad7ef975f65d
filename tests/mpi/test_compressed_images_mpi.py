"""Compressed files have the same bytes on any number of ranks and with all writers."""

from pathlib import Path

import pytest
from mpi4py import MPI
from support import image_cases

from mpilbm.storage import planes

GZIP = [
    {"name": "snapshot", "every": 10, "compression": "gzip", "fields": ["rho", "vorticity"]},
    {"name": "snapshot", "every": 10, "compression": "gzip", "label": "means", "stride": 3},
]


@pytest.mark.mpi
@pytest.mark.parametrize("writer", ["own", "root"])
def test_compressed_files_do_not_depend_on_the_ranks(mpi_tmp_path, monkeypatch, writer):
    comm, given = MPI.COMM_WORLD, image_cases.tables(outputs=GZIP)
    monkeypatch.setattr(planes, "best_writer", lambda *_: writer)
    folder = Path(mpi_tmp_path)
    image_cases.run(folder / "all", comm, given)
    if comm.rank == 0:
        image_cases.run(folder / "one", MPI.COMM_SELF, given)
        files = sorted((folder / "all").glob("*.vtkhdf"))
        assert len(files) == 4
        for path in files:
            assert path.read_bytes() == (folder / "one" / path.name).read_bytes()
        assert not list((folder / "all").glob("*.partial"))
    comm.Barrier()
