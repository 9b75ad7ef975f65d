"""Exchanges without MPI: of a rank that is its own neighbour, and of slabs in threads for tests."""

from collections.abc import Sequence
from functools import partial
from queue import Empty, Queue
from typing import Any

from mpilbm.backends import Device
from mpilbm.backends.interfaces import Event
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import register
from mpilbm.halo import Exchange, Exchanger, Halo, Plan, incoming, outgoing
from mpilbm.parallel import Communicator
from mpilbm.parallel.slabs import Slab


class SelfExchange(Exchange):
    """Copies the planes at one face into the ghost planes of the other, asynchronously.

    Fields whose addresses wrap around along planes (Grid.wraps) have an empty plan: no copies.

    The copies are distributed over two streams: in small boxes, those of the two faces would take
    longer one after the other than the kernel over the bulk planes.
    """

    in_streams = True

    def __init__(self, slab: Slab, device: Device, plan: Plan, arrays: Sequence[Any]):
        self._device, self._streams = device, (device.stream("edge"), device.stream("copy"))
        sources = {message.tag: message.of(arrays) for message in outgoing(plan, slab)}
        self._copies = [
            (message.of(arrays), sources[message.tag]) for message in incoming(plan, slab)
        ]

    def start(self, ready: Event | None = None) -> None:
        """Enqueue the copies."""
        if ready is not None:
            for stream in self._streams:
                stream.wait(ready)
        for k, (target, source) in enumerate(self._copies):
            self._device.copy(target, source, self._streams[k % 2])

    def arrival(self) -> Event:
        """The event after the copies."""
        first, second = self._streams
        first.wait(second.record())
        return first.record()


def alone(slab: Slab, device: Device) -> Exchanger:
    """The exchanger of the only slab."""
    return Exchanger(partial(SelfExchange, slab, device))


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
        return Exchanger(partial(LocalExchange, self, slab, device))


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


@register("halo", "local")
class Local(Halo):
    """One process, no MPI: one rank only."""

    def open(self, slab: Slab, comm: Communicator, device: Device) -> Exchanger:
        """The exchanger of the only slab; CaseError with more than one rank."""
        if comm.size > 1:
            raise CaseError(
                f"'local' does not reach other processes and there are {comm.size} ranks; "
                "use 'auto', 'direct', 'staged' or, on GPUs, 'nccl' and 'cuda_ipc'",
                "halo.name",
            )
        return LocalWorld(1).exchanger(0, slab, device)
