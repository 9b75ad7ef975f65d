"""The OpenCL device of tests: PoCL's, on the CPU."""

from functools import cache as once

import pytest

from mpilbm.registry import make


@once
def open_device():
    """The first device, shared by the slabs of a process; tests are skipped without one."""
    pytest.importorskip("pyopencl")
    return make("backends", {"name": "opencl", "fused": False}).open()
