"""Exchanges in the order of streams: right in whatever order a device does what it may do."""

import atexit
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from support import halo_cases
from support.random_device import NcclWorld, RandomDevice
from support.slabs import Cluster
from support.streams import comm, flow

from mpilbm.backends import gpu
from mpilbm.core.errors import CaseError, MpilbmError
from mpilbm.core.registry import make, names
from mpilbm.halo import Plan, Transfer
from mpilbm.halo.nccl import NcclExchange, NcclExchanger, Network


def exchange(world, slab, steps=3):
    device = RandomDevice(slab.rank)
    ends = halo_cases.SlabExchange(slab, device, world.exchanger(slab.rank, slab, device))
    for step in range(steps):
        ends.fill(step)
        ends.exchange.start()
        ends.exchange.finish()
        ends.check(step)


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("periodic", [True, False])
def test_what_has_no_tags_arrives_where_it_belongs(ranks, periodic):
    slabs = halo_cases.slabs(ranks, periodic)
    with ThreadPoolExecutor(ranks) as pool:
        list(pool.map(partial(exchange, NcclWorld(ranks)), slabs))


@pytest.mark.parametrize("layout", names("layouts"))
@pytest.mark.parametrize(("setting", "slabs"), [("periodic", 2), ("walls", 3), ("through", 2)])
def test_slabs_that_wait_by_events_alone_are_one(layout, setting, slabs):
    whole = Cluster(flow(layout, setting)).start().run(7).state()
    for seed in range(3):
        many = Cluster(
            flow(layout, setting), slabs, partial(RandomDevice, seed), NcclWorld(slabs, 20)
        )
        np.testing.assert_array_equal(many.start().run(7).state(), whole)


class Library:
    """Records the calls of CuPy's module for NCCL."""

    NCCL_UINT8, NcclError = 1, OSError

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *words: self.calls.append((name, *words))

    def get_unique_id(self):
        return (7,) * 128

    def NcclCommunicator(self, *words):  # noqa: N802
        self.calls.append(("join", *words))
        return self


def test_a_group_is_enqueued_at_once():
    nccl, stream = Library(), SimpleNamespace(cupy=SimpleNamespace(ptr=9))
    network = Network(nccl, comm(rank=0), (7,) * 128)
    pieces = [SimpleNamespace(data=SimpleNamespace(ptr=100 * k), nbytes=k) for k in range(3)]
    enqueue = network.group([(pieces[1], 1), (pieces[2], 1)], [(pieces[2], 1)], stream)
    assert nccl.calls == [("join", 2, (7,) * 128, 0)]
    enqueue()
    assert nccl.calls[1:] == [
        ("groupStart",), ("send", 100, 1, 1, 1, 9), ("recv", 200, 2, 1, 1, 9),
        ("send", 200, 2, 1, 1, 9), ("groupEnd",),
    ]  # fmt: skip
    network.group([], [], stream)()
    assert len(nccl.calls) == 6


@pytest.mark.parametrize(("error", "left"), [(None, True), (ZeroDivisionError, False)])
def test_after_a_failure_nobody_is_waited_for(error, left, monkeypatch):
    at_end = []
    monkeypatch.setattr(atexit, "register", at_end.append)
    nccl, device = Library(), RandomDevice()
    exchanger = NcclExchanger(None, comm(), device, Network(nccl, comm(), (7,) * 128))
    exchanger.__exit__(error, error and error(), None)
    assert (("destroy",) in nccl.calls) == left
    at_end[0]()
    assert nccl.calls[-1] == ("abort",)


class Lost(Library):
    """A network that loses a rank while a device waits for it."""

    def check_async_error(self):
        self.calls.append(("check_async_error",))
        if len(self.calls) > 3:
            raise OSError("NCCL_ERROR_REMOTE_ERROR")


class Never:
    """A point that no device reaches."""

    done = False


def test_a_wait_for_a_rank_that_is_gone_ends(monkeypatch):
    monkeypatch.setattr(gpu, "CHECKED_EVERY", 0.01)
    nccl, wait = Lost(), gpu.Waiting()
    device = SimpleNamespace(watch=lambda check: setattr(wait, "check", check))
    exchanger = NcclExchanger(None, comm(), device, Network(nccl, comm(), (7,) * 128))
    lost = "rank 1: NCCL lost the other ranks .NCCL_ERROR_REMOTE_ERROR.; see their messages"
    with pytest.raises(MpilbmError, match=lost), exchanger:
        wait(Never())
    assert nccl.calls[-2:] == [("check_async_error",), ("abort",)]
    assert wait.check is None


def test_a_setup_without_nccl_is_refused_with_its_reason():
    slab, gpu = halo_cases.slabs(2, True)[0], SimpleNamespace(kind="cuda", identity="node GPU-1")
    with pytest.raises(CaseError, match="the ranks run on CPUs; use 'auto', 'direct'"):
        make("halo", "nccl").open(slab, comm(), halo_cases.device())
    with pytest.raises(CaseError, match="one GPU per rank: ranks 0, 1 share one device"):
        make("halo", "nccl").open(slab, comm(["node GPU-1"] * 2), gpu)


def test_an_exchange_keeps_its_arrays():
    class Silent:
        def group(self, sends, receives, stream):
            return lambda: None

    slab, device = halo_cases.slabs(2, True)[0], halo_cases.device()
    array = device.allocate(64, np.float64)
    memory = weakref.ref(array.base)
    plan = Plan((Transfer(1, 0, 8, 4),), (Transfer(-1, 0, 0, 4),))
    exchange = NcclExchange(slab, Silent(), device, plan, (array,))
    del array
    assert memory() is not None  # NCCL has only its address
    del exchange
    assert memory() is None
