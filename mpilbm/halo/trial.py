"""A trial exchange: whether the bytes that ranks send to their neighbours arrive unchanged."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mpilbm.halo import Exchange
from mpilbm.halo.plan import Plan, Transfer
from mpilbm.parallel.agree import together
from mpilbm.parallel.communicator import Communicator
from mpilbm.parallel.gpu_probe import pattern
from mpilbm.parallel.slabs import Slab

SIZE = 1 << 16  # bytes to each neighbour


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
