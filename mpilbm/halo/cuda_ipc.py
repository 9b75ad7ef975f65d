"""GPUs of one node write into each other's memory; a trial shows whether that works."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mpilbm.backends.gpu import drivers
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import register
from mpilbm.halo import Exchanger, Halo
from mpilbm.halo.ipc_exchange import WAYS, IpcExchange, IpcExchanger, Windows, refuse
from mpilbm.halo.local import alone
from mpilbm.halo.neighbours import arrives, own_gpus
from mpilbm.parallel import Communicator, together
from mpilbm.parallel.slabs import Slab


@register("halo", "cuda_ipc")
class CudaIpc(Halo):
    """GPUs of one node write into each other's memory, in the order of streams."""

    def open(self, slab: Slab, comm: Communicator, device: Any) -> Exchanger:
        """The exchanger of this rank's slab. Collective; CaseError on all ranks."""
        if comm.size == 1:
            return alone(slab, device)
        if device.no_ipc:
            refuse(device.no_ipc)
        identities = own_gpus("cuda_ipc", comm, device)
        nodes = sorted({identity.split()[0] for identity in identities})
        if len(nodes) > 1:
            refuse(f"joins GPUs of one node, found {', '.join(nodes)}; use 'auto' or 'nccl'")
        reached = together(comm, reach, slab, device, [one.split()[1] for one in identities])
        trial = Windows(*reached)
        try:
            exchanger = IpcExchanger(slab, comm, device, trial, TrialExchange)
            with exchanger:
                arrived = comm.allgather(arrives(exchanger.prepare, slab, comm, device))
        except CaseError:  # on all ranks, before anything was written: 'auto' then tries MPI
            trial.close()
            raise
        if not all(arrived):
            refuse(
                f"writes to a neighbour's memory, and what was written to that of rank "
                f"{arrived.index(False)} for a trial did not arrive (is an IOMMU on? NCCL would "
                "need NCCL_P2P_DISABLE=1 there); use 'staged'"
            )
        return IpcExchanger(slab, comm, device, Windows(*reached))


class TrialExchange(IpcExchange):
    """Sets and awaits no flags, so that no kernel waits for bytes that do not arrive."""

    def tables(self, exports: Sequence[dict]) -> tuple[np.ndarray, np.ndarray]:
        """The tables of IpcExchange with the addresses of all flags set to null."""
        sides, pieces = super().tables(exports)
        return np.zeros_like(sides), pieces


def reach(slab: Slab, device: Any, uuids: list[str]) -> tuple[Any, frozenset[int]]:
    """CuPy's runtime, and the neighbours whose GPUs are not visible to this rank.

    Raises CaseError if this rank's GPU cannot access the memory of a visible neighbour's GPU. For a
    GPU that is not visible this is unknown; CUDA may open its memory nevertheless.
    """
    from cupy.cuda import runtime

    seen = [drivers.device_uuid(k) for k in range(runtime.getDeviceCount())]
    peers = {peer for peer in (slab.lower, slab.upper) if peer is not None}
    hidden = frozenset(peer for peer in peers if uuids[peer] not in seen)
    for peer in peers - hidden:
        if not runtime.deviceCanAccessPeer(device.index, seen.index(uuids[peer])):
            refuse(
                f"needs GPUs that reach each other's memory; that of rank {slab.rank} does not "
                f"reach that of rank {peer} (nvidia-smi topo -p2p r); {WAYS}"
            )
    return runtime, hidden
