"""Where `cuda_ipc` cannot be, by its words and by what `auto` takes; memory shown to others."""

import re
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from support import halo_cases
from support.streams import comm

from mpilbm.core.errors import CaseError
from mpilbm.core.registry import make
from mpilbm.halo import cuda_ipc, ipc_exchange
from mpilbm.halo.cuda_ipc import CudaIpc
from mpilbm.halo.nccl import Nccl
from mpilbm.parallel import gpu_aware
from mpilbm.parallel.gpu_aware import Verdict


@pytest.mark.parametrize(
    ("refused", "answer", "way", "why"),
    [((), True, "cuda_ipc", "a trial between the GPUs of this node passed"),
     ((CudaIpc,), True, "direct", r"'cuda_ipc' joins GPUs of one node, found a, b; MPI says so"),
     ((CudaIpc,), False, "nccl", r"found a, b; MPI says so; a trial of 'nccl' passed"),
     ((CudaIpc, Nccl), False, "staged", r"MPI says so; 'nccl' takes one GPU per rank: .* device")],
)  # fmt: skip
def test_auto_takes_the_first_that_works(refused, answer, way, why, monkeypatch):
    _, ranks, gpu = gpus("a GPU-1", "a GPU-1" if Nccl in refused else "b GPU-2")
    for works in {CudaIpc, Nccl} - set(refused):
        monkeypatch.setattr(works, "open", lambda self, ring, *of: nullcontext(ring.lower))
    monkeypatch.setattr(gpu_aware, "verdict", lambda: None)
    monkeypatch.setattr(gpu_aware, "agreed", lambda *of: Verdict(answer, "MPI says so"))
    chosen, reason = make("halo", "auto").resolve(ranks, gpu)
    assert chosen.name == way
    assert re.search(why, reason)


def gpus(*identities):
    gpu = SimpleNamespace(kind="cuda", identity=identities[1], index=0, opaque=False, no_ipc="")
    return halo_cases.slabs(2, True)[1], comm(identities), gpu


def test_an_unsupported_setup_is_refused_with_its_reason():
    way = make("halo", "cuda_ipc")
    slab, both, _ = gpus("a GPU-1", "a GPU-1")
    with pytest.raises(CaseError, match="the ranks run on CPUs; use 'auto'"):
        way.open(slab, both, halo_cases.device())
    with pytest.raises(CaseError, match="one GPU per rank: ranks 0, 1 share one device"):
        way.open(*gpus("a GPU-1", "a GPU-1"))
    with pytest.raises(CaseError, match="joins GPUs of one node, found a, b"):
        way.open(*gpus("a GPU-1", "b GPU-2"))


@pytest.fixture
def see(monkeypatch):
    """`see(*uuids)`: a rank sees these devices, none of which reaches another's memory."""

    def these(*uuids):
        runtime = SimpleNamespace(
            getDeviceCount=lambda: len(uuids), deviceCanAccessPeer=lambda one, other: False
        )
        cuda = SimpleNamespace(runtime=runtime)
        monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))
        monkeypatch.setitem(sys.modules, "cupy.cuda", cuda)
        monkeypatch.setattr(cuda_ipc.drivers, "device_uuid", uuids.__getitem__)
        return runtime

    return these


def test_gpus_that_do_not_reach_each_other_are_refused(see):
    see("GPU-2", "GPU-1")
    slab, _, gpu = gpus("a GPU-1", "a GPU-2")
    with pytest.raises(CaseError, match="that of rank 1 does not reach that of rank 0"):
        cuda_ipc.reach(slab, gpu, ["GPU-1", "GPU-2"])


def test_a_gpu_that_is_not_visible_may_be_reached(see):
    """CUDA opens its memory all the same on most machines; a trial decides."""
    runtime = see("GPU-2")
    slab, _, gpu = gpus("a GPU-1", "a GPU-2")
    assert cuda_ipc.reach(slab, gpu, ["GPU-1", "GPU-2"]) == (runtime, {0})


class Runtime:
    """CuPy's words for memory between processes, over a machine of one allocation at 4096."""

    CUDARuntimeError = OSError

    def __init__(self):
        self.open = {}

    def ipcGetMemHandle(self, base):  # noqa: N802
        if base == 0:
            raise OSError("cudaErrorNotSupported")
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
    answers = {1: (0, 1), 2: (0, 0)}  # base, error by the array's address

    def range_of(base, size, place):
        base._obj.value, error = answers.get(place.value, (4096, 0))
        return error

    library = SimpleNamespace(cuMemGetAddressRange_v2=range_of)
    monkeypatch.setattr(ipc_exchange.ctypes, "CDLL", lambda name: library)
    runtime = Runtime()
    seen = ipc_exchange.Windows(runtime)
    first, second = (
        seen.export(SimpleNamespace(data=SimpleNamespace(ptr=ptr))) for ptr in (4096, 4608)
    )
    assert seen.open(1, second) - seen.open(1, first) == 512
    assert len(runtime.open) == 1
    with pytest.raises(CaseError, match=r"cannot open memory of rank 1's GPU \(cuda\w+\); contain"):
        seen.open(1, (b"foreign", 0))
    with pytest.raises(CaseError, match=r"this rank does not see: --gpu-bind=none .*; containers"):
        ipc_exchange.Windows(runtime, {1}).open(1, (b"foreign", 0))
    for place, words in ((1, "cuMemGetAddressRange returns 1"), (2, "cudaErrorNotSupported")):
        with pytest.raises(CaseError, match=f"cannot share memory with other ranks.*{words}"):
            seen.export(SimpleNamespace(data=SimpleNamespace(ptr=place)))
    seen.close()
    assert not runtime.open
