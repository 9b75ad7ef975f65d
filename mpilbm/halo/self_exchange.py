"""The halo exchange of a rank that is its own neighbour: copies in the order of a stream."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from mpilbm.backends import Device
from mpilbm.backends.interfaces import Event
from mpilbm.halo import Exchange, Exchanger
from mpilbm.halo.plan import Plan, incoming, outgoing
from mpilbm.parallel.slabs import Slab


class SelfExchange(Exchange):
    """Copies the planes at one face into the ghost planes of the other, asynchronously."""

    in_streams = True

    def __init__(self, slab: Slab, device: Device, plan: Plan, arrays: Sequence[Any]):
        self._device, self._stream = device, device.stream("copy")
        sources = {message.tag: message.of(arrays) for message in outgoing(plan, slab)}
        self._copies = [
            (message.of(arrays), sources[message.tag]) for message in incoming(plan, slab)
        ]

    def start(self, ready: Event | None = None) -> None:
        """Enqueue the copies."""
        if ready is not None:
            self._stream.wait(ready)
        for target, source in self._copies:
            self._device.copy(target, source, self._stream)

    def arrival(self) -> Event:
        """The event after the copies."""
        return self._stream.record()


def exchanger(slab: Slab, device: Device) -> Exchanger:
    """The exchanger of the only slab."""
    return Exchanger(partial(SelfExchange, slab, device))
