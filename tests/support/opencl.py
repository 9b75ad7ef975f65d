"""The OpenCL device of tests: that of PoCL, on the CPU."""

from functools import cache as once

import pytest

from mpilbm.backends.khronos import devices
from mpilbm.errors import CaseError
from mpilbm.registry import make


def needs_opencl():
    """A mark for tests that are skipped where there is no OpenCL device."""
    try:
        found, reason = devices.devices(), ""
    except CaseError as error:
        found, reason = (), str(error)
    return pytest.mark.skipif(not found, reason=reason)


@once
def open_device():
    """The first device, shared by the slabs of a process."""
    return make("backends", {"name": "opencl", "fused": False}).open()


@once
def open_unoptimised():
    """The same device; its compiler does not optimise, which saves a third of its time."""
    device = make("backends", {"name": "opencl", "fused": False}).open()
    device._options.append("-cl-opt-disable")
    return device
