"""Kernels of an OpenCL device, and their launches."""

from collections.abc import Collection
from itertools import chain
from typing import Any

import numpy as np

from mpilbm.backends.gpu.launch import BLOCKS, FIXED_THREADS, Block, GpuKernel, GpuLaunch
from mpilbm.backends.interfaces import Resources, changed
from mpilbm.backends.opencl.arrays import BufferArray
from mpilbm.codegen.program import Kernel, Program
from mpilbm.core.errors import MpilbmError


class Binaries:
    """The compiled kernels of a program; optional ones are compiled when they are first used."""

    def __init__(self, device: Any, program: Program, roles: Collection[str]):
        self._device, self._program = device, program
        names = program.wanted(roles)
        self._built = dict.fromkeys(names, self._build(names) if names else None)

    def _build(self, names: Collection[str]) -> Any:
        program = self._program
        return self._device.build("\n".join([program.head, *(program.bodies[n] for n in names)]))

    def function(self, name: str) -> Any:
        """A new kernel of pyopencl, with arguments of its own."""
        if name not in self._built:
            self._built[name] = self._build([name])
        return self._device.cl.Kernel(self._built[name], name)


class OpenclKernel(GpuKernel):
    """A kernel of some binaries."""

    def __init__(self, device: Any, binaries: Binaries, kernel: Kernel, program: Program):
        super().__init__(device, kernel, program)
        self._binaries = binaries

    def function(self) -> Any:
        """A new kernel of pyopencl, with arguments of its own."""
        return self._binaries.function(self.kernel.name)

    def launch(self, box: tuple[int, int], values: list[Any], threads: int) -> "OpenclLaunch":
        """The kernel with its arguments, for work-groups of so many work-items."""
        return OpenclLaunch(self, box, values, threads)

    def _work_group(self, *kinds: str) -> list[int]:
        """Facts of the device about this kernel, by their names in `kernel_work_group_info`."""
        info, function = self.device.cl.kernel_work_group_info, self.function()
        return [
            int(function.get_work_group_info(getattr(info, kind), self.device.device))
            for kind in kinds
        ]

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The work-groups that the device allows for this kernel; raises MpilbmError if none."""
        device, name = self.device, f"kernel {self.kernel.name}"
        most, local = self._work_group("WORK_GROUP_SIZE", "LOCAL_MEM_SIZE")
        fixed = FIXED_THREADS.get(self.kernel.over)
        offered = BLOCKS if fixed is None else (Block(fixed),)
        if local > (has := device.device.local_mem_size):
            raise MpilbmError(
                f"{device.name} has {has} bytes of local memory, {name} needs {local}; use another "
                "device"
            )
        if found := tuple(block for block in offered if block.threads <= most):
            return found
        raise MpilbmError(
            f"{device.name} allows only {most} work-items in a work-group of {name}, which needs "
            f"{offered[-1].threads}; use another device"
        )

    def resources(self) -> Resources:
        """Private and local bytes; OpenCL does not report registers."""
        return Resources(0, *self._work_group("PRIVATE_MEM_SIZE", "LOCAL_MEM_SIZE"))


class OpenclLaunch(GpuLaunch):
    """Kernels of pyopencl with their arguments, one for each range of planes."""

    def __init__(
        self, compiled: OpenclKernel, box: tuple[int, int], values: list[Any], threads: int
    ):
        super().__init__(compiled.kernel, box, values, threads)
        self._compiled = compiled
        self._places: dict[str, int] = {}  # of numbers among the arguments
        place = 3
        for argument, value in zip(self._kernel.arguments, values, strict=True):
            self._places[argument.name] = place
            place += 2 if isinstance(value, BufferArray) else 1

    def set(self, **numbers: float) -> None:
        """Replace numbers among the arguments, in the kernels of earlier calls, too."""
        self._values = changed(self._kernel, self._values, numbers)
        by_name = dict(zip((a.name for a in self._kernel.arguments), self._values, strict=True))
        for function, _, _ in chain.from_iterable(self._calls.values()):
            for name in numbers:
                function.set_arg(self._places[name], by_name[name])

    def call(self, begin: int, end: int, stride: int) -> tuple[Any, tuple, tuple]:
        """A kernel of pyopencl with all arguments, the work-items, and those of a work-group."""
        function = self._compiled.function()
        function.set_args(*map(np.int64, (begin, end, stride)), *_flat(self._values))
        groups, group = self.shape(begin, end, stride)
        group = (*group, *(1,) * (len(groups) - len(group)))
        items = tuple(a * b for a, b in zip(groups, group, strict=True))
        return function, items, group

    def enqueue(self, stream: Any, calls: list[Any]) -> None:
        """Enqueue the kernels."""
        device = self._compiled.device
        try:
            for function, items, group in calls:
                device.cl.enqueue_nd_range_kernel(stream.queue, function, items, group)
        except device.cl.Error as error:
            raise MpilbmError(f"{device.name}: kernel {self._kernel.name}: {error}") from error


def _flat(values: list[Any]) -> list[Any]:
    """The arguments as OpenCL takes them: for each array its buffer and where it begins."""
    flat: list[Any] = []
    for value in values:
        flat += [value.buffer, value.first()] if isinstance(value, BufferArray) else [value]
    return flat
