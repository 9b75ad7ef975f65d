"""MPI gets the field's own memory: nothing is packed, nothing is copied."""

from functools import partial

import numpy as np

from mpilbm.halo import Exchange, Exchanger, Halo
from mpilbm.halo.plan import Plan, incoming, outgoing
from mpilbm.registry import register

# Exchanges that were broken off: MPI may still read and write their buffers.
_abandoned: list[Exchange] = []


class DirectExchange(Exchange):
    """Persistent requests on slices of the arrays; a rank that is its own neighbour copies."""

    def __init__(self, slab, comm, device, plan: Plan, arrays):
        self._device, self._stream = device, device.stream("copy")
        self._requests = []
        self._travelling = False
        sends = {message.tag: message for message in outgoing(plan, slab)}
        receives = {message.tag: message for message in incoming(plan, slab)}
        self._copies = [
            (message.of(arrays), sends[tag].of(arrays))
            for tag, message in receives.items()
            if message.peer == slab.rank
        ]
        for message in receives.values():
            if message.peer != slab.rank:
                buffer = self._to_receive(message.of(arrays)).view(np.uint8)
                self._requests.append(comm.Recv_init(buffer, message.peer, message.tag))
        for message in sends.values():
            if message.peer != slab.rank:
                buffer = self._to_send(message.of(arrays)).view(np.uint8)
                self._requests.append(comm.Send_init(buffer, message.peer, message.tag))

    def _to_send(self, piece):
        """The memory that MPI reads."""
        return piece

    def _to_receive(self, piece):
        """The memory that MPI writes."""
        return piece

    def start(self) -> None:
        """Start all requests, then copy what stays on this rank."""
        self._travelling = True
        if self._requests:
            type(self._requests[0]).Startall(self._requests)
        for target, source in self._copies:
            self._device.copy(target, source, self._stream)

    def finish(self) -> None:
        """Wait for all requests and copies."""
        if self._requests:
            type(self._requests[0]).Waitall(self._requests)
        self._stream.synchronize()
        self._travelling = False

    def free(self) -> None:
        """Free the requests; those of an exchange that an error broke off stay with MPI."""
        if self._travelling:
            _abandoned.append(self)
            return
        while self._requests:
            self._requests.pop().Free()


@register("halo", "direct")
class Direct(Halo):
    """MPI sends from and receives into the field; on GPUs MPI must take device memory."""

    def open(self, slab, comm, device) -> Exchanger:
        """The exchanger of this rank's slab."""
        return Exchanger(partial(DirectExchange, slab, comm, device))
