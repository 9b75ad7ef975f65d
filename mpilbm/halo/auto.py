"""Selects the first of four ways that works on these ranks."""

from mpilbm.backends import Device
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import register
from mpilbm.halo import Exchanger, Halo
from mpilbm.halo.cuda_ipc import CudaIpc
from mpilbm.halo.mpi import Direct, Staged
from mpilbm.halo.nccl import Nccl
from mpilbm.parallel import Communicator, gpu_aware
from mpilbm.parallel.slabs import Slab, split


@register("halo", "auto")
class Auto(Halo):
    """The first that works of `cuda_ipc`, `direct`, `nccl` and `staged`.

    A trial transfer decides for `cuda_ipc` and `nccl`, a test in a child process for `direct`;
    MPILBM_GPU_MPI=0 or 1 replaces that test. On CPUs the choice is `direct`, with OpenCL `staged`.
    """

    def resolve(self, comm: Communicator, device: Device) -> tuple[Halo, str]:
        """The selected way and the reason, the same on all ranks. Collective."""
        if comm.size == 1:
            return Direct(), "one rank"
        if device.kind == "cpu":
            return Direct(), "host memory"
        if device.opaque:
            return Staged(), f"the arrays of {device.kind} have no address for MPI"
        no_ipc = refusal(CudaIpc(), comm, device)
        if not no_ipc:
            return CudaIpc(), "a trial between the GPUs of this node passed"
        verdict = gpu_aware.agreed(comm, gpu_aware.verdict())
        before = f"{no_ipc}; {verdict.reason}"
        if verdict.answer:
            return Direct(), before
        no_nccl = refusal(Nccl(), comm, device)
        if not no_nccl:
            return Nccl(), f"{before}; a trial of 'nccl' passed"
        return Staged(), f"{before}; {no_nccl}"

    def open(self, slab: Slab, comm: Communicator, device: Device) -> Exchanger:
        """The exchanger of the selected way. Collective."""
        return self.resolve(comm, device)[0].open(slab, comm, device)


def refusal(way: Halo, comm: Communicator, device: Device) -> str:
    """The reason why a way does not join these ranks in a ring; "" if it does. Collective."""
    ring = split((comm.size, 1, 1), comm.size, True)[comm.rank]
    try:
        with way.open(ring, comm, device):
            return ""
    except CaseError as error:
        reason, *_ = str(error).removeprefix("halo.name: ").split(";")
        return reason
