"""Voxels on several ranks: the files of one rank, and each rank reads the planes of its slab."""

import gzip

import numpy as np
import pytest
from support.mpi_runs import datasets, run_on_rank_0

from mpilbm.case.case import parse_case
from mpilbm.run.run import run
from mpilbm.solids.volumes import array_files

pytestmark = pytest.mark.mpi(min_size=2)
SHAPE = 40, 6, 8


def rock_case(folder, file):
    return parse_case(
        {
            "lattice": {"name": "D3Q19"},
            "domain": {"size": list(SHAPE[::-1]), "periodic": [True, True, True]},
            "fluid": {"viscosity": 0.1},
            "force": {"name": "guo", "value": [1e-5, 0, 0]},
            "body": [{
                "shape": {"name": "voxels", "file": file, "solid": "< 80"},
                "boundary": {"name": "bounce_back"},
            }],
            "layout": {"name": "indirect"},
            "run": {"steps": 4},
            "output": [{"name": "snapshot", "every": 4}],
            "backend": {"name": "cpu"},
        },
        folder / "rock.toml",
    )  # fmt: skip


@pytest.mark.parametrize("file", ["rock.npy", "rock.nrrd"])
def test_ranks_write_the_snapshot_of_one_rank(file, mpi_tmp_path, comm):
    if comm.rank == 0:
        grey = np.random.default_rng(1).integers(0, 256, SHAPE).astype(np.uint8)
        np.save(mpi_tmp_path / "rock.npy", grey)
        header = "NRRD0004\ntype: uchar\ndimension: 3\nsizes: 8 6 40\nencoding: gzip\n\n"
        packed = gzip.compress(grey.tobytes())
        (mpi_tmp_path / "rock.nrrd").write_bytes(header.encode() + packed)
    comm.Barrier()
    case = rock_case(mpi_tmp_path, file)
    run_on_rank_0(comm, case, mpi_tmp_path / "one")
    run(case, comm, mpi_tmp_path / "all")
    name = "snapshot_000000004.vtkhdf"
    one, every = datasets(mpi_tmp_path / "one" / name), datasets(mpi_tmp_path / "all" / name)
    assert one.keys() == every.keys()
    assert all(np.array_equal(one[key], every[key]) for key in one)
    assert 0.2 < (one["VTKHDF/CellData/solid"] > 0).mean() < 0.4


class Recorded:
    """An array that records the planes that are read."""

    def __init__(self, array):
        self.array, self.shape, self.dtype, self.planes = array, array.shape, array.dtype, []

    def __getitem__(self, index):
        self.planes += range(*index[0].indices(len(self.array)))
        return self.array[index]


def test_each_rank_reads_only_its_planes(mpi_tmp_path, comm, monkeypatch):
    """Its half and the planes next to it, each once."""
    if comm.rank == 0:
        values = np.random.default_rng(1).integers(0, 256, SHAPE).astype(np.uint8)
        np.save(mpi_tmp_path / "counted.npy", values)
    comm.Barrier()
    arrays = []

    def recorded(path):
        arrays.append(Recorded(np.load(path, mmap_mode="r")))
        return arrays[0]

    monkeypatch.setattr(array_files, "npy_array", recorded)
    case = rock_case(mpi_tmp_path, "counted.npy")
    run(case, comm, mpi_tmp_path / "out")
    (array,) = arrays
    assert len(set(array.planes)) == len(array.planes)
    share = SHAPE[0] // comm.size
    assert share - 6 <= len(array.planes) <= share + 12
