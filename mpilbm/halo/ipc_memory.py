"""Memory of a node's GPUs that several processes reach, by CUDA's IPC handles."""

import ctypes

from mpilbm.backends import nvidia
from mpilbm.errors import CaseError

WAYS = "use 'auto' or 'nccl'"
VISIBLE = (
    "which this rank does not see: --gpu-bind=none (SLURM), or CUDA_VISIBLE_DEVICES unset, makes "
    "all GPUs of the node visible to every rank"
)


class Windows:
    """Memory of this node's GPUs as other ranks see it; `hidden` ranks' GPUs are not visible."""

    def __init__(self, runtime, hidden=frozenset()):
        self._runtime, self._driver = runtime, ctypes.CDLL("libcuda.so.1")
        self._hidden = hidden
        self._opened: dict[tuple, int] = {}

    def address(self, array) -> int:
        """Where an array of this rank begins."""
        return array.data.ptr

    def show(self, array) -> tuple[bytes, int]:
        """What `look` takes on another rank: a handle of the whole allocation, the array's offset.

        A handle is of all that cudaMalloc gave at once, of which an array may be a part. Raises
        CaseError where the driver gives none.
        """
        base, size = ctypes.c_uint64(), ctypes.c_size_t()
        place = ctypes.c_uint64(array.data.ptr)
        ask = self._driver.cuMemGetAddressRange_v2
        if error := ask(ctypes.byref(base), ctypes.byref(size), place):
            refuse(
                f"cannot show memory to other ranks: cuMemGetAddressRange answers {error}; {WAYS}"
            )
        try:
            handle = self._runtime.ipcGetMemHandle(base.value)
        except self._runtime.CUDARuntimeError as error:  # such as: not supported
            refuse(f"cannot show memory to other ranks ({error}); {WAYS}")
        return handle, array.data.ptr - base.value

    def look(self, rank: int, shown: tuple[bytes, int]) -> int:
        """Where this rank finds an array of another."""
        handle, offset = shown
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
        """Look no longer; before the others free what they have shown."""
        while self._opened:
            self._runtime.ipcCloseMemHandle(self._opened.popitem()[1])


def reach(slab, device, uuids: list[str]) -> tuple:
    """CuPy's runtime, and which neighbours' GPUs this rank does not see.

    Raises CaseError if its GPU does not reach the memory of a neighbour's. Of a GPU that is not
    visible this cannot be asked; CUDA opens its memory all the same where the system lets it.
    """
    from cupy.cuda import runtime

    seen = [nvidia.device_uuid(k) for k in range(runtime.getDeviceCount())]
    peers = {slab.lower, slab.upper} - {None}
    hidden = frozenset(peer for peer in peers if uuids[peer] not in seen)
    for peer in peers - hidden:
        if not runtime.deviceCanAccessPeer(device.index, seen.index(uuids[peer])):
            refuse(
                f"needs GPUs that reach each other's memory; that of rank {slab.rank} does not "
                f"reach that of rank {peer} (nvidia-smi topo -p2p r); {WAYS}"
            )
    return runtime, hidden


def refuse(why: str):
    """Say why 'cuda_ipc' cannot be."""
    raise CaseError(f"'cuda_ipc' {why}", "halo.name")
