"""Messages through host memory, for an MPI that does not accept device memory."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mpilbm.backends import Device
from mpilbm.backends.interfaces import Array, Event
from mpilbm.core.registry import register
from mpilbm.halo import Exchanger, Halo, self_exchange
from mpilbm.halo.direct import DirectExchange
from mpilbm.halo.plan import Plan
from mpilbm.parallel.slabs import Slab

if TYPE_CHECKING:
    from mpi4py.MPI import Comm


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
            return self_exchange.exchanger(slab, device)
        return Exchanger(partial(StagedExchange, slab, comm, device))
