"""Sponges in the moment sweep: the flow of the generic kernel, also by two steps in one pass."""

import numpy as np
import pytest
from support.emulated_device import EmulatedDevice, command
from support.slabs import Cluster
from support.two_steps import small_tiles, tile, two_are_faster, walled

from mpilbm.backends.cuda import tiles

pytestmark = pytest.mark.skipif(command() is None, reason="no C++ compiler")
STEPS = 8
SPONGE = {"sponge": [{"where": ["x+", "y-", "z-"], "thickness": 4.5, "viscosity": 0.3}]}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    small_tiles(monkeypatch)
    two_are_faster(monkeypatch)
    monkeypatch.setattr(tiles, "TWO_STEPS", (tile(12, 8, 2),))


def test_the_flow_of_the_generic_kernel():
    case = walled("yz", "D3Q19", "double", **SPONGE)
    single = Cluster(case, 1, EmulatedDevice).start()
    assert single.solvers[0].context.kernels["collide_stream_0"].tile
    single.run(STEPS)
    expected = Cluster(case).start().run(STEPS).fields("rho", "u")
    for name, values in single.fields("rho", "u").items():
        assert np.abs(values - expected[name]).max() < 1e-14
    for slabs in (1, 2):
        cluster = Cluster(case, slabs, EmulatedDevice).start()
        assert all(solver.two_steps for solver in cluster.solvers)
        cluster.each(lambda solver: solver.advance(STEPS))
        assert np.array_equal(cluster.state(), single.state())
