"""The OpenCL device of tests: that of PoCL, on the CPU."""

from collections.abc import Collection
from functools import cache as once

import pytest

from mpilbm.backends.interfaces import CompiledKernel
from mpilbm.backends.opencl import OpenclDevice, devices
from mpilbm.codegen.program import Program
from mpilbm.core.errors import CaseError


def needs_opencl():
    """A mark for tests that are skipped where there is no OpenCL device."""
    try:
        found, reason = devices.devices(), ""
    except CaseError as error:
        found, reason = (), str(error)
    return pytest.mark.skipif(not found, reason=reason)


class Shared(OpenclDevice):
    """The device of the tests: each text is compiled once, with all kernels of its program.

    PoCL takes longer to read the definitions that kernels share than to compile the kernels, and
    the slabs of a process have the same program. The package compiles an optional kernel at its
    first use; `test_fused_products_change_last_digits_only` and the runs of users do so.
    """

    def __init__(self, *options: str):
        super().__init__(devices.devices()[0], fused=False)
        self._options += options
        self.build = once(super().build)

    def compile(self, program: Program, roles: Collection[str] = ()) -> dict[str, CompiledKernel]:
        """The kernels of a program by name, whatever their role."""
        return super().compile(program, {kernel.role for kernel in program.kernels.values()})


@once
def open_device():
    """The first device, shared by the slabs of a process."""
    return Shared()


@once
def open_unoptimised():
    """The same device; its compiler does not optimise, which saves more than half of its time."""
    return Shared("-cl-opt-disable")
