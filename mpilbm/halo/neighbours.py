"""Checks whether the processes of the neighbouring ranks on this node are still running."""

import os
from pathlib import Path

from mpilbm.core.errors import MpilbmError
from mpilbm.parallel.communicator import Communicator
from mpilbm.parallel.slabs import Slab

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
