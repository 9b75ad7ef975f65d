"""The trial by which `nccl` and `auto` find whether NCCL joins the ranks."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from support import halo_cases
from support.random_device import NcclWorld, Network, RandomDevice
from support.streams import Threads, comm

from mpilbm.core.errors import CaseError
from mpilbm.halo import nccl


class TrialNetwork(Network):
    """A network between threads; from rank 0 it sends nothing, or something else, if it is bad."""

    def __init__(self, world, rank, bad):
        super().__init__(world, rank)
        self._bad, self.aborted, self.check = rank == 0 and bad, False, lambda: None

    def group(self, sends, receives, stream):
        if self._bad == "silent":
            sends = []
        if self._bad == "wrong":
            sends = [(np.zeros_like(piece), peer) for piece, peer in sends]
        return super().group(sends, receives, stream)

    def abort(self):
        self.aborted = True


class WatchedDevice(RandomDevice):
    """A device that calls its check while the host waits."""

    def watch(self, check=None):
        self.check = check

    def run_until(self, done):
        while not done():
            if not self.run_one():
                self.check()


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize(
    ("bad", "why"),
    [(None, None), ("silent", "rank 1 received nothing within 0.3 s"),
     ("wrong", "wrong values arrived on rank 1")],
)  # fmt: skip
def test_a_trial_finds_whether_bytes_arrive(ranks, bad, why, monkeypatch):
    monkeypatch.setattr(nccl, "TRIAL_SECONDS", 0.3)
    world, threads = NcclWorld(ranks), Threads(ranks, 20.0)
    networks = [TrialNetwork(world, rank, bad) for rank in range(ranks)]

    def tried(rank):
        device, slab = WatchedDevice(rank), halo_cases.slabs(ranks, False)[rank]
        nccl.require_arrival(networks[rank], slab, threads.comm(rank), device)
        return device.check

    with ThreadPoolExecutor(ranks) as pool:
        done = [pool.submit(tried, rank) for rank in range(ranks)]
    for each, network in zip(done, networks, strict=True):
        assert network.aborted == (bad is not None)
        if bad:
            with pytest.raises(CaseError, match=f"a trial of 'nccl' failed: {why}"):
                each.result()
        else:
            assert each.result() is None


def test_ranks_that_nccl_does_not_connect_refuse_it(monkeypatch):
    def fail(*words):
        raise OSError("NCCL_ERROR_SYSTEM_ERROR")

    library = SimpleNamespace(
        NcclError=OSError, get_unique_id=lambda: (7,) * 128, NcclCommunicator=fail
    )
    alone = comm(rank=0)
    alone.allgather = lambda value: [value]
    monkeypatch.setattr(nccl, "library", lambda: library)
    with pytest.raises(CaseError, match=r"not connect the ranks .NCCL_ERROR_SYSTEM_ERROR.; NCCL"):
        nccl.joined(alone)
