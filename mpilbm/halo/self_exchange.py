"""A rank that is its own neighbour: copies within its arrays, in the order of a stream."""

from functools import partial

from mpilbm.halo import Exchange, Exchanger
from mpilbm.halo.plan import incoming, outgoing


class AloneExchange(Exchange):
    """What leaves through one face comes in by the other; the host waits for nothing."""

    in_streams = True

    def __init__(self, slab, device, plan, arrays):
        self._device, self._stream = device, device.stream("copy")
        sources = {message.tag: message.of(arrays) for message in outgoing(plan, slab)}
        self._copies = [
            (message.of(arrays), sources[message.tag]) for message in incoming(plan, slab)
        ]

    def start(self, ready=None) -> None:
        """Enqueue the copies."""
        if ready is not None:
            self._stream.wait(ready)
        for target, source in self._copies:
            self._device.copy(target, source, self._stream)

    def arrival(self):
        """Behind the copies."""
        return self._stream.record()


def exchanger(slab, device) -> Exchanger:
    """The exchanger of the only slab."""
    return Exchanger(partial(AloneExchange, slab, device))
