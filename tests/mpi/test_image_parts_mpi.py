"""Parts of the box have the same bits on any number of ranks."""

from pathlib import Path

import pytest
from mpi4py import MPI
from support import image_cases

from mpilbm.storage import planes


@pytest.mark.mpi
@pytest.mark.parametrize("writer", ["own", "root"])
def test_parts_do_not_depend_on_the_ranks(mpi_tmp_path, monkeypatch, writer):
    comm = MPI.COMM_WORLD
    monkeypatch.setattr(planes, "best_writer", lambda *_: writer)
    fields = image_cases.run(Path(mpi_tmp_path) / "all", comm)
    if comm.rank == 0:
        image_cases.check(Path(mpi_tmp_path) / "all", fields)
        image_cases.run(Path(mpi_tmp_path) / "one", MPI.COMM_SELF)
        assert image_cases.same(Path(mpi_tmp_path) / "all", Path(mpi_tmp_path) / "one")
    comm.Barrier()
