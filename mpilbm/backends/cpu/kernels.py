"""Streams of a CPU, kernels with the units of their text, and launches.

A C compiler compiles the units, which the cache keeps by their text: cases that differ in the
collision share most of them.
"""

import ctypes
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from mpilbm.backends.cpu.workers import LEAST_ACCESSES, Workers, shares
from mpilbm.backends.interfaces import Resources, changed, checked
from mpilbm.backends.units import Units
from mpilbm.codegen.program import Kernel, Program
from mpilbm.core.errors import MpilbmError


class Event:
    """A point in the queue of a stream, reached when the work before it has run."""

    def __init__(self, stream: "Stream"):
        self._stream = stream
        self._time: float | None = None

    def _reach(self) -> None:
        self._time = time.perf_counter()

    def synchronize(self) -> None:
        while self._time is None:
            self._stream.run_next()

    @property
    def done(self) -> bool:
        return self._time is not None

    def seconds_since(self, earlier: "Event") -> float:
        self.synchronize()
        assert self._time is not None
        assert earlier._time is not None
        return self._time - earlier._time


class Stream:
    """A queue whose work runs when it is flushed or when an event in it is awaited.

    So a time step, written for the streams of a GPU, also overlaps communication with computing on
    a CPU: `flush` of the bulk stream computes while MPI transfers the edge planes.
    """

    def __init__(self) -> None:
        self._queue: deque[Callable[[], object]] = deque()

    def submit(self, work: Callable[[], object]) -> None:
        """Enqueue work."""
        self._queue.append(work)

    def run_next(self) -> None:
        """Run the oldest work in the queue."""
        self._queue.popleft()()

    def record(self, timed: bool = False) -> Event:
        event = Event(self)
        self._queue.append(event._reach)
        return event

    def wait(self, event: Any) -> None:
        self._queue.append(event.synchronize)

    def flush(self) -> None:
        """Run all enqueued work."""
        while self._queue:
            self.run_next()

    synchronize = flush


# The bodies of these kernels are long lists of addresses, with which this part of GCC takes most of
# the time, for code that is not faster.
COPY_FLAGS = ("-fno-ivopts",)

Build = Callable[[str, tuple[str, ...]], Path]  # a text and further flags to a shared object


@dataclass(frozen=True)
class Unit:
    """Kernels that are compiled together: their text, and flags besides those of all kernels."""

    text: str
    flags: tuple[str, ...] = ()


def unit(program: Program, kernels: Sequence[Kernel]) -> Unit:
    """The unit of these kernels."""
    collide = any(kernel.phase == "collide" for kernel in kernels)
    copy = any(kernel.phase == "copy" for kernel in kernels)
    head = program.head if collide else f"#define NO_LINES\n{program.head}"
    bodies = (program.bodies[kernel.name] for kernel in kernels)
    return Unit("\n".join([head, *bodies]), COPY_FLAGS if copy else ())


class Library(Units):
    """The compiled kernels of a program."""

    def __init__(self, program: Program, build: Build):
        super().__init__(program, lambda kernels: self._open(unit(program, kernels)))
        self._build = build

    def function(self, name: str) -> Any:
        """The function of a kernel."""
        return getattr(self.of(name), name)

    def _open(self, unit: Unit) -> ctypes.CDLL:
        path = self._build(unit.text, unit.flags)
        try:
            return ctypes.CDLL(str(path))
        except OSError as error:
            message = str(error).replace(str(path), str(path.resolve()))
            raise MpilbmError(
                f"the kernels just compiled cannot be loaded: {message}; if "
                f"{path.resolve().parent} is on a file system mounted with noexec, set "
                "MPILBM_CACHE_DIR to another directory"
            ) from error


class CpuKernel:
    """A compiled function without arguments."""

    def __init__(self, library: Library, kernel: Kernel, program: Program, workers: Workers):
        self._library, self._kernel, self._program = library, kernel, program
        self._workers = workers

    @cached_property
    def _function(self) -> Any:
        function = self._library.function(self._kernel.name)
        function.restype = None
        return function

    def bind(self, **arguments: Any) -> "CpuLaunch":
        values = checked(self._kernel, self._program, arguments)
        return CpuLaunch(self._function, self._kernel, values, self._workers)

    def resources(self) -> Resources:
        return Resources()


class CpuLaunch:
    """A kernel with its arguments; it and its calls in a queue keep their arrays alive.

    A call divides its planes (or entries) among the threads, if their work is large enough.
    """

    joint = None  # kernels of a CPU do not exchange planes

    def __init__(self, function: Any, kernel: Kernel, values: list[Any], workers: Workers):
        self._function, self._kernel, self._values = function, kernel, values
        self._arguments = [_as_ctypes(value) for value in values]
        self._workers = workers
        given = zip((argument.name for argument in kernel.arguments), values, strict=True)
        whole = {name: int(v) for name, v in given if v.ndim == 0 and v.dtype.kind == "i"}
        self._item_accesses = kernel.item_accesses(whole)
        self._calls: dict[tuple[int, int, int], Callable[[], object]] = {}

    def set(self, **numbers: float) -> None:
        self._values = changed(self._kernel, self._values, numbers)
        self._arguments = [_as_ctypes(value) for value in self._values]
        self._calls.clear()

    def __call__(self, stream: Stream, begin: int, end: int, stride: int = 1) -> None:
        if begin < end:
            key = (begin, end, stride)
            if key not in self._calls:
                self._calls[key] = self._call(*key)
            stream.submit(self._calls[key])

    def _call(self, begin: int, end: int, stride: int) -> Callable[[], object]:
        """The work of all threads, of which each has at least LEAST_ACCESSES."""
        accesses = len(range(begin, end, stride)) * self._item_accesses
        count = min(self._workers.count, accesses // LEAST_ACCESSES)
        if count <= 1:
            return self._work(begin, end, stride)
        parts = shares(begin, end, stride, count)
        works = [None if part is None else self._work(*part, stride) for part in parts]
        return partial(self._workers.run, works)

    def _work(self, begin: int, end: int, stride: int) -> Callable[[], object]:
        """The call of the function for some planes or entries."""
        limits = (ctypes.c_int64(value) for value in (begin, end, stride))
        return partial(self._function, *limits, *self._arguments)


def _as_ctypes(value: Any) -> Any:
    """The argument of a ctypes function; a pointer refers to its array and so keeps it alive."""
    if isinstance(value, np.ndarray):
        return value.ctypes.data_as(ctypes.c_void_p)
    return np.ctypeslib.as_ctypes_type(value.dtype)(value.item())
