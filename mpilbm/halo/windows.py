"""Memory of a node's GPUs that several processes reach, by CUDA's IPC handles."""

import ctypes

from mpilbm.backends import nvidia
from mpilbm.errors import CaseError

WAYS = "use 'auto' or 'nccl'"


class Windows:
    """Memory of this node's GPUs as other ranks see it."""

    def __init__(self, runtime):
        self._runtime, self._driver = runtime, ctypes.CDLL("libcuda.so.1")
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
                raise CaseError(
                    f"'cuda_ipc' cannot open memory of rank {rank}'s GPU ({error}); containers "
                    "must share IPC and PID namespaces, or use 'auto' or 'nccl'",
                    "halo.name",
                ) from error
        return self._opened[key] + offset

    def close(self) -> None:
        """Look no longer; before the others free what they have shown."""
        while self._opened:
            self._runtime.ipcCloseMemHandle(self._opened.popitem()[1])


def reach(slab, device, uuids: list[str]):
    """CuPy's runtime, if this rank's GPU reaches the memory of both neighbours'; else CaseError."""
    from cupy.cuda import runtime

    seen = [nvidia.device_uuid(k) for k in range(runtime.getDeviceCount())]
    for peer in {slab.lower, slab.upper} - {None}:
        if uuids[peer] not in seen:
            refuse(
                f"needs all GPUs of the node visible to each rank; rank {slab.rank} does not see "
                f"that of rank {peer}: start with --gpu-bind=none and without "
                "CUDA_VISIBLE_DEVICES of one device, or use 'auto' or 'nccl'"
            )
        if not runtime.deviceCanAccessPeer(device.index, seen.index(uuids[peer])):
            refuse(
                f"needs GPUs that reach each other's memory; that of rank {slab.rank} does not "
                f"reach that of rank {peer} (nvidia-smi topo -p2p r); use 'auto' or 'nccl'"
            )
    return runtime


def refuse(why: str):
    """Say why 'cuda_ipc' cannot be."""
    raise CaseError(f"'cuda_ipc' {why}", "halo.name")
