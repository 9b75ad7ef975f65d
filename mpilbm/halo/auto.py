"""Selects the first of three ways that works on these ranks."""

from mpilbm.backends import Device
from mpilbm.errors import CaseError
from mpilbm.halo import Exchanger, Halo
from mpilbm.halo.cuda_ipc import CudaIpc
from mpilbm.halo.direct import Direct
from mpilbm.halo.staged import Staged
from mpilbm.parallel import gpu_aware
from mpilbm.parallel.communicator import Communicator
from mpilbm.parallel.slabs import Slab, split
from mpilbm.registry import register


@register("halo", "auto")
class Auto(Halo):
    """`cuda_ipc` on one node; else `direct` where MPI accepts the memory; else `staged`.

    MPILBM_GPU_MPI=0 or 1 sets whether MPI accepts GPU memory. On CPUs the choice is `direct`.
    """

    def resolve(self, comm: Communicator, device: Device) -> tuple[Halo, str]:
        """The selected way and the reason, the same on all ranks. Collective."""
        if comm.size == 1:
            return Direct(), "one rank"
        if device.kind == "cpu":
            return Direct(), "host memory"
        ring = split((comm.size, 1, 1), comm.size, True)[comm.rank]
        try:
            with CudaIpc().open(ring, comm, device):
                return CudaIpc(), "a trial between the GPUs of this node passed"
        except CaseError as error:
            no_ipc, *_ = str(error).removeprefix("halo.name: ").split(";")
        verdict = gpu_aware.agreed(comm, gpu_aware.verdict())
        if verdict.answer:
            return Direct(), f"{no_ipc}; {verdict.reason}"
        return Staged(), f"{no_ipc}; {verdict.reason}; 'nccl' needs no such MPI"

    def open(self, slab: Slab, comm: Communicator, device: Device) -> Exchanger:
        """The exchanger of the selected way. Collective."""
        return self.resolve(comm, device)[0].open(slab, comm, device)
