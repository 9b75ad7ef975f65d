"""The default backend: a GPU if there is one, else a CPU core."""

from mpilbm.backends import Backend, Device, cuda
from mpilbm.backends.cpu import Cpu
from mpilbm.backends.nvidia import driver as nvidia
from mpilbm.registry import register


@register("backends", "auto")
class Auto(Backend):
    """Runs on an NVIDIA GPU if the machine has one, else on the CPU."""

    def resolve(self) -> Backend:
        """`cuda` if an NVIDIA driver shows a device, else `cpu`.

        Raises CaseError if CuPy or NVRTC cannot use the device: a GPU job that silently ran on the
        CPU would waste its time.
        """
        found = nvidia.driver()
        if found is None:
            return Cpu()
        cuda.load_cupy(found)
        return cuda.Cuda()

    def device_kind(self) -> str:
        """`cuda` if an NVIDIA driver shows a device, else `cpu`."""
        return "cpu" if nvidia.driver() is None else "cuda"

    def room(self) -> int | None:
        """The room of the backend that it resolves to; for GPUs from the driver, without CuPy."""
        return Cpu().room() if nvidia.driver() is None else cuda.Cuda().room()

    def open(self, local_rank: int = 0, local_ranks: int = 1) -> Device:
        """The device of the backend that it resolves to."""
        return self.resolve().open(local_rank, local_ranks)
