"""Asynchronous copies of small device arrays to the host, for numbers that are needed later."""

from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike

from mpilbm.backends import Device
from mpilbm.backends.interfaces import Array, Event


class HostCopies:
    """Copies of device arrays of `count` numbers, in the order of the bulk stream.

    ```
    bulk stream   | steps | sums 1 | copy 1 | steps | sums 2 | copy 2 | steps …
    host          | enqueue … ahead of the device .........| read 1 | …
    ```

    The device does not wait for the host, and the host waits only in `read`. Each copy that has not
    been read yet has a buffer in pinned host memory.
    """

    def __init__(self, device: Device, count: int, kind: DTypeLike = "float64"):
        self._device, self._count, self._kind = device, count, kind
        self._stream = device.stream("bulk")
        self._free: list[np.ndarray] = []

    def start(self, array: Array) -> "HostCopy":
        """Enqueue a copy of this array, which may be overwritten by work that is enqueued later."""
        buffer = self._free.pop() if self._free else self._device.pinned(self._count, self._kind)
        self._device.copy(buffer, array, self._stream)
        return HostCopy(self._stream.record(), buffer, self._free.append)


class HostCopy:
    """One copy; the buffer is free again when it has been read."""

    def __init__(self, event: Event, buffer: np.ndarray, release: Callable[[np.ndarray], None]):
        self._event, self._buffer, self._release = event, buffer, release
        self._values: np.ndarray | None = None

    def read(self) -> np.ndarray:
        """The numbers; waits until the device has copied them."""
        if self._values is None:
            self._event.synchronize()
            self._values = self._buffer.copy()
            self._release(self._buffer)
        return self._values
