"""A picture of an isosurface has the same values on any number of ranks."""

from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI
from support import image_cases

from mpilbm.outputs.drawing import isosurface

SURFACE = {"name": "picture", "label": "iso", "every": 10,
           "surface": {"field": "q_criterion", "value": 1e-5, "stride": 3}}  # fmt: skip


@pytest.mark.mpi
@pytest.mark.parametrize("lattice", ["D3Q19", "D3Q13"])
def test_the_values_do_not_depend_on_the_ranks(mpi_tmp_path, monkeypatch, lattice):
    drawn = []

    def png(*arrays, **texts):
        drawn.append(arrays)
        return b"picture"

    monkeypatch.setattr(isosurface, "png", png)
    monkeypatch.setattr(isosurface, "require_drawing", lambda use: None)
    comm, folder = MPI.COMM_WORLD, Path(mpi_tmp_path)
    given = image_cases.tables(lattice, outputs=[SURFACE])
    image_cases.run(folder / "many", comm, given)
    many = list(drawn)
    if comm.rank == 0:
        drawn.clear()
        image_cases.run(folder / "one", MPI.COMM_SELF, given)
        assert len(many) == len(drawn) == 2
        assert all(np.array_equal(a, b) for one, other in zip(many, drawn, strict=True)
                   for a, b in zip(one, other, strict=True))  # fmt: skip
    else:
        assert not many
    comm.Barrier()
