"""Messages through host memory, for an MPI that does not take the device's."""

from functools import partial

from mpilbm.halo import Exchanger, Halo, self_exchange
from mpilbm.halo.direct import DirectExchange
from mpilbm.registry import register


class StagedExchange(DirectExchange):
    """Pinned host buffers stand in for the pieces: copied out before, copied in after.

    ```
    edge stream  | edge kernels |ready                              arrived| next edge kernels …
    copy stream                 | out 1 | out 2 |        | in 1 |   | in 2 |
    host, MPI                           | 1 …   | 2 …    |      |   |
    messages                            |==1=============|      |   |
                                                |==2================|
    bulk stream  | bulk kernel ...............................|            | next lists …
    ```

    The host waits for each copy out and for each message, but not for the copies in: the kernels
    that read these wait for them on the device.
    """

    def __init__(self, slab, comm, device, plan, arrays):
        self._out, self._in, self._arrived = [], [], None
        super().__init__(slab, comm, device, plan, arrays)
        self._stream = device.stream("copy")

    def _to_send(self, piece):
        self._out.append((self._device.pinned(piece.size, piece.dtype), piece))
        return self._out[-1][0]

    def _to_receive(self, piece):
        self._in.append((piece, self._device.pinned(piece.size, piece.dtype)))
        return self._in[-1][1]

    def start(self, ready=None) -> None:
        """Enqueue the copies out; start all receives, and each send once its copy is there."""
        if ready is not None:
            self._stream.wait(ready)
        copied = [self._copied(*each) for each in self._out]
        if self._arrived is not None:  # the copies in of the last time have left their buffers
            self.wait(self._arrived.synchronize)
        self._travelling = True
        for request in self._receives:
            request.Start()
        for request, done in zip(self._sends, copied, strict=True):
            self.wait(done.synchronize)
            request.Start()

    def arrival(self):
        """Enqueue the copy in of each message as it comes; the event behind them."""
        for _ in self._receives:
            come = self.wait(type(self._receives[0]).Waitany, self._receives)
            self._device.copy(*self._in[come], self._stream)
        if self._sends:
            self.wait(type(self._sends[0]).Waitall, self._sends)
        self._travelling = False
        self._arrived = self._stream.record()
        return self._arrived

    def _copied(self, target, source):
        """The event behind a copy."""
        self._device.copy(target, source, self._stream)
        return self._stream.record()


@register("halo", "staged")
class Staged(Halo):
    """Planes travel through host memory: works with every MPI."""

    def open(self, slab, comm, device) -> Exchanger:
        """The exchanger of this rank's slab."""
        if comm.size == 1:
            return self_exchange.exchanger(slab, device)
        return Exchanger(partial(StagedExchange, slab, comm, device))
