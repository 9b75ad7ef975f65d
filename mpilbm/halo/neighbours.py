"""Checks of the neighbouring ranks: their GPUs, a trial exchange, whether they still run."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mpilbm import backends
from mpilbm.backends import Device
from mpilbm.core.errors import CaseError, MpilbmError
from mpilbm.halo import Exchange, Plan, Transfer
from mpilbm.parallel import Communicator, together
from mpilbm.parallel.gpu_aware import pattern
from mpilbm.parallel.slabs import Slab

SIZE = 1 << 16  # bytes of a trial to each neighbour
ENDED = "ZX"  # states of a process in /proc: zombie, dead


def start_time(process: int) -> str:
    """The start time of a process of this node, in clock ticks from boot; "" if it has ended."""
    try:
        text = Path(f"/proc/{process}/stat").read_text("utf-8", "replace")
    except OSError:
        return ""
    state, *more = text.rpartition(")")[2].split()  # the fields after the name, from the third on
    return "" if state in ENDED else more[18]


class Neighbours:
    """The processes of the ranks above and below. Collective; all ranks are on one node.

    A process number may be reused: the process is the same if it started at the same time. A
    neighbour in another PID namespace (another container) is not found and not watched.
    """

    def __init__(self, slab: Slab, comm: Communicator):
        own = os.getpid()
        shown = comm.allgather((own, start_time(own)))
        peers = {peer for peer in (slab.lower, slab.upper) if peer not in (None, slab.rank)}
        self.rank = slab.rank
        self.watched = {
            peer: shown[peer] for peer in peers if start_time(shown[peer][0]) == shown[peer][1]
        }

    def check(self) -> None:
        """Raise MpilbmError if a neighbour's process has ended."""
        for peer, (process, started) in self.watched.items():
            if start_time(process) != started:
                raise MpilbmError(
                    f"rank {self.rank}: process {process} of rank {peer} has ended, and its planes "
                    "will not arrive; see what that rank and the system's log report (a process "
                    "that needs too much memory is killed); --restart auto continues from the last "
                    "checkpoint"
                )


def own_gpus(way: str, comm: Communicator, device: Device) -> list[str]:
    """The identities of the GPUs of all ranks, each of which has its own. Collective.

    Raises CaseError if a device is not used through CUDA, or if ranks share one.
    """
    if device.kind != "cuda":
        why = "the ranks run on CPUs; use 'auto', 'direct' or 'staged'"
        if device.opaque:
            why = f"{device.kind} has no CUDA streams; use 'auto' or 'staged'"
        raise CaseError(f"'{way}' sends from GPU to GPU, and {why}", "halo.name")
    identities = comm.allgather(device.identity)
    if shared := backends.shared_devices(identities):
        found = "; ".join(shared)
        raise CaseError(
            f"'{way}' takes one GPU per rank: {found}, or use 'direct' or 'staged'", "halo.name"
        )
    return identities


def arrives(
    prepare: Callable[[Plan, Sequence[Any]], Exchange], slab: Slab, comm: Communicator, device: Any
) -> bool:
    """Whether both neighbours' bytes arrive on this rank in one exchange. Collective.

    `prepare(plan, arrays)` makes the exchange. An MpilbmError on one rank is raised on all.
    """
    values = np.zeros((3, SIZE), np.uint8)  # from below, own, from above
    values[1] = pattern(SIZE, slab.rank)
    array = device.upload(values.ravel())
    sends, receives = (
        tuple(Transfer(side, 0, SIZE * place(side), SIZE) for side in (1, -1))
        for place in (lambda side: 1, lambda side: 1 + side)
    )

    def run() -> None:
        prepare(Plan(sends, receives), [array]).start()
        device.synchronize()

    together(comm, run, waits=True)  # afterwards all ranks have sent
    below, _, above = device.download(array).reshape(3, SIZE)
    return all(
        peer is None or np.array_equal(found, pattern(SIZE, peer))
        for peer, found in ((slab.lower, below), (slab.upper, above))
    )
