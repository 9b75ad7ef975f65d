"""GPUs of every vendor, and CPUs without a C compiler, by OpenCL and pyopencl."""

import socket
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import numpy as np
from numpy.typing import DTypeLike
from pydantic import Discriminator, Field, Tag

from mpilbm.backends import Backend, check_copy, gibibytes, memory
from mpilbm.backends.gpu import GpuDevice, Waiting
from mpilbm.backends.interfaces import CompiledKernel
from mpilbm.backends.opencl import devices
from mpilbm.backends.opencl.launch import Binaries, BufferArray, Memory, OpenclKernel, OpenclStream
from mpilbm.codegen.program import Program
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import register


def _number_or_name(value: object) -> str:
    return "<name>" if isinstance(value, str) else "<number>"


Choice = Annotated[
    Annotated[int, Field(ge=0), Tag("<number>")] | Annotated[str, Tag("<name>")],
    Discriminator(_number_or_name),
]


@register("backends", "opencl")
class Opencl(Backend):
    """Runs on a device with an OpenCL driver: a GPU of any vendor, or a CPU.

    `mpilbm info` lists the platforms and devices. By default the ranks of a machine use the GPUs of
    a platform in turn, or its CPU if there is no GPU. All layouts work; `moments` has no kernel of
    its own for OpenCL and is slower than with `cuda`. With `fused` = false the results have the
    bits of the `cpu` backend if the device rounds division and square root correctly.
    """

    platform: Choice | None = Field(
        None, description="number or part of the name of the OpenCL platform", examples=["AMD"]
    )
    device: Choice | None = Field(
        None, description="number or part of the name of the device", examples=["gfx"]
    )
    fused: bool = Field(True, description="fused multiply-add; false: same bits as on a CPU")

    def room(self) -> int | None:
        """The memory of the largest device that matches; None if there is none."""
        return max((int(one.global_mem_size) for one in self._found()), default=None)

    def largest_array(self) -> int | None:
        """The least of the limits of the devices that match; None if there is none."""
        return min((int(one.max_mem_alloc_size) for one in self._found()), default=None)

    def _found(self) -> tuple[Any, ...]:
        """The devices that match; none if an error would be raised."""
        try:
            return devices.chosen(self.platform, self.device)
        except CaseError:
            return ()

    def open(self, local_rank: int = 0, local_ranks: int = 1) -> "OpenclDevice":
        """Device number `local_rank` modulo their count among those that match."""
        found = devices.chosen(self.platform, self.device)
        return OpenclDevice(found[local_rank % len(found)], self.fused)


class OpenclDevice(GpuDevice):
    """A device with a context and three in-order queues without priorities; the methods are
    Device's.
    """

    kind, opaque, prioritizes = "opencl", True, False
    _streams: dict[str, OpenclStream]

    def __init__(self, device: Any, fused: bool):
        self.cl, self.device = devices.load(), device
        self.name = f"{device.name.strip()} (OpenCL)"
        self.index = devices.devices().index(device)
        self.identity = f"{socket.gethostname()} {devices.identity(device)}"
        self.compiler = f"{device.platform.name.strip()} {device.driver_version.strip()}"
        self.description = (
            f"{self.name}, {gibibytes(device.global_mem_size)}, on {socket.gethostname()}, "
            f"driver {self.compiler}, pyopencl {self.cl.VERSION_TEXT}"
        )
        self._options = ["-cl-std=CL1.2", *(["-DFUSED"] if fused else [])]
        if devices.rounds_correctly(device):
            self._options.append("-cl-fp32-correctly-rounded-divide-sqrt")
        elif not fused:
            self.warning = (
                f"{self.name} rounds divisions and square roots inexactly: fused = false does not "
                "give the bits of a CPU"
            )
        self._waiting, self._used = Waiting(), 0
        with devices.reported(f"{self.name} cannot be opened"):
            self._context = self.cl.Context([device])
            self._streams = {name: self.new_stream() for name in ("edge", "bulk", "copy")}
            self._maps = self.cl.CommandQueue(self._context, device)  # idle: a map need not wait

    @property
    def kernel_options(self) -> tuple[str, ...]:
        """As Device.kernel_options."""
        return tuple(self._options)

    def memory(self) -> tuple[int, int]:
        """Free and total bytes; a driver that reports only the total does not know other users."""
        total = int(self.device.global_mem_size)
        free = total - self._used
        if self.device.host_unified_memory:
            free = min(free, memory.least()[0])
        return max(0, free), total

    def new_stream(self) -> OpenclStream:
        return OpenclStream(self.cl, self._context, self.device, self._wait)

    def _wait(self, point: Any) -> None:
        """Let all queues begin, then wait on the host: drivers may keep work until a flush."""
        for stream in self._streams.values():
            stream.flush()
        self._waiting(point)

    def allocate(self, count: int, dtype: DTypeLike) -> BufferArray:
        size = _whole(int(count) * np.dtype(dtype).itemsize)
        with self._allocating(size):
            array, bulk = self._empty(int(count), dtype), self._streams["bulk"]
            fill = self.cl.enqueue_fill_buffer
            bulk.enqueued(fill(bulk.queue, array.buffer, np.zeros(UNIT // 8), 0, size))
        bulk.synchronize()  # other queues may use it immediately
        return array

    def _empty(self, count: int, dtype: DTypeLike) -> BufferArray:
        size = _whole(count * np.dtype(dtype).itemsize)
        buffer = self.cl.Buffer(self._context, self.cl.mem_flags.READ_WRITE, size)
        return BufferArray(Memory(buffer, size, self._count), 0, count, dtype)

    def _count(self, size: int) -> None:
        self._used += size

    @contextmanager
    def _allocating(self, size: int) -> Iterator[None]:
        """Raise CaseError if an array cannot be made; some drivers allocate at its first use."""
        try:
            yield
        except self.cl.Error as error:
            most = gibibytes(self.device.max_mem_alloc_size)
            raise CaseError(
                f"{self.name} cannot allocate an array of {gibibytes(size)} ({error}); its driver "
                f"guarantees arrays of {most} at most; choose a smaller domain.size, 16-bit "
                "storage, or more ranks on more devices",
                where="domain.size",
            ) from error

    def pinned(self, count: int, dtype: DTypeLike) -> np.ndarray:
        """A host array in a mapped buffer of the driver. Raises MpilbmError without memory."""
        dtype, flags = np.dtype(dtype), self.cl.mem_flags
        size = _whole(int(count) * dtype.itemsize)
        both = self.cl.map_flags.READ | self.cl.map_flags.WRITE
        with devices.reported(f"{self.name} cannot allocate {size:,} bytes of host memory"):
            buffer = self.cl.Buffer(self._context, flags.READ_WRITE | flags.ALLOC_HOST_PTR, size)
            array, _ = self.cl.enqueue_map_buffer(self._maps, buffer, both, 0, (size,), np.uint8)
        array[:] = 0
        return array[: int(count) * dtype.itemsize].view(dtype)

    def upload(self, array: np.ndarray) -> BufferArray:
        array = np.ascontiguousarray(array).reshape(-1)
        with self._allocating(array.nbytes):
            copy = self._empty(array.size, array.dtype)
            self._copy(copy, array, self._streams["bulk"])
        self._streams["bulk"].synchronize()
        return copy

    def download(self, array: BufferArray) -> np.ndarray:
        self.synchronize()
        copy = np.empty(array.size, array.dtype)
        self.copy(copy, array)
        return copy

    def copy(self, target: Any, source: Any, stream: OpenclStream | None = None) -> None:
        """As Device.copy; the host waits for the copy, unless its memory is `pinned`."""
        with devices.reported(f"{self.name} cannot copy {target.nbytes:,} bytes"):
            self._copy(target, source, stream or self._streams["bulk"])

    def _copy(self, target: Any, source: Any, stream: OpenclStream) -> None:
        check_copy(target, source)
        if target.nbytes == 0:
            return
        on_host = [each for each in (target, source) if isinstance(each, np.ndarray)]
        if not on_host:
            offsets = {"src_offset": source.offset, "dst_offset": target.offset}
            ends = target.buffer, source.buffer
            done = self.cl.enqueue_copy(stream.queue, *ends, byte_count=target.nbytes, **offsets)
            stream.enqueued(done)
            return
        to_host = on_host[0] is target
        place = {"src_offset": source.offset} if to_host else {"dst_offset": target.offset}
        wait = not self._is_pinned(on_host[0])
        ends = (target, source.buffer) if to_host else (target.buffer, source)
        done = self.cl.enqueue_copy(stream.queue, *ends, is_blocking=wait, **place)
        stream.enqueued(done)
        if not wait:
            stream.keep(done)

    def _is_pinned(self, array: Any) -> bool:
        while isinstance(array, np.ndarray):
            array = array.base
        return isinstance(array, self.cl.MemoryMap)

    def compile(self, program: Program, roles: Collection[str] = ()) -> dict[str, CompiledKernel]:
        binaries = Binaries(self, program, roles)
        return {
            name: OpenclKernel(self, binaries, kernel, program)
            for name, kernel in program.kernels.items()
        }

    def build(self, text: str) -> Any:
        """The compiled text; raises MpilbmError with the compiler's first lines."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", self.cl.CompilerWarning)
                program = self.cl.Program(self._context, text)
                return program.build(self._options)
        except self.cl.Error as error:
            raise self.compile_error(text, "cl", error) from error


UNIT = 128  # bytes; the size of a buffer is a multiple of it


def _whole(size: int) -> int:
    return max(1, -(-size // UNIT)) * UNIT
