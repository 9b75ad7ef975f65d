"""Many exchanges by `cuda_ipc` with random delays between three ranks: the bits of one rank."""

import random
import time
from dataclasses import replace

import numpy as np
import pytest
from support.emulated_device import command
from support.ipc_threads import PATIENCE, Device, World
from support.slabs import Cluster
from support.streams import flow

from mpilbm.halo import ipc_exchange, ipc_kernel

STEPS = 60
pytestmark = pytest.mark.skipif(command() is None, reason="no C++ compiler")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Few threads, but several blocks."""
    monkeypatch.setattr(ipc_kernel, "THREADS", 3)
    monkeypatch.setattr(ipc_kernel, "MOST_BLOCKS", 4)
    monkeypatch.setattr(ipc_kernel, "PATIENCE", PATIENCE)


class Slow(Device):
    """A device that rests before some of its operations, up to 2 ms."""

    def __init__(self, rank, seed):
        super().__init__(rank, seed)
        self._rests = random.Random(7 * seed + rank)

    def run_one(self):
        if self._rests.random() < 0.05:
            time.sleep(2e-3 * self._rests.random())
        return super().run_one()


def work(solver, steps):
    """Step, and after each step copy the whole state in the bulk stream, as an output does."""
    device, bulk, kept = solver.device, solver.device.stream("bulk"), []
    for _ in range(steps):
        solver.step()
        current = solver.fluids[0].current()["f"]
        kept.append(device.allocate(current.size, current.dtype))
        device.copy(kept[-1], current, bulk)
    device.synchronize()
    return np.concatenate(kept)


def states(layout, steps, seed):
    """The state of one slab and of three, and what each of the three copied after each step."""
    whole = Cluster(flow(layout, "periodic")).start().run(steps).state()
    number = iter(range(3))
    many = Cluster(flow(layout, "periodic"), 3, lambda: Slow(next(number), seed), World(3)).start()
    copied = many.each(lambda solver: work(solver, steps))
    return whole, many.state(), np.concatenate(copied)


def always(monkeypatch, await_free):
    """Let all exchanges of steps await the flag 'free', or none."""
    start = ipc_exchange.IpcExchange.start

    def started(self, ready=None):
        self._plan = replace(self._plan, alternating=not await_free)
        start(self, ready)

    monkeypatch.setattr(ipc_exchange.IpcExchange, "start", started)


@pytest.mark.parametrize("layout", ["ab", "moments", "aa"])
@pytest.mark.parametrize("seed", range(2))
def test_exchanges_with_random_delays_are_right(layout, seed, monkeypatch):
    whole, many, copied = states(layout, STEPS, seed)
    np.testing.assert_array_equal(many, whole)
    always(monkeypatch, await_free=True)
    np.testing.assert_array_equal(copied, states(layout, STEPS, seed + 1)[2])


@pytest.mark.parametrize(("layout", "omitted"), [("ab", True), ("moments", True), ("aa", False)])
def test_steps_that_write_two_arrays_in_turn_do_not_wait_for_free(layout, omitted, monkeypatch):
    seen = []
    begin = ipc_exchange.IpcExchange.connect

    def connect(self, exports):
        begin(self, exports)
        launch = self._launch

        def watched(stream, await_free):
            seen.append(await_free)
            launch(stream, await_free=await_free)

        self._launch = watched

    monkeypatch.setattr(ipc_exchange.IpcExchange, "connect", connect)
    states(layout, 4, 0)
    assert seen.count(True) == (3 if omitted else 3 + 3 * 4)  # the first exchange of each rank
    assert seen.count(False) == (3 * 4 if omitted else 0)
