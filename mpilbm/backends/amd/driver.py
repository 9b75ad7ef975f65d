"""Queries to the HIP runtime of AMD GPUs, which work without CuPy."""

import ctypes
import os
from collections.abc import Iterator

from mpilbm.backends.nvidia.driver import Driver, largest

RELEASES = (7, 6, 5)  # of ROCm: the library of the first that is installed is loaded
VERSION_UNIT = 10**7  # HIP 7.0.1 reports 70000001 or more


def driver() -> Driver | None:
    """The HIP runtime of this machine; None if there is none or it shows no device."""
    library = _library()
    if library is None or library.hipInit(0) != 0:
        return None
    count, version = ctypes.c_int(), ctypes.c_int()
    if library.hipGetDeviceCount(ctypes.byref(count)) != 0 or count.value == 0:
        return None
    library.hipDriverGetVersion(ctypes.byref(version))
    memory = largest(library.hipDeviceGet, library.hipDeviceTotalMem, count.value)
    return Driver(count.value, version.value // VERSION_UNIT, memory=memory, vendor="AMD")


def _library() -> ctypes.CDLL | None:
    for name in _names():
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _names() -> Iterator[str]:
    folders = ("", f"{os.environ.get('ROCM_PATH', '/opt/rocm')}/lib/")
    for folder in folders:
        yield from (f"{folder}libamdhip64.so.{release}" for release in RELEASES)
