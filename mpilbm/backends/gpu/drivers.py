"""Queries to the drivers of NVIDIA and AMD GPUs, which work without CuPy."""

import ctypes
import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mpilbm.core.errors import MpilbmError

NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE
CAPABILITY = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, …_MINOR
NVIDIA_FILES = "/dev/nvidia0", "/proc/driver/nvidia/version"  # of the kernel module
ROCM_RELEASES = 7, 6, 5  # the library of the first that is installed is loaded


@dataclass(frozen=True)
class Vendor:
    """The interface of a vendor's GPUs. CuPy for ROCm has the names of CUDA and calls HIP.

    rtc           the compiler of the kernels
    options       of this compiler
    version_unit  by this number a version is divided to get the major version
    records       whether steps are recorded as graphs
    no_ipc        why GPUs cannot exchange by `cuda_ipc`; empty if they can
    """

    name: str
    language: str
    rtc: str
    options: tuple[str, ...]
    version_unit: int
    records: bool
    no_ipc: str


NVIDIA = Vendor("NVIDIA", "CUDA", "NVRTC", ("--std=c++17", "--fmad=false"), 1000, True, "")
AMD = Vendor(
    name="AMD",
    language="HIP",
    rtc="HIPRTC",
    options=("-std=c++17", "-ffp-contract=off"),
    version_unit=10**7,  # HIP 7.0.1 reports 70000001 or more
    records=False,
    no_ipc="sends by instructions of NVIDIA GPUs, found AMD GPUs; use 'auto' or 'nccl'",
)


@dataclass(frozen=True)
class Driver:
    """A GPU driver: number of devices, supported version (major), why it cannot be used.

    version: of CUDA, or of HIP on AMD GPUs.
    memory: bytes of the largest of these devices; None if the driver does not report it.
    capability: the lowest compute capability of these devices, 90 for 9.0; 0 on AMD GPUs.
    """

    devices: int = 0
    version: int = 0
    problem: str = ""
    memory: int | None = None
    vendor: Vendor = NVIDIA
    capability: int = 0

    @property
    def words(self) -> str:
        """What it supports: "driver for CUDA 13"."""
        return f"driver for {self.vendor.language} {self.version}"

    @property
    def install(self) -> str:
        """The command that installs CuPy and the compiler of the kernels for this driver."""
        if self.vendor is AMD:
            return "install ROCm 7, then: pip install 'mpilbm[rocm]'"
        if self.version < 12:
            update = "update the NVIDIA driver to one for CUDA 12 or later"
            return f"{update}: pip install 'mpilbm[cuda12]'"
        return f"pip install 'mpilbm[cuda{min(self.version, 13)}]'"


def driver() -> Driver | None:
    """The driver of this machine's NVIDIA GPUs, else of its AMD GPUs; None if it has neither."""
    return nvidia() or amd()


def nvidia() -> Driver | None:
    """The NVIDIA driver of this machine; None if there is none or it shows no device."""
    kernel_module = any(Path(path).exists() for path in NVIDIA_FILES)
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
    capability = _least_capability(library, count.value)
    version_number = version.value // NVIDIA.version_unit
    return Driver(count.value, version_number, memory=memory, capability=capability)


def amd() -> Driver | None:
    """The HIP runtime of this machine; None if there is none or it shows no device."""
    library = _hip()
    if library is None or library.hipInit(0) != 0:
        return None
    count, version = ctypes.c_int(), ctypes.c_int()
    if library.hipGetDeviceCount(ctypes.byref(count)) != 0 or count.value == 0:
        return None
    library.hipDriverGetVersion(ctypes.byref(version))
    memory = largest(library.hipDeviceGet, library.hipDeviceTotalMem, count.value)
    return Driver(count.value, version.value // AMD.version_unit, memory=memory, vendor=AMD)


def _hip() -> ctypes.CDLL | None:
    for folder in ("", f"{os.environ.get('ROCM_PATH', '/opt/rocm')}/lib/"):
        for release in ROCM_RELEASES:
            try:
                return ctypes.CDLL(f"{folder}libamdhip64.so.{release}")
            except OSError:
                continue
    return None


def largest(get: Callable, total: Callable, devices: int) -> int | None:
    """Bytes of the memory of the largest device; None if the driver reports none."""
    device, size, sizes = ctypes.c_int(), ctypes.c_size_t(), []
    for index in range(devices):
        get(ctypes.byref(device), index)
        if total(ctypes.byref(size), device) == 0:
            sizes.append(size.value)
    return max(sizes, default=None)


def _least_capability(library: ctypes.CDLL, devices: int) -> int:
    """The lowest compute capability, 10 major + minor; 0 if the driver does not report it."""
    device, number, found = ctypes.c_int(), ctypes.c_int(), []
    for index in range(devices):
        library.cuDeviceGet(ctypes.byref(device), index)
        digits = []
        for attribute in CAPABILITY:
            status = library.cuDeviceGetAttribute(ctypes.byref(number), attribute, device)
            digits.append(0 if status else number.value)
        found.append(10 * digits[0] + digits[1])
    return min(found, default=0)


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
