"""Ranks that are threads and exchange by `cuda_ipc`, whose kernel is compiled for a CPU."""

from types import SimpleNamespace

from mpilbm.backends import cuda
from mpilbm.halo.ipc_exchange import IpcExchanger
from support.emulated_device import Array, Module
from support.random_device import RandomDevice
from support.streams import Threads

PATIENCE = 20.0  # seconds


class Entered:
    """What CuPy calls a stream: `with` it, launches go there."""

    def __init__(self, device, stream):
        self._device, self._stream = device, stream

    def __enter__(self):
        self._device.current = self._stream

    def __exit__(self, *error):
        self._device.current = None


class Device(RandomDevice):
    """Streams in any order; a library of its own for each rank, whose launches run side by side."""

    module, compile_error = cuda.CudaDevice.module, cuda.CudaDevice.compile_error

    def __init__(self, rank=0, seed=0):
        super().__init__(seed)
        self.current, self.rank = None, rank
        errors = SimpleNamespace(compiler=SimpleNamespace(CompileException=OSError))
        self._cupy = SimpleNamespace(RawModule=self._raw, cuda=errors)
        for stream in self._streams.values():
            stream.cupy = Entered(self, stream)

    def _raw(self, code, backend, options):
        return Module(self, code, backend, (*options, f"-DRANK={self.rank}"))


class SameMemory:
    """Windows between threads, who see all that others have."""

    def address(self, array):
        return array.ctypes.data

    export = address

    def open(self, rank, exported):
        return exported

    def close(self):
        """Nothing was opened."""


class World(Threads):
    """Ranks that are threads, whose devices work while their hosts wait for other ranks."""

    def __init__(self, ranks):
        super().__init__(ranks, PATIENCE)

    def comm(self, rank, device):
        return super().comm(rank, device.synchronize)

    def exchanger(self, rank, slab, device):
        device.rank = rank
        return IpcExchanger(slab, self.comm(rank, device), device, SameMemory())


class KernelDevice(Device):
    """A device whose kernels are CUDA texts, too, of a GPU without the moment sweep."""

    capability, processors, _fused = 75, 4, False
    vendor, kernel_options = cuda.CudaDevice.vendor, cuda.CudaDevice.kernel_options
    compile, _unit = cuda.CudaDevice.compile, cuda.CudaDevice._unit
    apply_walls, clear_solids = cuda.CudaDevice.apply_walls, cuda.CudaDevice.clear_solids

    def allocate(self, count, dtype):
        return super().allocate(count, dtype).view(Array)
