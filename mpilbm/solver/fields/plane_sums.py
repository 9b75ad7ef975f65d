"""Sums over each plane of a slab, which the device computes behind the steps, and their copies."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from mpilbm.backends import Device
from mpilbm.backends.interfaces import Array
from mpilbm.solver.flow_state import FlowState, StateLaunch

Read = Callable[[], np.ndarray]  # waits for numbers of the device


class HostCopies:
    """Copies of small device arrays to the host, of a given shape, in the order of the bulk stream.

    ```
    bulk stream   | steps | sums 1 | copy 1 | steps | sums 2 | copy 2 | steps …
    host          | enqueue … ahead of the device .........| read 1 | …
    ```

    The device does not wait for the host, and the host waits only when it reads. Each copy that has
    not been read yet has a buffer in pinned host memory.
    """

    def __init__(self, device: Device, shape: tuple[int, ...], kind: DTypeLike = "float64"):
        self._device, self._shape, self._kind = device, shape, kind
        self._stream = device.stream("bulk")
        self._free: list[np.ndarray] = []

    def start(self, array: Array) -> Read:
        """Enqueue a copy of this array; the result waits for it, and returns the numbers."""
        new = int(np.prod(self._shape)), self._kind
        buffer = self._free.pop() if self._free else self._device.pinned(*new)
        self._device.copy(buffer, array, self._stream)
        copied = self._stream.record()

        @cache
        def read() -> np.ndarray:
            copied.synchronize()
            values = buffer.reshape(self._shape).copy()
            self._free.append(buffer)
            return values

        return read


class PlaneSums:
    """Sums over the rows of each plane, in their order, of the sums that a kernel computes of rows.

    In double precision; a plane belongs to one slab, so they do not depend on the number of ranks.
    `largest`: the columns that are maxima; `arguments`: those of the kernel.
    """

    def __init__(
        self,
        state: FlowState,
        kernel: str,
        columns: int,
        largest: Iterable[int] = (),
        **arguments: Any,
    ):
        device, slab = state.context.device, state.context.slab
        self._bulk, self._planes, rows = state.context.bulk, slab.planes, slab.shape[1]
        self._state, self._kernel, count = state, kernel, slab.planes * columns
        self._row_sums = device.allocate(count * rows, "float64")
        self._sums = device.allocate(count, "float64")
        self._copies = HostCopies(device, (slab.planes, columns))
        given = {"row_sums": self._row_sums, "sum": self._sums, "rows": rows, "columns": columns}
        given["maxima"] = device.upload(np.isin(np.arange(columns), list(largest)).astype(np.int32))
        self._add = state.context.bind("plane_sums", **given)
        self.enqueue = self.bound(**arguments)

    def bound(self, **arguments: Any) -> StateLaunch:
        """The kernel that computes the sums of rows, with these arguments."""
        return StateLaunch(self._state, self._kernel, sums=self._row_sums, **arguments)

    def start(self) -> Read:
        """Enqueue the sums over the rows, and their copy to the host, (planes, columns)."""
        self._add(self._bulk, 0, self._planes)
        return self._copies.start(self._sums)
