"""Spectra of a velocity that is distributed over ranks in slabs.

```
rank 0  planes 0, 1 | in_planes | columns: block 0, 2, … of all planes | along z | shells
rank 1  planes 2, 3 | in_planes |          block 1, 3, … of all planes | along z | shells
                    no messages | alltoall, a block a rank at a time               | gather
```
"""

from collections.abc import Sequence
from typing import cast

import numpy as np

from mpilbm.outputs.spectra.shells import Real, Shells, Waves
from mpilbm.parallel.communicator import Communicator, MessagePassing

COLUMNS = 1024  # of a block; its shells are summed together, so the bits depend on this number


def spectra(comm: Communicator, shells: Shells, local: Sequence[Waves]) -> Real | None:
    """Energy and enstrophy in shells, (2, count), on rank 0; None on the others. Collective.

    `local`: for each component of u the result of `Shells.in_planes` for the planes of this rank.
    A block of columns is summed by one rank, and rank 0 adds the blocks in their order: the bits do
    not depend on the number of ranks.
    """
    starts = range(0, shells.columns, COLUMNS)
    found: list[tuple[int, Real]] = []
    for first in range(0, len(starts), comm.size):
        blocks = [(b, min(b + COLUMNS, shells.columns)) for b in starts[first : first + comm.size]]
        columns = collect(comm, local, blocks)
        if columns is not None:
            begin, end = blocks[comm.rank]
            found.append((begin, shells.spectra(columns, begin, end)))
    parts = comm.gather(found)
    if parts is None:
        return None
    total = np.zeros((2, shells.count))
    summed = dict(each for of_rank in parts for each in of_rank)
    for begin in starts:
        total += summed[begin]
    return total


def collect(
    comm: Communicator, local: Sequence[Waves], blocks: Sequence[tuple[int, int]]
) -> Sequence[Waves] | None:
    """All planes of this rank's block of columns, for each component; None without a block."""
    if comm.size == 1:
        return [each[:, slice(*blocks[0])] for each in local]
    sent: list[Waves | None] = [None] * comm.size
    for rank, (begin, end) in enumerate(blocks):
        sent[rank] = np.stack([each[:, begin:end] for each in local])
    received = cast(MessagePassing, comm).alltoall(sent)
    return list(np.concatenate(received, axis=1)) if comm.rank < len(blocks) else None
