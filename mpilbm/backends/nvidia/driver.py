"""Queries to the NVIDIA driver, which work without CuPy."""

import ctypes
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mpilbm.core.errors import MpilbmError

NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE


@dataclass(frozen=True)
class Driver:
    """A GPU driver: number of devices, supported version (major), why it cannot be used.

    version: of CUDA, or of HIP on AMD GPUs.
    memory: bytes of the largest of these devices; None if the driver does not report it.
    """

    devices: int = 0
    version: int = 0
    problem: str = ""
    memory: int | None = None
    vendor: str = "NVIDIA"

    @property
    def words(self) -> str:
        """What it supports: "driver for CUDA 13"."""
        return f"driver for {'CUDA' if self.vendor == 'NVIDIA' else 'HIP'} {self.version}"

    @property
    def install(self) -> str:
        """The command that installs CuPy and the compiler of the kernels for this driver."""
        if self.vendor == "AMD":
            return "install ROCm 7, then: pip install 'mpilbm[rocm]'"
        if self.version < 12:
            update = "update the NVIDIA driver to one for CUDA 12 or later"
            return f"{update}: pip install 'mpilbm[cuda12]'"
        return f"pip install 'mpilbm[cuda{min(self.version, 13)}]'"


def driver() -> Driver | None:
    """The NVIDIA driver of this machine; None if there is none or it shows no device."""
    kernel_module = any(
        Path(path).exists() for path in ("/dev/nvidia0", "/proc/driver/nvidia/version")
    )
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return Driver(problem=str(error)) if kernel_module else None
    status = library.cuInit(0)
    if status not in (0, NO_DEVICE) and kernel_module:
        return Driver(problem=f"cuInit returns error {status}; does nvidia-smi work?")
    count, version = ctypes.c_int(), ctypes.c_int()
    if status != 0 or library.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        return None
    library.cuDriverGetVersion(ctypes.byref(version))
    memory = largest(library.cuDeviceGet, library.cuDeviceTotalMem_v2, count.value)
    return Driver(count.value, version.value // 1000, memory=memory)


def largest(get: Callable, total: Callable, devices: int) -> int | None:
    """Bytes of the memory of the largest device; None if the driver reports none."""
    device, size, sizes = ctypes.c_int(), ctypes.c_size_t(), []
    for index in range(devices):
        get(ctypes.byref(device), index)
        if total(ctypes.byref(size), device) == 0:
            sizes.append(size.value)
    return max(sizes, default=None)


def device_uuid(index: int) -> str:
    """The UUID that nvidia-smi -L prints for a device, the same in every process."""
    library, device, raw = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), (ctypes.c_ubyte * 16)()
    library.cuInit(0)
    library.cuDeviceGet(ctypes.byref(device), index)
    if library.cuDeviceGetUuid_v2(ctypes.byref(raw), device) != 0:
        raise MpilbmError(
            f"the NVIDIA driver does not report the UUID of device {index}; does nvidia-smi work?"
        )
    return f"GPU-{uuid.UUID(bytes=bytes(raw))}"
