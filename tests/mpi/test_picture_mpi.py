"""Pictures do not depend on the number of ranks."""

from pathlib import Path

import pytest
from mpi4py import MPI
from support import image_cases

OUTPUTS = [
    {"name": "picture", "every": 10, "normal": axis, "field": field, "label": f"{axis}{field}"}
    for axis, field in (("x", "u"), ("y", "vorticity"), ("z", "rho"))
]


@pytest.mark.mpi
def test_pictures_have_the_bytes_of_one_rank(mpi_tmp_path):
    pytest.importorskip("matplotlib")
    comm, folder = MPI.COMM_WORLD, Path(mpi_tmp_path)
    image_cases.run(folder / "all", comm, image_cases.tables(outputs=OUTPUTS))
    if comm.rank == 0:
        image_cases.run(folder / "one", MPI.COMM_SELF, image_cases.tables(outputs=OUTPUTS))
        paths = sorted((folder / "all").glob("*.png"))
        assert len(paths) == 6
        for path in paths:
            assert path.read_bytes() == (folder / "one" / path.name).read_bytes()
    comm.Barrier()
