"""Messages through host memory, for an MPI that does not take the device's."""

from functools import partial

from mpilbm.halo import Exchanger, Halo
from mpilbm.halo.direct import DirectExchange
from mpilbm.registry import register


class StagedExchange(DirectExchange):
    """Pinned host buffers stand in for the pieces: copied out before, copied in after.

    ```
    edge stream  | edge kernels |                                   | next step …
    copy stream                 | out |                        | in |
    messages                          |=== buffers travel ===|
    bulk stream  | bulk kernel ...............................|
    ```
    """

    def __init__(self, slab, comm, device, plan, arrays):
        self._out, self._in = [], []
        super().__init__(slab, comm, device, plan, arrays)

    def _to_send(self, piece):
        self._out.append((self._device.pinned(piece.size, piece.dtype), piece))
        return self._out[-1][0]

    def _to_receive(self, piece):
        self._in.append((piece, self._device.pinned(piece.size, piece.dtype)))
        return self._in[-1][1]

    def start(self) -> None:
        """Copy out, wait for that, start the requests."""
        for host, piece in self._out:
            self._device.copy(host, piece, self._stream)
        self._stream.synchronize()
        super().start()

    def finish(self) -> None:
        """Wait for the requests, copy in, wait for that."""
        super().finish()
        for piece, host in self._in:
            self._device.copy(piece, host, self._stream)
        self._stream.synchronize()


@register("halo", "staged")
class Staged(Halo):
    """Planes travel through host memory: works with every MPI."""

    def open(self, slab, comm, device) -> Exchanger:
        """The exchanger of this rank's slab."""
        return Exchanger(partial(StagedExchange, slab, comm, device))
