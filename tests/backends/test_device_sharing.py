"""How many ranks take their memory from one GPU: counted by identity, not by visible devices."""

from unittest.mock import MagicMock

import pytest

from mpilbm.backends import cuda
from mpilbm.backends.gpu import drivers
from mpilbm.core.errors import CaseError
from mpilbm.run import setup

GIB = 2**30


class Pair:
    """A communicator of two ranks of one node; the other one reports `identity`."""

    rank, size = 0, 2

    def __init__(self, identity):
        self._identity = identity

    def allgather(self, value):
        if value is None:  # no error
            return [value, value]
        name, _, warning = value
        return [value, (name, self._identity, warning)]


@pytest.fixture
def free(monkeypatch):
    """One visible GPU, GPU-a of this node, with so many bytes free of 140 GiB."""
    cupy, found = MagicMock(__version__="14"), [139 * GIB]
    cupy.cuda.runtime.getDeviceCount.return_value = 1
    cupy.cuda.runtime.getDeviceProperties.return_value = {
        "name": b"H200", "sharedMemPerBlockOptin": 0, "multiProcessorCount": 1,
    }  # fmt: skip
    cupy.cuda.runtime.driverGetVersion.return_value = 13000
    cupy.cuda.nvrtc.getVersion.return_value = (13, 0)
    device = cupy.cuda.Device.return_value
    device.compute_capability = "90"
    type(device).mem_info = property(lambda self: (found[0], 140 * GIB))
    cupy.get_default_memory_pool.return_value.free_bytes.return_value = 0
    monkeypatch.setattr(drivers, "nvidia", lambda: drivers.Driver(1, 13))
    monkeypatch.setattr(drivers, "device_uuid", lambda index: "GPU-a")
    monkeypatch.setattr(cuda, "load_cupy", lambda driver: cupy)
    monkeypatch.setattr(cuda.socket, "gethostname", lambda: "node")
    monkeypatch.setattr(setup, "local_rank", lambda comm: (0, 2))
    return found


def test_ranks_that_see_one_gpu_each_do_not_share_it(free):
    device = setup.open_device(cuda.Cuda(), Pair("node GPU-b")).device
    assert device.sharing == 1
    device.require(95 * GIB, "the fields of a slab", first=True)
    device.require(95 * GIB, "the velocity field")


def test_ranks_on_one_gpu_share_it(free):
    device = setup.open_device(cuda.Cuda(), Pair("node GPU-a")).device
    assert device.sharing == 2
    with pytest.raises(CaseError, match=r"95 GiB.*139 GiB of 140 GiB free, shared by 2 ranks"):
        device.require(95 * GIB, "the fields of a slab", first=True)


def test_the_share_of_a_rank_counts_before_it_allocates(free):
    """Whichever rank allocates first; later what is free is divided again."""
    device = setup.open_device(cuda.Cuda(), Pair("node GPU-a")).device
    free[0] -= 60 * GIB  # the other rank's fields
    device.require(60 * GIB, "the fields of a slab", first=True)
    with pytest.raises(CaseError):
        device.require(60 * GIB, "the velocity field")
    free[0] = 50 * GIB  # taken by another program
    with pytest.raises(CaseError, match="50 GiB of 140 GiB free"):
        device.require(60 * GIB, "the fields of a slab", first=True)


def test_ranks_on_cpus_share_the_memory_of_their_node(monkeypatch):
    from mpilbm.backends.cpu import Cpu

    monkeypatch.setattr(setup, "local_rank", lambda comm: (0, 2))
    assert setup.open_device(Cpu(), Pair("")).device.sharing == 2
