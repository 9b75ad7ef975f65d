"""Arrays and kernels of an OpenCL device, and launches of kernels."""

import math
from collections.abc import Callable, Collection
from itertools import chain
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from mpilbm.backends.gpu.launch import BLOCKS, FIXED_THREADS, Block, GpuKernel, GpuLaunch
from mpilbm.backends.interfaces import Resources, changed
from mpilbm.codegen.program import Kernel, Program
from mpilbm.core.errors import MpilbmError


class Memory:
    """A buffer; calls changed(bytes) when it is made and changed(-bytes) when it is freed."""

    def __init__(self, buffer: Any, size: int, changed: Callable[[int], None]):
        self.buffer, self._size, self._changed = buffer, size, changed
        changed(size)

    def __del__(self) -> None:
        self._changed(-self._size)


class BufferArray:
    """A contiguous 1-D array in a buffer; slices refer to the same memory.

    `offset`: of its first byte in the buffer.
    """

    flags = SimpleNamespace(c_contiguous=True)
    ndim = 1

    def __init__(self, memory: Memory, offset: int, size: int, dtype: DTypeLike):
        self.memory, self.offset, self.size, self.dtype = memory, offset, size, np.dtype(dtype)
        self.shape = (size,)

    @property
    def buffer(self) -> Any:
        """The buffer of pyopencl."""
        return self.memory.buffer

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, part: slice) -> "BufferArray":
        begin, end, step = part.indices(self.size)
        if step != 1:
            raise IndexError(f"found a step of {step}, allowed 1")
        offset = self.offset + begin * self.dtype.itemsize
        return BufferArray(self.memory, offset, max(0, end - begin), self.dtype)

    def reshape(self, *shape: Any) -> "BufferArray":
        """Itself, if that is a shape of one axis."""
        size = math.prod(shape) if shape != (-1,) else self.size
        if len(shape) != 1 or size != self.size:
            raise ValueError(f"found the shape {shape}, allowed ({self.size},)")
        return self

    def view(self, dtype: DTypeLike) -> "BufferArray":
        """The same bytes as numbers of another type."""
        size, rest = divmod(self.nbytes, np.dtype(dtype).itemsize)
        if rest:
            raise ValueError(f"{self.nbytes} bytes are no whole number of {np.dtype(dtype)}")
        return BufferArray(self.memory, self.offset, size, dtype)

    def first(self) -> np.int64:
        """The offset in items of its type, the second argument of a kernel for an array."""
        place, rest = divmod(self.offset, self.dtype.itemsize)
        if rest:
            raise ValueError(f"the array begins at byte {self.offset}, within a {self.dtype}")
        return np.int64(place)


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
                run = device.cl.enqueue_nd_range_kernel
                stream.enqueued(run(stream.queue, function, items, group))
        except device.cl.Error as error:
            raise MpilbmError(f"{device.name}: kernel {self._kernel.name}: {error}") from error


def _flat(values: list[Any]) -> list[Any]:
    """The arguments as OpenCL takes them: for each array its buffer and where it begins."""
    flat: list[Any] = []
    for value in values:
        flat += [value.buffer, value.first()] if isinstance(value, BufferArray) else [value]
    return flat
