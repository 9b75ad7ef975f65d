"""NVIDIA and AMD GPUs: kernels by NVRTC or HIPRTC, arrays and streams by CuPy."""

import os
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from pydantic import Field

from mpilbm.backends import Backend, check_copy, gibibytes
from mpilbm.backends.cuda.launch import CudaGraph, CudaKernel, CudaStream
from mpilbm.backends.cuda.sweep import LEAST_CAPABILITY, SweepKernel
from mpilbm.backends.gpu import GpuDevice, Waiting, drivers
from mpilbm.backends.gpu.drivers import AMD, NVIDIA, Driver, Vendor
from mpilbm.backends.interfaces import Array, CompiledKernel, TwoStepsKernel
from mpilbm.backends.units import Units
from mpilbm.codegen.program import Kernel, Program
from mpilbm.core.errors import CaseError
from mpilbm.core.machine import cache
from mpilbm.core.registry import register
from mpilbm.core.units import counted
from mpilbm.layouts.grid import Grid
from mpilbm.solids.body_walls import BodyWalls
from mpilbm.solids.box_walls import BoxWalls

GENERAL = "collide_stream_0"  # the kernel that the moment sweep replaces
NO_SWEEP = (
    "the layout moments runs its general kernel, which is slower: the sweep requires an NVIDIA GPU "
    "of compute capability 8.0 or later"
)


@register("backends", "cuda")
class Cuda(Backend):
    """Runs on an NVIDIA GPU, or on an AMD GPU by HIP (never tested on one).

    `device`: its number on this machine; by default the ranks use the devices in turn. `fused`: the
    result of a*b + c is rounded once, which is faster and differs from a CPU in the last bits.
    """

    device: int | None = Field(
        None, ge=0, description="number of the GPU; none: by local rank", examples=[1]
    )
    fused: bool = Field(True, description="fused multiply-add; false: same bits as on a CPU")

    def sweeps(self) -> bool:
        """With `fused`, if all GPUs of this machine have the compute capability of the sweep."""
        found = drivers.driver()
        return self.fused and found is not None and found.capability >= LEAST_CAPABILITY

    def room(self) -> int | None:
        """The memory of the largest GPU of this machine; None if the driver does not report it."""
        found = drivers.driver()
        return found.memory if found else None

    def open(self, local_rank: int = 0, local_ranks: int = 1) -> "CudaDevice":
        """Device number `local_rank` modulo their count, unless one is given; raises CaseError."""
        found = drivers.driver()
        if found is None:
            raise CaseError(
                "no NVIDIA device was found (see nvidia-smi -L and CUDA_VISIBLE_DEVICES), and no "
                'AMD device (see rocminfo); name = "cpu" or "auto" runs on the CPU',
                where="backend.name",
            )
        cupy = load_cupy(found)
        count = cupy.cuda.runtime.getDeviceCount()
        index = local_rank % count if self.device is None else self.device
        if index >= count:
            raise CaseError(f"found {index}, allowed 0 to {count - 1}", where="backend.device")
        return CudaDevice(cupy, index, self.fused, found.vendor)


def load_cupy(found: Driver) -> Any:
    """CuPy, if it can use the driver and its compiler; else raises CaseError with the fix."""
    if found.problem:
        raise CaseError(
            f"an NVIDIA driver is here but cannot be used: {found.problem}; repair it (in a "
            'container: start it with access to the GPUs), or set name = "cpu"',
            where="backend.name",
        )
    os.environ.setdefault("CUPY_CACHE_DIR", str(cache.subfolder("cupy")))
    try:
        import cupy

        cupy.cuda.runtime.getDeviceCount()
        cupy.cuda.nvrtc.getVersion()
    except Exception as error:  # ImportError, or an error of CuPy for a library that it cannot load
        raise CaseError(
            f"found {counted(found.devices, f'{found.vendor.name} device')} with a {found.words}, "
            f"but CuPy or {found.vendor.rtc} cannot be loaded "
            f"({str(error).strip().splitlines()[0]}); "
            f'{found.install}, or set name = "cpu"',
            where="backend.name",
        ) from error
    return cupy


class CudaDevice(GpuDevice):
    """A GPU with its streams, the current device of the calling thread, see Device.

    The stream "special" has the blocks of a pass that meet walls or bodies; "lists", "lists 2" and
    "lists 3" have the boundary lists of windows.

    The moment sweep applies walls if a tile fits the box.
    """

    kind, vendor, records = "cuda", NVIDIA, True
    _streams: dict[str, CudaStream]

    def __init__(self, cupy: Any, index: int, fused: bool, vendor: Vendor = NVIDIA):
        self._cupy, self._fused, self.vendor = cupy, fused, vendor
        self.records, self.no_ipc = vendor.records, vendor.no_ipc
        self.index, self._device = index, cupy.cuda.Device(index)
        self.attach()
        runtime = cupy.cuda.runtime
        properties = runtime.getDeviceProperties(index)
        self.name = properties["name"].decode()
        self.processors = properties["multiProcessorCount"]
        if vendor is AMD:
            self.name += f" ({properties['gcnArchName'].decode().split(':')[0]})"
            self.capability = self.shared_memory = 0  # the sweep needs 8.0
            unique = runtime.deviceGetPCIBusId(index)  # the same for all partitions of a GPU
        else:
            self.capability = int(self._device.compute_capability)
            self.shared_memory = properties["sharedMemPerBlockOptin"]
            unique = drivers.device_uuid(index)
        self.sweeps = fused and self.capability >= LEAST_CAPABILITY
        self.identity = f"{socket.gethostname()} {unique}"
        self.compiler = f"{vendor.rtc} " + ".".join(map(str, cupy.cuda.nvrtc.getVersion()))
        version = runtime.driverGetVersion() // vendor.version_unit
        self.description = (
            f"{self.name} ({gibibytes(self.memory()[1])}) on {self.identity}, driver for "
            f"{vendor.language} {version}, CuPy {cupy.__version__}, {self.compiler}"
        )
        # CUDA clamps a priority to the range of the device; lower numbers have priority.
        levels = {"edge": -5, "bulk": 0, "copy": -5, "special": -2}
        levels |= dict.fromkeys(("lists", "lists 2", "lists 3"), -5)
        self._waiting = Waiting()
        self._streams = {
            name: CudaStream(cupy, level, self._waiting) for name, level in levels.items()
        }

    def recording(self, work: Callable[[], None]) -> CudaGraph:
        """A CUDA graph of the bulk stream, and of the streams that wait for it and rejoin it."""
        return CudaGraph(self._cupy.cuda.runtime, self._streams["bulk"].cupy.ptr, work)

    def stream(self, priority: str) -> CudaStream:
        return self._streams[priority]

    def memory(self) -> tuple[int, int]:
        free, total = self._cupy.cuda.Device().mem_info
        return free + self._cupy.get_default_memory_pool().free_bytes(), total

    def attach(self) -> None:
        self._device.use()

    def new_stream(self) -> CudaStream:
        return CudaStream(self._cupy, 0, self._waiting)

    def allocate(self, count: int, dtype: DTypeLike) -> Array:
        bulk = self._streams["bulk"]
        with bulk.cupy:
            array = self._cupy.zeros(int(count), dtype)
        bulk.synchronize()  # other streams may use it immediately
        return array

    def pinned(self, count: int, dtype: DTypeLike) -> np.ndarray:
        import cupyx

        array = cupyx.empty_pinned(int(count), dtype)
        array[:] = 0
        return array

    def upload(self, array: np.ndarray) -> Array:
        stream = self._streams["bulk"]
        if stream.cupy.is_capturing():  # other streams may be part of the recording, too
            stream = self.new_stream()
        with stream.cupy:
            copy = self._cupy.asarray(np.ascontiguousarray(array).reshape(-1))
        stream.synchronize()
        return copy

    def download(self, array: Array) -> np.ndarray:
        self.synchronize()
        return array.get(stream=self._streams["bulk"].cupy)

    def copy(self, target: Array, source: Array, stream: CudaStream | None = None) -> None:
        check_copy(target, source)
        runtime = self._cupy.cuda.runtime
        queue = (stream or self._streams["bulk"]).cupy.ptr
        addresses = (_address(target), _address(source))
        runtime.memcpyAsync(*addresses, target.nbytes, runtime.memcpyDefault, queue)

    def submit(self, work: Callable[[], object], stream: CudaStream) -> None:
        with stream.cupy:
            work()

    @property
    def kernel_options(self) -> tuple[str, ...]:
        """As Device.kernel_options."""
        return (*self.vendor.options, *(("-DFUSED",) if self._fused else ()))

    def compile(self, program: Program, roles: Collection[str] = ()) -> dict[str, CompiledKernel]:
        """As Device.compile, with the moment sweep as collide-stream if there is one.

        Optional kernels with other roles, and the general kernel beside a sweep, are compiled when
        they are first bound.
        """
        swept = bool(program.sweep) and self.capability >= LEAST_CAPABILITY
        units = Units(program, partial(self._unit, program))
        wanted = program.wanted(roles)
        units.load([name for name in wanted if not (swept and name == GENERAL)])
        kernels: dict[str, CompiledKernel] = {
            name: CudaKernel(self, units, kernel, program)
            for name, kernel in program.kernels.items()
        }
        if swept:
            kernels[GENERAL] = SweepKernel(self, program, kernels[GENERAL])
        elif program.sweep:
            self.warning = NO_SWEEP
        return kernels

    def _unit(self, program: Program, kernels: Sequence[Kernel]) -> Any:
        """The compiled unit of these kernels; for any thread."""
        self.attach()
        bodies = (program.bodies[kernel.name] for kernel in kernels)
        return self.module("\n".join([program.head, *bodies]), self.kernel_options)

    def apply_walls(
        self,
        kernels: Mapping[str, CompiledKernel],
        walls: BoxWalls,
        bodies: BodyWalls,
        grid: Grid,
    ) -> bool:
        """Let the sweep apply these walls; False without a sweep, or where no tile fits."""
        sweep = kernels[GENERAL]
        return isinstance(sweep, SweepKernel) and sweep.apply(walls, bodies, grid)

    def clear_solids(self, kernels: Mapping[str, CompiledKernel], f: Array) -> None:
        sweep = kernels.get(GENERAL)  # coupled fluids have others
        if isinstance(sweep, SweepKernel):
            sweep.clear_solids(f)

    def two_steps(
        self,
        kernels: Mapping[str, CompiledKernel],
        grid: Grid,
        columns: tuple[int, int] | None = None,
    ) -> TwoStepsKernel | None:
        """The sweep with two steps in one pass; None without a sweep, or where no tile fits."""
        sweep = kernels[GENERAL]
        if not isinstance(sweep, SweepKernel):
            return None
        return sweep.two_steps(grid, columns)

    def sweep_of(
        self,
        kernels: Mapping[str, CompiledKernel],
        walls: BoxWalls,
        bodies: BodyWalls,
        grid: Grid,
    ) -> CompiledKernel | None:
        """The sweep of another box with these walls; None without one, or where no tile fits."""
        sweep = kernels[GENERAL]
        if not isinstance(sweep, SweepKernel):
            return None
        return sweep.of_box(walls, bodies, grid)

    def module(self, text: str, options: tuple[str, ...]) -> Any:
        """The compiled text; raises MpilbmError with NVRTC's first lines."""
        module = self._cupy.RawModule(code=text, backend="nvrtc", options=options)
        try:
            module.compile()
        except self._cupy.cuda.compiler.CompileException as error:
            raise self.compile_error(text, "cu", error) from error
        return module


def _address(array: Any) -> int:
    return array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr
