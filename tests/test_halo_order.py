"""Exchanges in the order of streams: right in whatever order a device does what it may do."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import halo_cases
import numpy as np
import pytest
from random_device import NcclWorld, RandomDevice
from slabs import Cluster
from test_laws_slabs import tables

from mpilbm.errors import CaseError
from mpilbm.halo.nccl import Network
from mpilbm.registry import make, names


def exchange(world, slab, steps=3):
    device = RandomDevice(slab.rank)
    ends = halo_cases.Ends(slab, device, world.exchanger(slab.rank, slab, device))
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


def flow(layout, setting):
    collision = "trt" if make("layouts", layout).populations else "regularized"
    return tables("D2Q9", layout, collision, setting, "single")


@pytest.mark.parametrize("layout", names("layouts"))
@pytest.mark.parametrize(("setting", "slabs"), [("periodic", 2), ("walls", 3), ("through", 2)])
def test_slabs_that_wait_by_events_alone_are_one(layout, setting, slabs):
    whole = Cluster(flow(layout, setting)).start().run(7).state()
    for seed in range(3):
        many = Cluster(
            flow(layout, setting), slabs, partial(RandomDevice, seed), NcclWorld(slabs, 20)
        )
        np.testing.assert_array_equal(many.start().run(7).state(), whole)
