"""Spectra of a velocity that is distributed over ranks in slabs.

```
rank 0  planes 0, 1 | in_planes | columns: block 0, 2, … of all planes | along z | shells
rank 1  planes 2, 3 | in_planes |          block 1, 3, … of all planes | along z | shells
                    no messages | alltoall, a block a rank at a time               | gather
```
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import cast

import numpy as np

from mpilbm.outputs.spectra.shells import Real, Shells, Waves
from mpilbm.parallel.communicator import Communicator, MessagePassing

COLUMNS = 1024  # of a block; its shells are summed together, so the bits depend on this number

# The sums (rows, count) of columns begin..end in shells, and the columns that replace theirs; from
# columns (nz, end - begin) of each array, transformed along x and y only, begin and end
Evaluate = Callable[[Sequence[Waves], int, int], tuple[Real, Sequence[Waves]]]


def spectra(comm: Communicator, shells: Shells, local: Sequence[Waves]) -> Real | None:
    """Energy, squared gradient and enstrophy in shells, (3, count); see Shells.spectra, in_shells.

    `local`: for each component of u the result of `Shells.in_planes` for the planes of this rank.
    """

    def evaluate(columns: Sequence[Waves], begin: int, end: int) -> tuple[Real, Sequence[Waves]]:
        return shells.spectra([np.fft.fft(each, axis=0) for each in columns], begin, end), ()

    return in_shells(comm, shells, local, evaluate)


def in_shells(
    comm: Communicator,
    shells: Shells,
    local: Sequence[Waves],
    evaluate: Evaluate,
    results: Sequence[Waves] = (),
) -> Real | None:
    """The sums of `evaluate` over all columns on rank 0; None on the others. Collective.

    local    arrays (planes of this rank, columns), transformed along x and y
    results  arrays of the same shape that get the columns that `evaluate` returns; they may be
             those of `local`

    A block of columns is evaluated by one rank, and rank 0 adds the blocks in their order: the bits
    do not depend on the number of ranks.
    """
    starts = range(0, shells.columns, COLUMNS)
    found: list[tuple[int, Real]] = []
    for first in range(0, len(starts), comm.size):
        blocks = [(b, min(b + COLUMNS, shells.columns)) for b in starts[first : first + comm.size]]
        returned: Sequence[Waves] = ()
        columns = collect(comm, local, blocks)
        if columns is not None:
            begin, end = blocks[comm.rank]
            sums, returned = evaluate(columns, begin, end)
            found.append((begin, sums))
        if results:
            distribute(comm, results, blocks, returned)
    parts = comm.gather(found)
    if parts is None:
        return None
    summed = dict(each for of_rank in parts for each in of_rank)
    total = np.zeros_like(summed[0])
    for begin in starts:
        total += summed[begin]
    return total


def collect(
    comm: Communicator, local: Sequence[Waves], blocks: Sequence[tuple[int, int]]
) -> Sequence[Waves] | None:
    """All planes of this rank's block of columns, for each array; None without a block."""
    if comm.size == 1:
        return [each[:, slice(*blocks[0])] for each in local]
    sent: list[Waves | None] = [None] * comm.size
    for rank, (begin, end) in enumerate(blocks):
        sent[rank] = np.stack([each[:, begin:end] for each in local])
    received = cast(MessagePassing, comm).alltoall(sent)
    return list(np.concatenate(received, axis=1)) if comm.rank < len(blocks) else None


def distribute(
    comm: Communicator,
    results: Sequence[Waves],
    blocks: Sequence[tuple[int, int]],
    columns: Sequence[Waves],
) -> None:
    """The inverse of `collect`: this rank's columns, if it has a block, go to their planes."""
    if comm.size == 1:
        for each, values in zip(results, columns, strict=True):
            each[:, slice(*blocks[0])] = values
        return
    ends = np.cumsum([0, *comm.allgather(len(results[0]))])
    sent: list[Waves | None] = [None] * comm.size
    if comm.rank < len(blocks):
        stacked = np.stack(columns)
        sent = [stacked[:, begin:end] for begin, end in pairwise(ends)]
    received = cast(MessagePassing, comm).alltoall(sent)
    for (begin, end), values in zip(blocks, received, strict=False):
        for each, part in zip(results, values, strict=True):
            each[:, begin:end] = part
