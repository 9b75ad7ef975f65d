"""Whether a slab has enough planes for the threads of its rank, which share whole planes."""

from collections.abc import Sequence
from math import ceil

from mpilbm.case.model import Case
from mpilbm.core.units import counted
from mpilbm.model.findings import WARNING, Finding
from mpilbm.parallel.slabs import Slab

LEAST_BUSY = 0.75


def idle_threads(case: Case, slabs: Sequence[Slab]) -> list[Finding]:
    """A finding if threads wait for others for more than a quarter of a step."""
    threads = case.backend.workers()
    slab = min(slabs, key=lambda each: each.planes)
    faces = sum(peer is not None for peer in (slab.lower, slab.upper)) * (len(slabs) > 1)
    edges = min(slab.planes, faces * case.ghost)
    share = busy(slab.planes, edges, threads)
    if share >= LEAST_BUSY:
        return []
    enough = max(n for n in range(1, threads) if busy(slab.planes, edges, n) >= LEAST_BUSY)
    first = f", {edges} of them before the others" if edges else ""
    return [Finding(
        WARNING, "backend.threads",
        f"the {threads} threads of a rank share the {counted(slab.planes, 'plane')} of a slab"
        f"{first}, and are busy for {share:.0%} of a step at most; use {counted(enough, 'thread')} "
        "for each rank, or turn the box so that its longest side is the last",
    )]  # fmt: skip


def busy(planes: int, edges: int, threads: int) -> float:
    """The share of a step in which threads compute; `edges` planes are computed before the others.

    A thread computes whole planes. All planes are taken to be equal.
    """
    turns = ceil(edges / threads) + ceil((planes - edges) / threads)
    return planes / (threads * turns)
