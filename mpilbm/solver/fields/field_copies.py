"""Asynchronous copies of a slab's fields to the host, overlapped with the following steps."""

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from queue import Empty, SimpleQueue

import numpy as np

from mpilbm.backends.interfaces import Event
from mpilbm.solver.fields.diagnostics import Diagnostics


class FieldCopies:
    """Blocks of planes, computed into device memory and copied to the host asynchronously.

    ```
    bulk stream   | last step | block 0 | block 1 | … | next steps …
    own stream                          | copy 0 | copy 1 | …
    any thread                                   | `with copy as fields:` 0 | 1 | …
    host          | start 0, 1, …     | computed() | next steps …
    ```

    The blocks take at most a quarter of the free memory of the device and `host_bytes` of the host,
    but there are at least two of each. If all are in use, `start` waits for the oldest copy, or for
    a thread to release a block of the host.
    """

    def __init__(
        self, diagnostics: Diagnostics, names: Iterable[str], planes: int, host_bytes: int
    ):
        self.diagnostics, self.device = diagnostics, diagnostics.device
        self.names, self.planes = diagnostics.made_for(names), planes
        self.stream = self.device.new_stream()
        self.copied: deque[tuple] = deque()  # (event, device arrays), oldest first
        self.free: SimpleQueue = SimpleQueue()  # host arrays that are not in use
        values = planes * sum(map(diagnostics.values, self.names))
        block_bytes = values * diagnostics.dtype.itemsize
        self.left_of_host = max(2, host_bytes // block_bytes)
        self.left_of_device = max(2, diagnostics.spare_bytes // 4 // block_bytes)

    def start(self, begin: int, end: int) -> AbstractContextManager[dict[str, np.ndarray]]:
        """Enqueue computing and copying planes begin..end; call it in the thread of the solver.

        Returns a context manager: entered in any thread it waits and returns the fields by name,
        which must not be used after leaving it. Leaving it releases the memory.
        """
        diagnostics, bulk = self.diagnostics, self.device.stream("bulk")
        arrays, host = self._of_device(), self._of_host()
        source, target = (self._part(whole, end - begin) for whole in (arrays, host))
        diagnostics.enqueue(source, begin, end)
        self.stream.wait(bulk.record())
        for name in self.names:
            self.device.copy(target[name], source[name], self.stream)
        event = self.stream.record()
        bulk.flush()
        self.stream.flush()
        self.copied.append((event, arrays))
        return self._copy(event, host, begin, end)

    @contextmanager
    def _copy(
        self, event: Event, host: dict[str, np.ndarray], begin: int, end: int
    ) -> Iterator[dict[str, np.ndarray]]:
        try:
            self.device.attach()
            event.synchronize()
            yield self.diagnostics.shaped(self._part(host, end - begin), begin, end)
        finally:
            self.free.put(host)

    def _part(self, arrays: dict, planes: int) -> dict:
        """The part of the arrays of a block that so many planes use."""
        values = self.diagnostics.values
        return {name: array[: planes * values(name)] for name, array in arrays.items()}

    def computed(self) -> None:
        """Wait until the device has computed all started blocks; copies may still run."""
        self.device.stream("bulk").synchronize()

    def _of_device(self) -> dict:
        """Device arrays for a block: those of the oldest copy if it is done, or new ones."""
        if self.copied and (self.copied[0][0].done or not self.left_of_device):
            event, arrays = self.copied.popleft()
            event.synchronize()
            return arrays
        self.left_of_device -= 1
        return self.diagnostics.arrays(self.names, self.planes)

    def _of_host(self) -> dict:
        """Host arrays for a block: free ones, new ones, or the next that become free."""
        try:
            return self.free.get_nowait()
        except Empty:
            if not self.left_of_host:
                return self.free.get()
        self.left_of_host -= 1
        values, dtype = self.diagnostics.values, self.diagnostics.dtype
        return {n: self.device.pinned(self.planes * values(n), dtype) for n in self.names}
