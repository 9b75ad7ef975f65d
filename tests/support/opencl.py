"""The OpenCL device of tests: that of PoCL, on the CPU."""

from collections.abc import Collection
from copy import copy
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

    def own(self) -> "Shared":
        """The device with queues of its own: a slab enqueues in its own thread."""
        device = copy(self)
        device._streams = {name: device.new_stream() for name in self._streams}
        return device

    def compile(self, program: Program, roles: Collection[str] = ()) -> dict[str, CompiledKernel]:
        """The kernels of a program by name, whatever their role."""
        return super().compile(program, {kernel.role for kernel in program.kernels.values()})


@once
def device(*options: str) -> Shared:
    """The first device, whose binaries the slabs of a process share."""
    return Shared(*options)


def open_device() -> Shared:
    """The first device, for a slab."""
    return device().own()


def open_unoptimised() -> Shared:
    """The same device; its compiler does not optimise, which saves more than half of its time."""
    return device("-cl-opt-disable").own()
