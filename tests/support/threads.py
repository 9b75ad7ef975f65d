"""Ranks as threads of one process that count what they send: for laws on the number of ranks."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier


class Rank:
    """A communicator; `calls`: collective calls, `sent`: bytes of the values given to them."""

    def __init__(self, rank, size, slots, barrier):
        self.rank, self.size, self.calls, self.sent = rank, size, 0, 0
        self._slots, self._barrier = slots, barrier

    def _share(self, value, counted=True):
        self.calls += 1
        self.sent += len(pickle.dumps(value)) if counted else 0
        self._slots[self.rank] = value
        self._barrier.wait(60)

    def _shared(self, value):
        self._barrier.wait(60)  # all have taken what they need
        return value

    def allgather(self, value):
        self._share(value)
        return self._shared(list(self._slots))

    def gather(self, value, root=0):
        self._share(value)
        return self._shared(list(self._slots) if self.rank == root else None)

    def bcast(self, value, root=0):
        self._share(value, self.rank == root)
        return self._shared(self._slots[root])

    def barrier(self):
        self._share(None)
        self._shared(None)


def on_ranks(size, work):
    """`work(comm)` on `size` threads; the communicators, and the results."""
    slots, barrier = [None] * size, Barrier(size)
    comms = [Rank(k, size, slots, barrier) for k in range(size)]

    def run(comm):
        try:
            return work(comm)
        except BaseException:
            barrier.abort()  # the others do not wait for this one
            raise

    with ThreadPoolExecutor(size) as pool:
        return comms, list(pool.map(run, comms))
