"""Queues, events, arrays and kernels of an OpenCL device by pyopencl, and launches of kernels."""

import math
from collections import deque
from collections.abc import Callable, Collection
from functools import cached_property
from itertools import chain
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from mpilbm.backends.gpu.launch import BLOCKS, FIXED_THREADS, Block, GpuKernel, GpuLaunch
from mpilbm.backends.interfaces import Resources, changed
from mpilbm.codegen.program import Kernel, Program
from mpilbm.core.errors import MpilbmError

MOST_ENDS = 4  # events that are kept, where barriers follow each other without a command
MARK = np.zeros(1, np.int32)  # what the device writes to take a time


class Point:
    """An event of pyopencl, as `Waiting` expects it; raises MpilbmError if a command failed."""

    def __init__(self, cl: Any, event: Any):
        self._cl, self.event = cl, event

    @property
    def done(self) -> bool:
        status = self.event.command_execution_status
        if status < 0:
            raise MpilbmError(f"OpenCL: a command failed with error {status}")
        return status == self._cl.command_execution_status.COMPLETE

    def synchronize(self) -> None:
        try:
            self.event.wait()
        except self._cl.Error as error:
            raise MpilbmError(f"OpenCL: {error}") from error


class OpenclEvent:
    """A point in a queue; `timed`: the point immediately after it at which its time is taken."""

    def __init__(self, stream: "OpenclStream", point: Point, timed: Point | None):
        self.queue, self.point = stream.queue, point
        self._wait, self._timed, self.end = stream.wait_for, timed, timed or point

    def synchronize(self) -> None:
        self._wait(self.end)

    @property
    def done(self) -> bool:
        return self.end.done

    def seconds_since(self, earlier: "OpenclEvent") -> float:
        """As Event.seconds_since; an event's time may be taken in another queue."""
        self.synchronize()
        earlier.synchronize()  # its time may be taken in another queue
        assert self._timed is not None, "not recorded with `timed`"
        assert earlier._timed is not None, "not recorded with `timed`"
        return (self._timed.event.profile.end - earlier._timed.event.profile.end) * 1e-9


class OpenclStream:
    """An in-order queue. Times are taken in a second queue, because profiling delays kernels.

    One thread at a time enqueues work. `waiting(point)`: waits on the host.
    """

    def __init__(self, cl: Any, context: Any, device: Any, waiting: Callable[[Point], None]):
        self._cl, self.wait_for = cl, waiting
        self.queue = cl.CommandQueue(context, device)
        self._context, self._device = context, device
        self._copies: deque[Any] = deque()
        # Events after which all work enqueued so far is done: that of the last command, after a
        # barrier also those that it waits for.
        self._ends: list[Any] = []

    def enqueued(self, event: Any) -> None:
        """Note the event of a command that was enqueued, which is now the last one."""
        self._ends = [event]

    def point(self) -> Point:
        """A point after all work enqueued so far, which the device begins.

        It is the event of the last command where there is one: NVIDIA's driver completes a marker
        only after the kernels of other queues, so that an exchange would wait for the kernel that
        hides it.
        """
        event = self._ends[0] if len(self._ends) == 1 else self._cl.enqueue_marker(self.queue)
        self.queue.flush()
        return Point(self._cl, event)

    def record(self, timed: bool = False) -> OpenclEvent:
        point = self.point()
        return OpenclEvent(self, point, self._time_of(point) if timed else None)

    @cached_property
    def _clock(self) -> tuple[Any, Any]:
        cl = self._cl
        profiling = cl.command_queue_properties.PROFILING_ENABLE
        buffer = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, MARK.nbytes)
        return cl.CommandQueue(self._context, self._device, profiling), buffer

    def _time_of(self, point: Point) -> Point:
        """A point of the queue with profiling, immediately after another one.

        The device must do something there: drivers have no times of markers.
        """
        queue, mark = self._clock
        ends, fill = self._ends or [point.event], self._cl.enqueue_fill_buffer
        timed = Point(self._cl, fill(queue, mark, MARK, 0, MARK.nbytes, wait_for=ends))
        queue.flush()
        # Otherwise the next kernel could occupy the device, and delay the fill until its end.
        self._barrier(timed)
        return timed

    def wait(self, event: Any) -> None:
        if event.queue is not self.queue:
            self._barrier(event.end)  # a kernel that began before it could delay a time

    def _barrier(self, point: Point) -> None:
        """Work enqueued from now on runs after a point."""
        barrier = self._cl.enqueue_barrier(self.queue, wait_for=[point.event])
        self._ends = [*self._ends, point.event] if len(self._ends) < MOST_ENDS else [barrier]

    def flush(self) -> None:
        self.queue.flush()

    def synchronize(self) -> None:
        self.wait_for(self.point())
        self._copies.clear()

    def keep(self, copy: Any) -> None:
        """Keep the event of a copy, and so its host memory, until the copy is done."""
        complete = self._cl.command_execution_status.COMPLETE
        while self._copies and self._copies[0].command_execution_status == complete:
            self._copies.popleft()
        self._copies.append(copy)


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
        return self.memory.buffer

    @property
    def nbytes(self) -> int:
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
        return self._binaries.function(self.kernel.name)

    def launch(self, box: tuple[int, int], values: list[Any], threads: int) -> "OpenclLaunch":
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
