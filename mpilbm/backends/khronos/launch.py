"""Kernels of an OpenCL device, and their launches."""

from collections.abc import Collection
from typing import Any

import numpy as np

from mpilbm.backends.interfaces import Resources, changed, checked
from mpilbm.backends.khronos.arrays import BufferArray
from mpilbm.backends.launch_shapes import (
    BLOCKS,
    FIXED_THREADS,
    Block,
    box_of,
    choose_block,
    launch_shape,
    pieces,
)
from mpilbm.codegen.program import Kernel, Program
from mpilbm.core.errors import MpilbmError


class Binaries:
    """The compiled kernels of a program; optional ones are compiled when they are first used."""

    def __init__(self, device: Any, program: Program, roles: Collection[str]):
        self._device, self._program = device, program
        names = program.wanted(roles)
        built = self._build(names) if names else None
        self._built = dict.fromkeys(names, built)

    def _build(self, names: Collection[str]) -> Any:
        program = self._program
        return self._device.build("\n".join([program.head, *(program.bodies[n] for n in names)]))

    def function(self, name: str) -> Any:
        """A new kernel of pyopencl, with arguments of its own."""
        if name not in self._built:
            self._built[name] = self._build([name])
        return self._device.cl.Kernel(self._built[name], name)


class OpenclKernel:
    """A compiled kernel without arguments."""

    def __init__(self, device: Any, binaries: Binaries, kernel: Kernel, program: Program):
        self._device, self._binaries = device, binaries
        self.kernel, self._program = kernel, program
        self._block: Block | None = None

    def function(self) -> Any:
        """A new kernel of pyopencl, with arguments of its own."""
        return self._binaries.function(self.kernel.name)

    def bind(self, **arguments: Any) -> "OpenclLaunch":
        """Fix all arguments; raises TypeError if one is missing, unknown or of another type.

        The first call chooses the work-group of a collide-stream kernel.
        """
        values = checked(self.kernel, self._program, arguments)
        box = box_of(self.kernel, arguments)

        def launch(block: Block) -> "OpenclLaunch":
            return OpenclLaunch(self, box, values, block.threads)

        if self._block is None:
            self._block = choose_block(
                self._device, self.kernel, self._program, arguments, launch, self._blocks()
            )
        return launch(self._block)

    def _blocks(self) -> tuple[Block, ...]:
        """The work-groups that the device allows for this kernel; raises MpilbmError if none."""
        device, name = self._device, f"kernel {self.kernel.name}"
        info, function = device.cl.kernel_work_group_info, self.function()
        most, local = (
            int(function.get_work_group_info(kind, device.device))
            for kind in (info.WORK_GROUP_SIZE, info.LOCAL_MEM_SIZE)
        )
        fixed = FIXED_THREADS.get(self.kernel.over)
        offered = BLOCKS if fixed is None else (Block(fixed),)
        if local > (has := device.device.local_mem_size):
            raise MpilbmError(f"{device.name} has {has} bytes of local memory, {name} needs "
                              f"{local}; use another device")  # fmt: skip
        if found := tuple(block for block in offered if block.threads <= most):
            return found
        raise MpilbmError(
            f"{device.name} allows only {most} work-items in a work-group of {name}, which needs "
            f"{offered[-1].threads}; use another device"
        )

    def resources(self) -> Resources:
        """Private and local bytes; OpenCL does not report registers."""
        info, function = self._device.cl.kernel_work_group_info, self.function()
        private, local = (
            int(function.get_work_group_info(kind, self._device.device))
            for kind in (info.PRIVATE_MEM_SIZE, info.LOCAL_MEM_SIZE)
        )
        return Resources(0, private, local)


class OpenclLaunch:
    """A kernel with its arguments; keeps their arrays alive, and its kernels for later calls."""

    joint = None

    def __init__(
        self, compiled: OpenclKernel, box: tuple[int, int], values: list[Any], threads: int
    ):
        self._compiled, self._kernel, self._box = compiled, compiled.kernel, box
        self._values, self._threads = values, threads
        self._calls: dict[tuple, list] = {}
        self._places: dict[str, int] = {}  # of numbers among the arguments
        place = 3
        for argument, value in zip(self._kernel.arguments, values, strict=True):
            self._places[argument.name] = place
            place += 2 if isinstance(value, BufferArray) else 1

    def set(self, **numbers: float) -> None:
        """Replace numbers among the arguments, for later calls."""
        self._values = changed(self._kernel, self._values, numbers)
        by_name = dict(zip((a.name for a in self._kernel.arguments), self._values, strict=True))
        for calls in self._calls.values():
            for function, _, _ in calls:
                for name in numbers:
                    function.set_arg(self._places[name], by_name[name])

    def __call__(self, stream: Any, begin: int, end: int, stride: int = 1) -> None:
        """Enqueue it for the planes (or entries) begin, begin + stride, … < end."""
        key = (begin, end, stride)
        if key not in self._calls:
            over = self._kernel.over
            self._calls[key] = [
                self._call(first, last, stride) for first, last in pieces(over, *key)
            ]
        device = self._compiled._device
        try:
            for function, items, group in self._calls[key]:
                device.cl.enqueue_nd_range_kernel(stream.queue, function, items, group)
        except device.cl.Error as error:
            raise MpilbmError(f"{device.name}: kernel {self._kernel.name}: {error}") from error

    def _call(self, begin: int, end: int, stride: int) -> tuple[Any, tuple, tuple]:
        """A kernel of pyopencl with all arguments, the work-items, and those of a work-group."""
        function = self._compiled.function()
        function.set_args(*map(np.int64, (begin, end, stride)), *_flat(self._values))
        groups, group = launch_shape(
            self._kernel.over, *self._box, begin, end, stride, self._threads
        )
        group = (*group, *(1,) * (len(groups) - len(group)))
        items = tuple(a * b for a, b in zip(groups, group, strict=True))
        return function, items, group


def _flat(values: list[Any]) -> list[Any]:
    """The arguments as OpenCL takes them: for each array its buffer and where it begins."""
    flat: list[Any] = []
    for value in values:
        flat += [value.buffer, value.first()] if isinstance(value, BufferArray) else [value]
    return flat
