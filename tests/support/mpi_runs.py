"""Runs on some of the ranks or on rank 0, and the contents of their files."""

import h5py

from mpilbm.parallel.ranks import Serial
from mpilbm.run.run import run

LAST = 7


def run_on_rank_0(comm, case, directory, **options):
    """Run a case on rank 0; the other ranks wait."""
    if comm.rank == 0:
        run(case, Serial(), directory, **options)
    comm.Barrier()


def run_on_ranks(comm, count, case, directory, **options):
    """Run a case on the first `count` ranks; the other ranks wait."""
    group = comm.Split(comm.rank < count)
    if comm.rank < count:
        run(case, group, directory, **options)
    group.Free()
    comm.Barrier()


def monitor(directory):
    """The rows of monitor.csv without the last column, the speed."""
    rows = (directory / "monitor.csv").read_text().splitlines()
    return [row.rpartition(",")[0] for row in rows]


def datasets(path):
    """All arrays of an HDF5 file by name."""
    found = {}
    with h5py.File(path) as file:
        file.visititems(
            lambda name, item: found.update({name: item[()]} if hasattr(item, "shape") else {})
        )
    return found
