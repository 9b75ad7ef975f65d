"""MPI sends from and receives into the field's memory, without packing or copying."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mpilbm.backends import Device
from mpilbm.backends.interfaces import Event
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import register
from mpilbm.halo import Exchange, Exchanger, Halo, self_exchange
from mpilbm.halo.plan import Plan, incoming, outgoing
from mpilbm.parallel.slabs import Slab

if TYPE_CHECKING:
    from mpi4py.MPI import Comm, Prequest

# Exchanges interrupted by an error: MPI may still read and write their buffers.
_abandoned: list[Exchange] = []


class DirectExchange(Exchange):
    """Persistent requests on slices of the arrays.

    MPI does not use streams: the host waits for the edge planes and for the requests.
    """

    def __init__(self, slab: Slab, comm: "Comm", device: Device, plan: Plan, arrays: Sequence[Any]):
        self._device, self._started = device, False
        self._receives: list[Prequest] = []
        self._sends: list[Prequest] = []
        for message in incoming(plan, slab):
            buffer = self._to_receive(message.of(arrays)).view(np.uint8)
            self._receives.append(comm.Recv_init(buffer, message.peer, message.tag))
        for message in outgoing(plan, slab):
            buffer = self._to_send(message.of(arrays)).view(np.uint8)
            self._sends.append(comm.Send_init(buffer, message.peer, message.tag))
        self._requests = [*self._receives, *self._sends]

    def _to_send(self, piece: Any) -> Any:
        """The memory from which MPI sends."""
        return piece

    def _to_receive(self, piece: Any) -> Any:
        """The memory into which MPI receives."""
        return piece

    def start(self, ready: Event | None = None) -> None:
        """Wait until the planes are ready, then start all requests."""
        if ready is not None:
            self.wait(ready.synchronize)
        self._started = True
        if self._requests:
            type(self._requests[0]).Startall(self._requests)

    def arrival(self) -> Event | None:
        """Wait for all requests."""
        if self._requests:
            self.wait(type(self._requests[0]).Waitall, self._requests)
        self._started = False
        return None

    def free(self) -> None:
        """Free the requests, except those that an error has interrupted."""
        if self._started:
            _abandoned.append(self)
            return
        while self._requests:
            self._requests.pop().Free()


@register("halo", "direct")
class Direct(Halo):
    """MPI sends from and receives into the field; on GPUs MPI must accept device memory."""

    def open(self, slab: Slab, comm: Any, device: Device) -> Exchanger:
        """The exchanger of this rank's slab."""
        if comm.size == 1:
            return self_exchange.exchanger(slab, device)
        if device.opaque:
            raise CaseError(
                f'"direct" needs arrays with an address, {device.kind} has none; '
                'set halo.name = "staged" or "auto"',
                where="halo.name",
            )
        return Exchanger(partial(DirectExchange, slab, comm, device))
