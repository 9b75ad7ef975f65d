"""MPI gets the field's own memory: nothing is packed, nothing is copied."""

from functools import partial

import numpy as np

from mpilbm.halo import Exchange, Exchanger, Halo, self_exchange
from mpilbm.halo.plan import Plan, incoming, outgoing
from mpilbm.registry import register

# Exchanges that were broken off: MPI may still read and write their buffers.
_abandoned: list[Exchange] = []


class DirectExchange(Exchange):
    """Persistent requests on slices of the arrays.

    MPI knows no streams: the host waits for the edge planes, and for the requests.
    """

    def __init__(self, slab, comm, device, plan: Plan, arrays):
        self._device, self._travelling = device, False
        self._receives, self._sends = [], []
        for message in incoming(plan, slab):
            buffer = self._to_receive(message.of(arrays)).view(np.uint8)
            self._receives.append(comm.Recv_init(buffer, message.peer, message.tag))
        for message in outgoing(plan, slab):
            buffer = self._to_send(message.of(arrays)).view(np.uint8)
            self._sends.append(comm.Send_init(buffer, message.peer, message.tag))
        self._requests = [*self._receives, *self._sends]

    def _to_send(self, piece):
        """The memory that MPI reads."""
        return piece

    def _to_receive(self, piece):
        """The memory that MPI writes."""
        return piece

    def start(self, ready=None) -> None:
        """Wait for what is to be sent, then start all requests."""
        if ready is not None:
            self.wait(ready.synchronize)
        self._travelling = True
        if self._requests:
            type(self._requests[0]).Startall(self._requests)

    def arrival(self):
        """Wait for all requests."""
        if self._requests:
            self.wait(type(self._requests[0]).Waitall, self._requests)
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
        if comm.size == 1:
            return self_exchange.exchanger(slab, device)
        return Exchanger(partial(DirectExchange, slab, comm, device))
