"""CPU cores of a rank: kernels compiled by a C compiler and called through ctypes."""

import socket
from collections.abc import Callable, Collection
from functools import partial

import numpy as np
from numpy.typing import DTypeLike
from pydantic import Field, field_validator

from mpilbm.backends import Backend, Device, check_copy, memory
from mpilbm.backends.cpu import compiler as compilers
from mpilbm.backends.cpu.kernels import CpuKernel, Library, Stream
from mpilbm.backends.cpu.workers import LEAST_BYTES, start
from mpilbm.backends.interfaces import Array, CompiledKernel
from mpilbm.codegen.program import Program
from mpilbm.core.registry import register

ALIGNMENT = 128


@register("backends", "cpu")
class Cpu(Backend):
    """Runs on CPU cores, with kernels built by a C compiler.

    The `threads` of a rank compute a share of its planes each; the results have the same bits for
    any number of threads.
    """

    compiler: str | None = Field(
        None, description="C compiler; none: CC, or the first that is found", examples=["gcc-13"]
    )
    threads: int = Field(1, ge=1, le=1024, description="threads of each rank, at most one per core")

    @field_validator("compiler")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        if value is not None and not compilers.valid_name(value):
            raise ValueError(
                f"'{value}' is none of {', '.join(compilers.NAMES)} (a version may follow: "
                "gcc-13); any other compiler goes into the environment: CC=/path/to/it"
            )
        return value

    def room(self) -> int:
        """The memory of this machine, or the limit of the job if that is less."""
        return memory.least()[1]

    def workers(self) -> int:
        return self.threads

    def open(self, local_rank: int = 0, local_ranks: int = 1) -> "CpuDevice":
        """The cores of this process; `local_ranks` ranks share the memory."""
        return CpuDevice(compilers.find(self.compiler), local_ranks, self.threads)


class CpuDevice(Device):
    """The cores of a rank with their share of the memory, and a compiler; the methods are those of
    Device.
    """

    kind, unified, copied_share = "cpu", True, 8

    def __init__(self, compiler: compilers.Compiler, sharing: int = 1, threads: int = 1):
        self._compiler = compiler
        self.name = compilers.cpu()[0]
        self.compiler = compiler.version
        self._workers, self.warning = start(threads, sharing)
        where = socket.gethostname() + f", {threads} threads per rank" * (threads > 1)
        self.description = f"{self.name} on {where}, kernels by {compiler.version}"
        self.sharing, self.copied_bytes = sharing, threads * 2**28
        self._streams = {name: Stream() for name in ("edge", "bulk", "copy")}

    def memory(self) -> tuple[int, int]:
        return memory.least()

    def new_stream(self) -> Stream:
        return Stream()

    def allocate(self, count: int, dtype: DTypeLike) -> np.ndarray:
        """A 1-D array of zeros that starts at a multiple of 128 bytes, with as many readable ones
        around.

        Kernels that compute the ends of a row as if it did not wrap around read there
        (FOR_CELLS_SENT). Each thread is the first to write its share, which is then in the memory
        next to its core.
        """
        size = int(count) * np.dtype(dtype).itemsize
        room = np.zeros(size + 3 * ALIGNMENT, np.uint8)
        start = ALIGNMENT + -room.ctypes.data % ALIGNMENT
        array = room[start : start + size]
        if self._workers.count > 1 and size >= LEAST_BYTES:
            self._workers.fill(array, 0)
        return array.view(dtype)

    pinned = allocate

    def upload(self, array: np.ndarray) -> np.ndarray:
        array = np.ascontiguousarray(array).reshape(-1)
        copy = self.allocate(array.size, array.dtype)
        copy[:] = array
        return copy

    def download(self, array: Array) -> np.ndarray:
        self.synchronize()
        return array.copy()

    def copy(self, target: Array, source: Array, stream: Stream | None = None) -> None:
        """As Device.copy; without a stream, run the bulk stream and copy now."""
        check_copy(target, source)
        work = partial(np.copyto, target, source)
        if self._workers.count > 1 and target.nbytes >= LEAST_BYTES:
            work = partial(self._workers.copy, target, source)
        if stream is not None:
            stream.submit(work)
            return
        self._streams["bulk"].flush()
        work()

    def submit(self, work: Callable[[], object], stream: Stream) -> None:
        stream.submit(work)

    def compile(self, program: Program, roles: Collection[str] = ()) -> dict[str, CompiledKernel]:
        """As Device.compile; optional kernels with other roles are compiled when they are first
        used.
        """
        library = Library(program, self._compiler.build)
        kernels: dict[str, CompiledKernel] = {
            name: CpuKernel(library, kernel, program, self._workers)
            for name, kernel in program.kernels.items()
        }
        library.load(program.wanted(roles))
        return kernels
