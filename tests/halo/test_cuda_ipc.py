"""Exchanges by `cuda_ipc`: its kernel, compiled for a CPU, between threads that stand for GPUs."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from support import coupled, halo_cases
from support.emulated_device import command
from support.ipc_threads import PATIENCE, Device, SameMemory, World
from support.slabs import Cluster
from support.streams import flow

from mpilbm.core.errors import MpilbmError
from mpilbm.core.registry import make
from mpilbm.halo import cuda_ipc, ipc_exchange, ipc_kernel
from mpilbm.halo.cuda_ipc import TrialExchange
from mpilbm.halo.ipc_exchange import IpcExchanger
from mpilbm.halo.neighbours import arrives
from mpilbm.parallel import gpu_aware
from mpilbm.parallel.gpu_aware import Verdict

with_compiler = pytest.mark.skipif(command() is None, reason="no C++ compiler")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Few threads, but several blocks."""
    monkeypatch.setattr(ipc_kernel, "THREADS", 3)
    monkeypatch.setattr(ipc_kernel, "MOST_BLOCKS", 4)
    monkeypatch.setattr(ipc_kernel, "PATIENCE", PATIENCE)


def exchange(world, slab, steps=4):
    device = Device(slab.rank, slab.rank)
    with world.exchanger(slab.rank, slab, device) as exchanger:
        ends = [halo_cases.SlabExchange(slab, device, exchanger) for _ in range(2)]
        for step in range(steps):
            for end in ends:
                end.fill(step)
                end.exchange.start()
            for end in ends:
                end.exchange.finish()
                end.check(step)


@with_compiler
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("periodic", [True, False])
def test_pieces_arrive_where_they_belong(ranks, periodic):
    slabs = halo_cases.slabs(ranks, periodic)
    with ThreadPoolExecutor(ranks) as pool:
        list(pool.map(partial(exchange, World(ranks)), slabs))


@with_compiler
@pytest.mark.parametrize(
    ("layout", "setting", "slabs"),
    [("ab", "walls", 3), ("aa", "periodic", 2), ("esopull", "through", 2), ("moments", "walls", 2)],
)
def test_slabs_that_write_to_each_other_are_one(layout, setting, slabs):
    whole = Cluster(flow(layout, setting)).start().run(7).state()
    many = Cluster(flow(layout, setting), slabs, Device, World(slabs)).start()
    assert all(each._launch for s in many.solvers for each in s.exchanger._exchanges)
    many.each(lambda s: ([s.step() for _ in range(7)], s.device.synchronize()))
    np.testing.assert_array_equal(many.state(), whole)


@with_compiler
def test_fluids_whose_fields_travel_too_are_one():
    tables = coupled.two_fluids("D2Q9")
    whole = coupled.state(Cluster(tables).start().run(5))
    many = Cluster(tables, 3, Device, World(3)).start()
    assert len(many.solvers[0].exchanger._exchanges) > 2
    many.each(lambda s: ([s.step() for _ in range(5)], s.device.synchronize()))
    np.testing.assert_array_equal(coupled.state(many), whole)


@with_compiler
def test_a_neighbour_that_does_not_come_ends_the_wait(monkeypatch):
    monkeypatch.setattr(ipc_kernel, "PATIENCE", 0.2)
    slabs, world = halo_cases.slabs(2, False), World(2)

    def first(slab):
        device = Device(slab.rank)
        exchanger = world.exchanger(slab.rank, slab, device)
        ends = halo_cases.SlabExchange(slab, device, exchanger)
        if slab.rank == 1:
            exchanger.peers.connect()  # and does not start
            return
        with exchanger:
            ends.exchange.start()
            ends.exchange.finish()

    with ThreadPoolExecutor(2) as pool:
        done = [pool.submit(first, slab) for slab in slabs]
    with pytest.raises(MpilbmError, match=r"rank 0: the GPU of rank 1 did not take planes for 0.2"):
        done[0].result()
    done[1].result()


@with_compiler
def test_a_neighbour_whose_process_has_ended_ends_the_wait(monkeypatch):
    """The host's check raises and lets the kernel go, which leaves the neighbour's memory alone."""
    slabs, world = halo_cases.slabs(2, False), World(2)

    def ended():
        raise MpilbmError("process 7 of rank 1 has ended")

    def first(slab):
        device = Device(slab.rank)
        exchanger = world.exchanger(slab.rank, slab, device)
        ends = halo_cases.SlabExchange(slab, device, exchanger)
        exchanger.peers.connect()
        if slab.rank == 1:
            before = [array.copy() for array in ends.arrays]
            return before, ends.arrays
        monkeypatch.setattr(exchanger.peers.neighbours, "check", ended)

        def host():
            asked.set()
            with pytest.raises(MpilbmError):
                exchanger.peers.check()

        asked = threading.Event()
        with exchanger:
            threading.Timer(0.1, host).start()
            ends.exchange.start()
            ends.exchange.finish()
            assert asked.is_set()
            raise ValueError("let go")  # as the check does on a GPU, out of finish()

    with ThreadPoolExecutor(2) as pool:
        done = [pool.submit(first, slab) for slab in slabs]
    with pytest.raises(ValueError, match="let go"):
        done[0].result()
    for before, after in zip(*done[1].result(), strict=True):
        np.testing.assert_array_equal(before, after)


class Elsewhere(SameMemory):
    """Windows that show rank 0's memory to nobody: what is written for it goes astray."""

    def __init__(self):
        self.astray = np.zeros(1 << 20, np.uint8)

    def open(self, rank, exported):
        return self.astray.ctypes.data if rank == 0 else exported


@with_compiler
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize(("memory", "first"), [(SameMemory, True), (Elsewhere, False)])
def test_a_trial_finds_whether_written_data_arrive(ranks, memory, first):
    world = World(ranks)

    def tried(slab):
        device = Device(slab.rank, slab.rank)
        of = slab, world.comm(slab.rank, device), device, memory()
        device.rank = slab.rank
        with IpcExchanger(*of, TrialExchange) as exchanger:
            return arrives(exchanger.prepare, *of[:3])

    with ThreadPoolExecutor(ranks) as pool:
        found = list(pool.map(tried, halo_cases.slabs(ranks, False)))
    assert found == [first, *[True] * (ranks - 1)]


class Shut(SameMemory):
    """Windows of which rank 0's cannot be opened."""

    def __init__(self):
        self.opened = set()

    def open(self, rank, exported):
        if rank == 0:
            ipc_exchange.refuse("cannot open memory of rank 0's GPU; so it is")
        self.opened.add(rank)
        return exported

    def close(self):
        self.opened.clear()


@with_compiler
@pytest.mark.parametrize(
    ("memory", "way", "why"),
    [(SameMemory, "cuda_ipc", "passed"), (Elsewhere, "direct", "rank 0 for a trial did not"),
     (Shut, "direct", "cannot open memory of rank 0's GPU; MPI says so")],
)  # fmt: skip
def test_auto_goes_on_alike_on_all_ranks(memory, way, why, monkeypatch):
    world, shown = World(3), []
    monkeypatch.setattr(cuda_ipc, "reach", lambda *of: (None, frozenset()))
    monkeypatch.setattr(cuda_ipc, "Windows", lambda *of: shown.append(memory()) or shown[-1])
    monkeypatch.setattr(gpu_aware, "verdict", lambda: Verdict(True, "MPI says so"))

    def resolved(rank):
        device = Device(rank, rank)
        device.rank, device.kind, device.identity = rank, "cuda", f"node GPU-{rank}"
        chosen, reason = make("halo", "auto").resolve(world.comm(rank, device), device)
        return chosen.name, reason

    with ThreadPoolExecutor(3) as pool:
        found = set(pool.map(resolved, range(3)))
    ((name, reason),) = found
    assert name == way
    assert why in reason
    assert not any(getattr(each, "opened", ()) for each in shown)
