"""Messages by MPI: from and into the memory of the field, or through host memory."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mpilbm.backends import Device
from mpilbm.backends.interfaces import Array, Event
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import register
from mpilbm.halo import Exchange, Exchanger, Halo, Plan, incoming, outgoing
from mpilbm.halo.local import alone
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
            return alone(slab, device)
        if device.opaque:
            raise CaseError(
                f'"direct" needs arrays with an address, {device.kind} has none; '
                'set halo.name = "staged" or "auto"',
                where="halo.name",
            )
        return Exchanger(partial(DirectExchange, slab, comm, device))


class StagedExchange(DirectExchange):
    """MPI uses pinned host buffers: pieces are copied to the host before they are sent, and to the
    device after they are received.

    ```
    edge stream  | edge kernels |ready                              arrived| next edge kernels …
    copy stream                 | out 1 | out 2 |        | in 1 |   | in 2 |
    host, MPI                           | 1 …   | 2 …    |      |   |
    messages                            |==1=============|      |   |
                                                |==2================|
    bulk stream  | bulk kernel ...............................|            | next lists …
    ```

    The host waits for each copy out and for each message, but not for the copies in: the kernels
    that read the pieces wait for these copies on the device.
    """

    def __init__(self, slab: Slab, comm: "Comm", device: Device, plan: Plan, arrays: Sequence[Any]):
        self._out: list[tuple[np.ndarray, Array]] = []  # (host, device)
        self._in: list[tuple[Array, np.ndarray]] = []  # (device, host)
        self._arrived: Event | None = None
        super().__init__(slab, comm, device, plan, arrays)
        self._stream = device.stream("copy")

    def _to_send(self, piece: Array) -> np.ndarray:
        self._out.append((self._device.pinned(piece.size, piece.dtype), piece))
        return self._out[-1][0]

    def _to_receive(self, piece: Array) -> np.ndarray:
        self._in.append((piece, self._device.pinned(piece.size, piece.dtype)))
        return self._in[-1][1]

    def start(self, ready: Event | None = None) -> None:
        """Enqueue the copies out; start all receives, and each send after its copy."""
        if ready is not None:
            self._stream.wait(ready)
        copied = [self._copied(*each) for each in self._out]
        if self._arrived is not None:  # the previous copies in have read their buffers
            self.wait(self._arrived.synchronize)
        self._started = True
        for request in self._receives:
            request.Start()
        for request, done in zip(self._sends, copied, strict=True):
            self.wait(done.synchronize)
            request.Start()

    def arrival(self) -> Event:
        """Enqueue the copy in of each message as it arrives; the event after the copies."""
        for _ in self._receives:
            arrived = self.wait(type(self._receives[0]).Waitany, self._receives)
            self._device.copy(*self._in[arrived], self._stream)
        if self._sends:
            self.wait(type(self._sends[0]).Waitall, self._sends)
        self._started = False
        self._arrived = self._stream.record()
        return self._arrived

    def _copied(self, target: np.ndarray, source: Array) -> Event:
        """The event after a copy."""
        self._device.copy(target, source, self._stream)
        return self._stream.record()


@register("halo", "staged")
class Staged(Halo):
    """Planes travel through host memory: works with every MPI."""

    def open(self, slab: Slab, comm: Any, device: Device) -> Exchanger:
        """The exchanger of this rank's slab."""
        if comm.size == 1:
            return alone(slab, device)
        return Exchanger(partial(StagedExchange, slab, comm, device))
