"""Arrays of a device that follow the time: the host tells them anew every step, and waits not."""

import numpy as np

from mpilbm.solver.graph_replay import LEAD

ROOM_BYTES = 2**26


class Told:
    """`target`, a 1-D array of the device, filled with `values(t)` in the order of a stream.

    ```
    host      | values 0 | … | values 1 | …     | values n (copy 0 is done)
    stream               | copy 0 | lists, step … | copy 1 | lists, step …
    ```

    The values wait in pinned memory of the host. There is room for those of all steps by which the
    host may lead (see replay.Lead), but for values of megabytes, where it may have to wait for the
    oldest copy.
    """

    def __init__(self, device, stream, target, values):
        self._device, self._stream, self._target, self._values = device, stream, target, values
        self._room: list[tuple] = []  # (event behind the copy, memory of the host)
        self._rooms = min(2 * LEAD, max(2, ROOM_BYTES // max(1, target.nbytes)))
        self._count = 0

    def tell(self, t: float) -> None:
        """Enqueue the values at time t."""
        k, target = self._count % self._rooms, self._target
        if k == len(self._room):
            self._room.append((None, self._device.pinned(target.size, target.dtype)))
        copied, host = self._room[k]
        if copied is not None:
            copied.synchronize()
        host[:] = np.reshape(self._values(t), -1)
        self._device.copy(target, host, self._stream)
        self._room[k] = self._stream.record(), host
        self._count += 1
