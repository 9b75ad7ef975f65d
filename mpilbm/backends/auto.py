"""The default backend: a GPU if there is one, else a CPU core."""

from importlib.util import find_spec

from mpilbm.backends import Backend, Device, cuda
from mpilbm.backends.cpu import Cpu
from mpilbm.backends.gpu import drivers
from mpilbm.backends.opencl import Opencl, devices
from mpilbm.core.registry import register


@register("backends", "auto")
class Auto(Backend):
    """Runs on an NVIDIA or AMD GPU by CuPy, else on a GPU by OpenCL, else on the CPU."""

    def resolve(self) -> Backend:
        """`cuda` if a driver shows a device, `opencl` if pyopencl finds a GPU, else `cpu`.

        AMD GPUs run by OpenCL if CuPy is not installed. Raises CaseError if CuPy or its compiler
        cannot use the device: a GPU job that silently ran on the CPU would waste its time.
        """
        chosen, found = self._kind(), drivers.driver()
        if found and isinstance(chosen, cuda.Cuda):
            cuda.load_cupy(found)
        return chosen

    def _kind(self) -> Backend:
        found = drivers.driver()
        if found and (found.vendor is not drivers.AMD or find_spec("cupy") or not devices.gpus()):
            return cuda.Cuda()
        return Opencl() if devices.gpus() else Cpu()

    def device_kind(self) -> str:
        """The name of the selected backend; opens no device and imports no CuPy."""
        return self._kind().name

    def sweeps(self) -> bool:
        """Whether the device of the selected backend sweeps; opens no device."""
        return self._kind().sweeps()

    def room(self) -> int | None:
        """Bytes that a rank can have on the selected backend; imports no CuPy."""
        return self._kind().room()

    def largest_array(self) -> int | None:
        """Bytes of an array that the selected backend guarantees; None without a limit."""
        return self._kind().largest_array()

    def open(self, local_rank: int = 0, local_ranks: int = 1) -> Device:
        """The device of the selected backend."""
        return self.resolve().open(local_rank, local_ranks)
