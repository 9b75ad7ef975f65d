"""Exchanges of slabs in threads of one process."""

from collections.abc import Sequence
from functools import partial
from queue import Empty, Queue
from typing import Any

from mpilbm.backends import Device
from mpilbm.backends.interfaces import Event
from mpilbm.halo import Exchange, Exchanger, Plan, incoming, outgoing
from mpilbm.parallel.slabs import Slab

GATHERED = -1  # the tag of values for all slabs


class LocalWorld:
    """The mailboxes of slabs of one process, each of which runs in its own thread.

    A slab waits at most `patience` seconds for a message, which may not have been sent yet.
    """

    def __init__(self, ranks: int, patience: float = 60.0):
        self.ranks, self.patience = ranks, patience
        self._mail: dict[tuple[int, int, int], Queue] = {}

    def box(self, sender: int, receiver: int, tag: int) -> Queue:
        """The mailbox of one message, created at first use."""
        return self._mail.setdefault((sender, receiver, tag), Queue())

    def exchanger(self, rank: int, slab: Slab, device: Device) -> Exchanger:
        """The exchanger of slab `rank`."""
        if slab.rank != rank or slab.ranks != self.ranks:
            raise ValueError(f"slab {slab.rank} of {slab.ranks} is not slab {rank} of {self.ranks}")
        exchanger = Exchanger(partial(LocalExchange, self, slab, device))
        exchanger.allgather = partial(self._allgather, rank)
        return exchanger

    def _allgather(self, rank: int, value: Any) -> list[Any]:
        """The values of all slabs."""
        for other in range(self.ranks):
            self.box(rank, other, GATHERED).put(value)
        others = (self.box(other, rank, GATHERED) for other in range(self.ranks))
        return [box.get(timeout=self.patience) for box in others]


class LocalExchange(Exchange):
    """Copies to mailboxes at start(), from mailboxes at arrival()."""

    def __init__(
        self, world: LocalWorld, slab: Slab, device: Device, plan: Plan, arrays: Sequence[Any]
    ):
        self._world, self._device, self._rank = world, device, slab.rank
        self._sends = [
            (message, piece, device.pinned(piece.size, piece.dtype))
            for message in outgoing(plan, slab)
            for piece in [message.of(arrays)]
        ]
        self._receives = [(message, message.of(arrays)) for message in incoming(plan, slab)]

    def start(self, ready: Event | None = None) -> None:
        """Put a copy of each piece into its mailbox."""
        if ready is not None:
            ready.synchronize()
        copies, sent = self._device.stream("copy"), []
        for message, piece, host in self._sends:
            self._device.copy(host, piece, copies)
            sent.append((self._world.box(self._rank, message.peer, message.tag), host))
        copies.synchronize()
        for box, host in sent:
            box.put(host.copy())

    def arrival(self) -> None:
        """Take the neighbours' pieces; RuntimeError if one is missing or of another size."""
        copies = self._device.stream("copy")
        for message, piece in self._receives:
            box = self._world.box(message.peer, self._rank, message.tag)
            try:
                host = box.get(timeout=self._world.patience)
            except Empty:
                host = None
            if host is None or host.size != piece.size:
                found = "nothing" if host is None else f"{host.size} values"
                raise RuntimeError(
                    f"slab {self._rank} awaits {piece.size} values of slab {message.peer} and "
                    f"finds {found}: the slabs do not exchange by matching plans"
                )
            self._device.copy(piece, host, copies)
        copies.synchronize()
