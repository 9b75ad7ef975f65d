"""Exchanges without MPI: of a rank that is its own neighbour."""

from collections.abc import Sequence
from functools import partial
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
        return alone(slab, device)
