"""Parts that devices with their own memory cut and add have the same bits on any ranks."""

from pathlib import Path

import pytest
from mpi4py import MPI
from support import image_cases
from support.device_parts import OUTPUTS, own_memory

from mpilbm.storage import planes


@pytest.mark.mpi
@pytest.mark.parametrize("writer", ["own", "root"])
def test_device_parts_do_not_depend_on_the_ranks(mpi_tmp_path, monkeypatch, writer):
    comm, given = MPI.COMM_WORLD, image_cases.tables(outputs=OUTPUTS)
    monkeypatch.setattr(planes, "best_writer", lambda *_: writer)
    folder = Path(mpi_tmp_path)
    if comm.rank == 0:
        image_cases.run(folder / "host", MPI.COMM_SELF, given)
    comm.Barrier()
    own_memory(monkeypatch, small=writer == "own")
    image_cases.run(folder / "device", comm, given)
    if comm.rank == 0:
        assert image_cases.same(folder / "host", folder / "device")
    comm.Barrier()
