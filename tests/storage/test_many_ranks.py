"""Files of many ranks: what a rank sends, reads and writes does not grow with their number."""

import os
import threading

import numpy as np
import pytest
from support.threads import on_ranks

from mpilbm.outputs.core.restart import opened, read_planes, require_intact
from mpilbm.parallel.slabs import split
from mpilbm.storage import planes
from mpilbm.storage.partial_file import dataset
from mpilbm.storage.planes import PlaneFiles

FEW, MANY, PLANES = 8, 512, 512
PLANE = (3, 5, 40)  # values of a plane: 2400 bytes
OPENED = 40_000  # bytes of metadata that HDF5 and the digest read at most


def planes_of(slab, begin=0, end=None):
    """Values that name their plane."""
    numbers = slab.begin + np.arange(begin, slab.planes if end is None else end)
    return np.broadcast_to(numbers[:, None, None, None], (len(numbers), *PLANE)).astype("f4")


class Transfers:
    """Counts the bytes that each thread reads by os.preadv and writes by os.pwrite."""

    def __init__(self, monkeypatch):
        self._counts = threading.local()
        for name in ("preadv", "pwrite"):
            monkeypatch.setattr(os, name, self._counted(name, getattr(os, name)))

    def _counted(self, name, real):
        def call(*arguments):
            done = real(*arguments)
            setattr(self._counts, name, self.of(name) + done)
            return done

        return call

    def of(self, name):
        return getattr(self._counts, name, 0)


def write_and_read(ranks, folder, transfers):
    """Communicators, and bytes that each rank has read and written."""

    def describe(file):
        dataset(file, "f", (PLANES, *PLANE), np.float32)

    def work(comm):
        slabs = split((PLANES, 1, 1), comm.size, True)
        slab = slabs[comm.rank]
        with PlaneFiles(folder, comm, slabs).create_own("planes.h5", describe) as file:
            file.write("f", lambda begin, end: planes_of(slab, begin, end))
            file.read_back()
            file.commit()
        require_intact(folder / "planes.h5", slab)
        with opened(folder / "planes.h5") as found:
            for begin, data in read_planes(found["f"], slab):
                first = begin - slab.begin
                np.testing.assert_array_equal(data, planes_of(slab, first, first + len(data)))
        return transfers.of("preadv"), transfers.of("pwrite")

    return on_ranks(ranks, work)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The results of FEW and of MANY ranks, which write the same file."""
    with pytest.MonkeyPatch.context() as patch:
        transfers = Transfers(patch)
        patch.setattr(planes, "threads_write", lambda _: "in_turns")
        return {
            ranks: write_and_read(ranks, tmp_path_factory.mktemp(f"ranks{ranks}"), transfers)
            for ranks in (FEW, MANY)
        }


def test_a_rank_makes_the_same_number_of_collective_calls(found):
    few, many = ({comm.calls for comm in found[ranks][0]} for ranks in (FEW, MANY))
    assert len(few) == 1
    assert few == many


def test_a_rank_sends_no_more(found):
    """Rank 0 sends the places of the datasets once; the others send checksums of their planes."""
    few, many = ([comm.sent for comm in found[ranks][0]] for ranks in (FEW, MANY))
    assert many[0] <= few[0]
    assert max(many[1:]) <= min(few[1:])


def test_a_rank_reads_and_writes_its_own_planes(found):
    """Twice read: after writing and before a restart; some ranks also read the metadata."""
    plane = 4 * int(np.prod(PLANE))
    for ranks in (FEW, MANY):
        planes = PLANES // ranks
        for read, written in found[ranks][1][1:]:
            assert written == planes * plane
            assert read <= 2 * planes * plane + OPENED


def test_all_ranks_together_write_the_data_once(found):
    size = PLANES * 4 * int(np.prod(PLANE))
    for ranks in (FEW, MANY):
        assert size <= sum(written for _, written in found[ranks][1]) <= size + OPENED
