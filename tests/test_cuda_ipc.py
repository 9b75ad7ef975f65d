"""Exchanges by `cuda_ipc`: its kernel, compiled for a CPU, between threads that stand for GPUs."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace

import coupled
import halo_cases
import numpy as np
import pytest
from emulated_device import Module, command
from random_device import RandomDevice
from slabs import Cluster
from test_halo_order import comm, flow

from mpilbm.backends import cuda
from mpilbm.errors import CaseError, MpilbmError
from mpilbm.halo import gpu_mpi, ipc_exchange, windows
from mpilbm.halo.cuda_ipc import CudaIpc, Wordless, arrives
from mpilbm.halo.gpu_mpi import Verdict
from mpilbm.halo.ipc_exchange import IpcExchanger
from mpilbm.registry import make

with_compiler = pytest.mark.skipif(command() is None, reason="no C++ compiler")
PATIENCE = 20.0  # seconds


class Entered:
    """What CuPy calls a stream: `with` it, launches go there."""

    def __init__(self, device, stream):
        self._device, self._stream = device, stream

    def __enter__(self):
        self._device.current = self._stream

    def __exit__(self, *error):
        self._device.current = None


class Device(RandomDevice):
    """Streams in any order; a library of its own for each rank, whose launches run side by side."""

    module = cuda.CudaDevice.module

    def __init__(self, rank=0, seed=0):
        super().__init__(seed)
        self.current, self.rank = None, rank
        errors = SimpleNamespace(compiler=SimpleNamespace(CompileException=OSError))
        self._cupy = SimpleNamespace(RawModule=self._raw, cuda=errors)
        for stream in self._streams.values():
            stream.cupy = Entered(self, stream)

    def _raw(self, code, backend, options):
        return Module(self, code, backend, (*options, f"-DRANK={self.rank}"))


class SameMemory:
    """Windows between threads, who see all that others have."""

    def address(self, array):
        return array.ctypes.data

    show = address

    def look(self, rank, shown):
        return shown

    def close(self):
        """Nothing was opened."""


class World:
    """Ranks that are threads, with the calls of a communicator that exchanges make."""

    def __init__(self, ranks):
        self.ranks, self._said = ranks, [None] * ranks
        self._barrier = threading.Barrier(ranks, timeout=PATIENCE)

    def comm(self, rank, device):
        def allgather(value):
            device.synchronize()  # a device works while its host waits
            self._said[rank] = value
            self._barrier.wait()
            found = list(self._said)
            self._barrier.wait()
            return found

        return SimpleNamespace(
            rank=rank, size=self.ranks, allgather=allgather, Barrier=self._barrier.wait
        )

    def exchanger(self, rank, slab, device):
        device.rank = rank
        return IpcExchanger(slab, self.comm(rank, device), device, SameMemory())


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Few threads, but several blocks."""
    monkeypatch.setattr(ipc_exchange, "THREADS", 3)
    monkeypatch.setattr(ipc_exchange, "MOST_BLOCKS", 4)
    monkeypatch.setattr(ipc_exchange, "PATIENCE", PATIENCE)


def exchange(world, slab, steps=4):
    device = Device(slab.rank, slab.rank)
    with world.exchanger(slab.rank, slab, device) as exchanger:
        ends = [halo_cases.Ends(slab, device, exchanger) for _ in range(2)]
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
    assert all(each.launch for s in many.solvers for each in s.exchanger._exchanges)
    many.each(lambda s: ([s.step() for _ in range(7)], s.device.synchronize()))
    np.testing.assert_array_equal(many.state(), whole)


@with_compiler
def test_fluids_whose_fields_travel_too_are_one():
    tables = coupled.two("D2Q9")
    whole = coupled.state(Cluster(tables).start().run(5))
    many = Cluster(tables, 3, Device, World(3)).start()
    assert len(many.solvers[0].exchanger._exchanges) > 2
    many.each(lambda s: ([s.step() for _ in range(5)], s.device.synchronize()))
    np.testing.assert_array_equal(coupled.state(many), whole)


@with_compiler
def test_a_neighbour_that_does_not_come_ends_the_wait(monkeypatch):
    monkeypatch.setattr(ipc_exchange, "PATIENCE", 0.2)
    slabs, world = halo_cases.slabs(2, False), World(2)

    def first(slab):
        device = Device(slab.rank)
        exchanger = world.exchanger(slab.rank, slab, device)
        ends = halo_cases.Ends(slab, device, exchanger)
        if slab.rank == 1:
            exchanger.connect()  # and does not start
            return
        with exchanger:
            ends.exchange.start()
            ends.exchange.finish()

    with ThreadPoolExecutor(2) as pool:
        done = [pool.submit(first, slab) for slab in slabs]
    with pytest.raises(MpilbmError, match=r"rank 0: the GPU of rank 1 did not take planes for 0.2"):
        done[0].result()
    done[1].result()


class Elsewhere(SameMemory):
    """Windows that show rank 0's memory to nobody: what is written for it goes astray."""

    def __init__(self):
        self.astray = np.zeros(1 << 20, np.uint8)

    def look(self, rank, shown):
        return self.astray.ctypes.data if rank == 0 else shown


@with_compiler
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize(("memory", "first"), [(SameMemory, True), (Elsewhere, False)])
def test_a_trial_tells_whether_what_is_written_arrives(ranks, memory, first):
    world = World(ranks)

    def tried(slab):
        device = Device(slab.rank, slab.rank)
        of = slab, world.comm(slab.rank, device), device, memory()
        device.rank = slab.rank
        with IpcExchanger(*of, Wordless) as exchanger:
            return arrives(exchanger)

    with ThreadPoolExecutor(ranks) as pool:
        found = list(pool.map(tried, halo_cases.slabs(ranks, False)))
    assert found == [first, *[True] * (ranks - 1)]


@pytest.mark.parametrize(
    ("refused", "answer", "way", "why"),
    [(False, True, "cuda_ipc", "a trial between the GPUs of this node passed"),
     (True, True, "direct", r"'cuda_ipc' joins GPUs of one node, found a, b; MPI says so"),
     (True, False, "staged", r"found a, b; MPI says so; 'nccl' needs no such MPI")],
)  # fmt: skip
def test_auto_takes_the_fastest_that_passes_a_trial(refused, answer, way, why, monkeypatch):
    _, ranks, gpu = gpus("a GPU-1", "b GPU-2")
    if not refused:
        monkeypatch.setattr(CudaIpc, "open", lambda self, ring, *of: nullcontext(ring.lower))
    monkeypatch.setattr(gpu_mpi, "verdict", lambda: None)
    monkeypatch.setattr(gpu_mpi, "agreed", lambda *of: Verdict(answer, "MPI says so"))
    chosen, reason = make("halo", "auto").resolve(ranks, gpu)
    assert chosen.name == way
    assert re.search(why, reason)


def gpus(*identities):
    gpu = SimpleNamespace(kind="cuda", identity=identities[1], index=0)
    return halo_cases.slabs(2, True)[1], comm(identities), gpu


def test_who_cannot_use_it_is_told():
    way = make("halo", "cuda_ipc")
    slab, both, _ = gpus("a GPU-1", "a GPU-1")
    with pytest.raises(CaseError, match="the ranks run on CPUs; use 'auto'"):
        way.open(slab, both, halo_cases.device())
    with pytest.raises(CaseError, match="one GPU per rank: ranks 0, 1 share one device"):
        way.open(*gpus("a GPU-1", "a GPU-1"))
    with pytest.raises(CaseError, match="joins GPUs of one node, found a, b"):
        way.open(*gpus("a GPU-1", "b GPU-2"))


@pytest.mark.parametrize(
    ("seen", "reached", "words"),
    [(["GPU-2"], True, "does not see that of rank 0: start with --gpu-bind=none"),
     (["GPU-2", "GPU-1"], False, "that of rank 1 does not reach that of rank 0")],
)  # fmt: skip
def test_gpus_that_do_not_reach_each_other_are_told(seen, reached, words, monkeypatch):
    runtime = SimpleNamespace(
        getDeviceCount=lambda: len(seen), deviceCanAccessPeer=lambda one, other: reached
    )
    monkeypatch.setitem(__import__("sys").modules, "cupy", SimpleNamespace())
    monkeypatch.setitem(__import__("sys").modules, "cupy.cuda", SimpleNamespace(runtime=runtime))
    monkeypatch.setattr(windows.nvidia, "device_uuid", seen.__getitem__)
    slab, _, gpu = gpus("a GPU-1", "a GPU-2")
    with pytest.raises(CaseError, match=words):
        windows.reach(slab, gpu, ["GPU-1", "GPU-2"])


class Runtime:
    """CuPy's words for memory between processes, over a machine of one allocation at 4096."""

    CUDARuntimeError = OSError

    def __init__(self):
        self.open = {}

    def ipcGetMemHandle(self, base):  # noqa: N802
        return base.to_bytes(64, "little")

    def ipcOpenMemHandle(self, handle):  # noqa: N802
        if handle == b"foreign":
            raise OSError("cudaErrorInvalidResourceHandle")
        place = 7000000 + len(self.open)
        self.open[place] = handle
        return place

    def ipcCloseMemHandle(self, place):  # noqa: N802
        del self.open[place]


def test_a_part_of_an_allocation_is_shown_by_its_offset(monkeypatch):
    def range_of(base, size, place):
        base._obj.value = 4096
        return 0

    library = SimpleNamespace(cuMemGetAddressRange_v2=range_of)
    monkeypatch.setattr(windows.ctypes, "CDLL", lambda name: library)
    runtime = Runtime()
    seen = windows.Windows(runtime)
    first, second = (
        seen.show(SimpleNamespace(data=SimpleNamespace(ptr=ptr))) for ptr in (4096, 4608)
    )
    assert seen.look(1, second) - seen.look(1, first) == 512
    assert len(runtime.open) == 1
    with pytest.raises(CaseError, match="cannot open memory of rank 1's GPU"):
        seen.look(1, (b"foreign", 0))
    seen.close()
    assert not runtime.open
