"""GPU memory of a node that several processes access, by CUDA's IPC handles."""

import ctypes
from typing import Any, NoReturn

from mpilbm.backends import Device
from mpilbm.backends.gpu import drivers
from mpilbm.core.errors import CaseError
from mpilbm.parallel.slabs import Slab

WAYS = "use 'auto' or 'nccl'"
VISIBLE = (
    "which this rank does not see: --gpu-bind=none (SLURM), or CUDA_VISIBLE_DEVICES unset, makes "
    "all GPUs of the node visible to every rank"
)


class Windows:
    """GPU memory shared among the ranks of a node; the GPUs of `hidden` ranks are not visible."""

    def __init__(self, runtime: Any, hidden: frozenset[int] = frozenset()):
        self._runtime, self._driver = runtime, ctypes.CDLL("libcuda.so.1")
        self._hidden = hidden
        self._opened: dict[tuple, int] = {}

    def address(self, array: Any) -> int:
        """The address of an array of this rank."""
        return array.data.ptr

    def export(self, array: Any) -> tuple[bytes, int]:
        """(IPC handle, offset of the array), with which another rank calls `open`.

        The handle refers to a whole allocation of cudaMalloc, of which the array may be a part.
        Raises CaseError if the driver returns an error.
        """
        base, size = ctypes.c_uint64(), ctypes.c_size_t()
        place = ctypes.c_uint64(array.data.ptr)
        ask = self._driver.cuMemGetAddressRange_v2
        if error := ask(ctypes.byref(base), ctypes.byref(size), place):
            refuse(
                "cannot share memory with other ranks: "
                f"cuMemGetAddressRange returns {error}; {WAYS}"
            )
        try:
            handle = self._runtime.ipcGetMemHandle(base.value)
        except self._runtime.CUDARuntimeError as error:  # such as: not supported
            refuse(f"cannot share memory with other ranks ({error}); {WAYS}")
        return handle, array.data.ptr - base.value

    def open(self, rank: int, exported: tuple[bytes, int]) -> int:
        """The address of another rank's array in this rank's address space."""
        handle, offset = exported
        key = rank, handle
        if key not in self._opened:
            try:
                self._opened[key] = self._runtime.ipcOpenMemHandle(handle)
            except self._runtime.CUDARuntimeError as error:
                hidden = f", {VISIBLE}" if rank in self._hidden else ""
                refuse(
                    f"cannot open memory of rank {rank}'s GPU ({error}){hidden}; containers must "
                    f"share IPC and PID namespaces, or {WAYS}"
                )
        return self._opened[key] + offset

    def close(self) -> None:
        """Close all opened memory, before the other ranks free it."""
        while self._opened:
            self._runtime.ipcCloseMemHandle(self._opened.popitem()[1])


def reach(slab: Slab, device: Device, uuids: list[str]) -> tuple[Any, frozenset[int]]:
    """CuPy's runtime, and the neighbours whose GPUs are not visible to this rank.

    Raises CaseError if this rank's GPU cannot access the memory of a visible neighbour's GPU. For a
    GPU that is not visible this is unknown; CUDA may open its memory nevertheless.
    """
    from cupy.cuda import runtime

    seen = [drivers.device_uuid(k) for k in range(runtime.getDeviceCount())]
    peers = {peer for peer in (slab.lower, slab.upper) if peer is not None}
    hidden = frozenset(peer for peer in peers if uuids[peer] not in seen)
    for peer in peers - hidden:
        if not runtime.deviceCanAccessPeer(device.index, seen.index(uuids[peer])):
            refuse(
                f"needs GPUs that reach each other's memory; that of rank {slab.rank} does not "
                f"reach that of rank {peer} (nvidia-smi topo -p2p r); {WAYS}"
            )
    return runtime, hidden


def refuse(why: str) -> NoReturn:
    """Raise the CaseError that says why 'cuda_ipc' cannot be used."""
    raise CaseError(f"'cuda_ipc' {why}", "halo.name")


def without_cuda(device: Device) -> str:
    """The reason and the fix for ranks whose devices are not used through CUDA."""
    if device.opaque:
        return f"{device.kind} has no CUDA streams; use 'auto' or 'staged'"
    return "the ranks run on CPUs; use 'auto', 'direct' or 'staged'"
