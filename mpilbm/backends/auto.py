"""The backend for whoever does not care: a GPU if there is one, else a CPU core."""

from mpilbm.backends import Backend, Device, cuda, nvidia
from mpilbm.backends.cpu import Cpu
from mpilbm.registry import register


@register("backends", "auto")
class Auto(Backend):
    """Runs on an NVIDIA GPU if the machine has one, else on the CPU."""

    def resolve(self) -> Backend:
        """`cuda` where an NVIDIA driver shows a device, else `cpu`.

        Raises CaseError where there is a device that CuPy or NVRTC cannot use: to run on the CPU
        without a word would waste a GPU job.
        """
        found = nvidia.driver()
        if found is None:
            return Cpu()
        cuda.load_cupy(found)
        return cuda.Cuda()

    def room(self) -> int | None:
        """That of what it resolves to; of GPUs the driver tells, whether CuPy is here or not."""
        return Cpu().room() if nvidia.driver() is None else cuda.Cuda().room()

    def open(self, local_rank: int = 0, local_ranks: int = 1) -> Device:
        """The device of what it resolves to."""
        return self.resolve().open(local_rank, local_ranks)
