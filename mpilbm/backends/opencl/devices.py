"""The OpenCL devices of this machine, by pyopencl, which is imported only here."""

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache as once
from pathlib import Path
from typing import Any

from mpilbm.core.errors import CaseError, MpilbmError
from mpilbm.core.machine import cache
from mpilbm.core.printable import shown

MISSING = "pyopencl is not installed: pip install 'mpilbm[opencl]'"
NO_PLATFORM = (
    "no OpenCL platform was found: install the OpenCL driver (ICD) of the device, for example "
    "intel-opencl-icd or rocm-opencl-runtime (that of NVIDIA GPUs is part of their driver; a "
    "container also needs its file in /etc/OpenCL/vendors); for a CPU: "
    "pip install pocl-binary-distribution"
)
NO_DEVICE = (
    "have no device: give your user access to the GPU (usermod -aG render USER, then log in "
    "again), or a container: --device /dev/dri, for AMD also --device /dev/kfd"
)
# Files of GPUs: without one there is no GPU, and no driver has to be loaded to find that out.
DEV = Path("/dev")
GPU_FILES = "kfd", "dri/renderD*", "nvidia[0-9]*", "dxg", "mali*", "kgsl*"
# Attributes of a device, and of its attribute "topology_amd", which say where it is on the PCI bus.
PCI = "pci_domain_id_nv", "pci_bus_id_nv", "pci_slot_id_nv"
PCI_AMD = "bus", "device", "function"


@once
def load() -> Any:
    """The module pyopencl, whose caches are in that of mpilbm; raises CaseError."""
    os.environ.setdefault("POCL_CACHE_DIR", str(cache.subfolder("pocl")))
    # Its caches are an SQLite file in the home folder, which ranks would share, and a lock that a
    # killed job leaves behind. Drivers have caches of their own.
    os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
    try:
        import pyopencl
    except Exception as error:  # also an error of the loader of drivers
        missing = isinstance(error, ModuleNotFoundError)
        text = MISSING if missing else f"pyopencl cannot be loaded: {error}; pip install pyopencl"
        raise CaseError(text, where="backend.name") from error
    # Of pyopencl without its cache, which generates the text of a launch more than once.
    warnings.filterwarnings("ignore", message="Overwriting existing generated code")
    return pyopencl


@once
def devices() -> tuple[Any, ...]:
    """All devices, GPUs first, else in the order of their platforms; raises CaseError."""
    cl, found = load(), []
    try:
        platforms = cl.get_platforms()
    except cl.Error:
        platforms = []
    if not platforms:
        raise CaseError(NO_PLATFORM, where="backend.name")
    for platform in platforms:
        try:
            found += platform.get_devices()
        except cl.Error:  # a platform without a device
            continue
    if not found:
        names = ", ".join(platform.name for platform in platforms)
        raise CaseError(f"the OpenCL platforms ({names}) {NO_DEVICE}", where="backend.name")
    return tuple(sorted(found, key=lambda device: not is_gpu(device)))


def gpus() -> tuple[Any, ...]:
    """All GPUs that can run the kernels; none if pyopencl or a driver is missing.

    Loads pyopencl and the drivers, which takes 0.3 s, only on a machine that may have a GPU.
    """
    if not any(any(DEV.glob(pattern)) for pattern in GPU_FILES):
        return ()
    try:
        return tuple(each for each in devices() if is_gpu(each) and not unusable(each))
    except CaseError:
        return ()


def is_gpu(device: Any) -> bool:
    """Whether a device is a GPU."""
    return bool(device.type & load().device_type.GPU)


def chosen(platform: int | str | None, device: int | str | None) -> tuple[Any, ...]:
    """The devices that match, of one platform and one type; ranks use them in turn.

    A number counts all platforms or all devices. Devices that cannot run the kernels are left out
    if others of the same kind (GPU or not) can. Raises CaseError if no device matches, or if none
    that does can run the kernels.
    """
    found = list(devices())
    if device is not None:
        numbers = _matching([each.name for each in found], device, "backend.device")
        found = [found[k] for k in numbers]
    if platform is not None:
        platforms = load().get_platforms()
        numbers = _matching([each.name for each in platforms], platform, "backend.platform")
        allowed = [platforms[k] for k in numbers]
        found = [each for each in found if each.platform in allowed]
        if not found:
            raise CaseError(
                f"found {shown(platform)}, which has no device"
                + (f" that matches {shown(device)}" if device is not None else "")
                + "; `mpilbm info` lists the devices",
                where="backend.platform",
            )
    kind = is_gpu(found[0])  # a GPU that cannot run the kernels is not silently replaced by a CPU
    found = [each for each in found if is_gpu(each) == kind and not unusable(each)] or found
    first = found[0]
    if problem := unusable(first):
        raise CaseError(f"{first.name.strip()}: {problem}", where="backend.device")
    return tuple(
        each for each in found if (each.platform, each.type) == (first.platform, first.type)
    )


def _matching(names: Sequence[str], wanted: int | str, where: str) -> list[int]:
    """The numbers of the names that contain a text, or the number itself."""
    if isinstance(wanted, int):
        found = [wanted] if wanted < len(names) else []
    else:
        found = [k for k, name in enumerate(names) if wanted.lower() in name.lower()]
    if not found:
        listed = ", ".join(f'{k} "{name.strip()}"' for k, name in enumerate(names))
        raise CaseError(
            f"found {shown(wanted)}; allowed: a number or part of a name: {listed}", where
        )
    return found


def unusable(device: Any) -> str:
    """Why a device cannot run the kernels; empty if it can."""
    try:
        if not device.available or not device.compiler_available:
            return "the device or its compiler is not available"
        if "cl_khr_fp64" not in device.extensions:
            return (
                "the device has no float64, in which sums and averages are computed; use another "
                "device (`mpilbm info` lists them)"
            )
        if device.max_work_group_size < 256:
            return f"found work-groups of {device.max_work_group_size} items at most, needed 256"
    except load().Error as error:
        return f"its driver does not answer: {error}"
    return ""


def rounds_correctly(device: Any) -> bool:
    """Whether division and square root can be rounded correctly in float32."""
    flag = load().device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
    return bool(device.single_fp_config & flag)


def identity(device: Any) -> str:
    """A text that is the same for two processes that see the same device."""
    cl = load()
    with suppress(AttributeError, cl.Error):
        return f"PCI {' '.join(str(getattr(device, name)) for name in PCI)}"
    number = devices().index(device)  # virtual machines may give several devices the same address
    with suppress(AttributeError, cl.Error):
        topology = device.topology_amd
        return f"PCI {' '.join(str(getattr(topology, name)) for name in PCI_AMD)}, {number}"
    return f"{device.platform.name} {device.name.strip()} {number}"


def described(device: Any) -> str:
    """A device and its capabilities in one line."""
    on_cpu = bool(device.type & load().device_type.CPU)
    facts = ["GPU" if is_gpu(device) else "CPU" if on_cpu else "accelerator"]
    facts.append(f"{device.global_mem_size / 1e9:.0f} GB")
    facts.append("float64" if "cl_khr_fp64" in device.extensions else "no float64")
    facts.append("half" if "cl_khr_fp16" in device.extensions else "half for storage only")
    if not rounds_correctly(device):
        facts.append("division and square root not correctly rounded: other bits than a CPU")
    if unusable(device):
        facts.append("not usable")
    return f"{device.name.strip()} ({device.platform.name.strip()}): {', '.join(facts)}"


def listed() -> list[str]:
    """A line for each device, with its number and that of its platform; raises CaseError."""
    found, platforms = devices(), load().get_platforms()
    return [
        f"device {number}, platform {platforms.index(each.platform)}: {described(each)}"
        for number, each in enumerate(found)
    ]


@contextmanager
def reported(what: str) -> Iterator[None]:
    """Raise MpilbmError for an error of OpenCL."""
    try:
        yield
    except load().Error as error:
        raise MpilbmError(f"{what}: {error}") from error
