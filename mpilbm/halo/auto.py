"""The way is found out: `direct` where MPI takes the field's memory, else `staged`."""

from mpilbm.halo import Exchanger, Halo, gpu_mpi
from mpilbm.halo.direct import Direct
from mpilbm.halo.staged import Staged
from mpilbm.registry import register


@register("halo", "auto")
class Auto(Halo):
    """direct where MPI takes the memory, else staged; MPILBM_GPU_MPI=0 or 1 decides for GPUs."""

    def resolve(self, comm, device) -> tuple[Halo, str]:
        """The choice and its reason, the same on all ranks. Collective."""
        if comm.size == 1:
            return Direct(), "one rank"
        if device.kind == "cpu":
            return Direct(), "host memory"
        verdict = gpu_mpi.agreed(comm, gpu_mpi.verdict())
        if verdict.answer:
            return Direct(), verdict.reason
        return Staged(), f"{verdict.reason}; on one node 'cuda_ipc' needs no such MPI"

    def open(self, slab, comm, device) -> Exchanger:
        """The exchanger of the way that is chosen. Collective."""
        return self.resolve(comm, device)[0].open(slab, comm, device)
