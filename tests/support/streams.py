"""A flow and communicators for tests of the order of work in streams."""

import threading
from types import SimpleNamespace

from mpilbm.core.registry import make
from support.settings import tables


def flow(layout, setting):
    collision = "trt" if make("layouts", layout).populations else "regularized"
    return tables("D2Q9", layout, collision, setting, "single")


def comm(identities=(), rank=1):
    return SimpleNamespace(
        rank=rank, size=2, bcast=lambda value: value or (7,) * 128, Barrier=lambda: None,
        allgather=lambda value: list(identities),
    )  # fmt: skip


class Threads:
    """Ranks that are threads, with the calls of a communicator that exchanges make."""

    def __init__(self, ranks, patience):
        self.ranks, self._said = ranks, [None] * ranks
        self._barrier = threading.Barrier(ranks, timeout=patience)

    def comm(self, rank, before=lambda: None):
        """The communicator of a rank, which calls `before()` before it waits for the others."""

        def allgather(value):
            before()
            self._said[rank] = value
            self._barrier.wait()
            found = list(self._said)
            self._barrier.wait()
            return found

        return SimpleNamespace(
            rank=rank, size=self.ranks, allgather=allgather, Barrier=self._barrier.wait
        )
