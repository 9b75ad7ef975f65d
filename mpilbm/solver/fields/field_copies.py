"""Fields of a slab on their way from the device to the host, behind the steps that follow."""

from collections import deque
from collections.abc import Iterable
from contextlib import contextmanager
from queue import Empty, SimpleQueue

from mpilbm.solver.fields.diagnostics import Diagnostics


class FieldCopies:
    """Blocks of planes, computed into the device's memory and copied to the host by themselves.

    ```
    bulk stream   | last step | block 0 | block 1 | … | next steps …
    own stream                          | copy 0 | copy 1 | …
    any thread                                   | `with copy as fields:` 0 | 1 | …
    host          | start 0, 1, …     | computed() | next steps …
    ```

    Memory is bounded: of the device what a quarter of its free memory holds, of the host
    `host_bytes`, but two blocks at least. Where all is in use `start` waits: for the oldest copy,
    and for a thread that is done with its block.
    """

    def __init__(
        self, diagnostics: Diagnostics, names: Iterable[str], planes: int, host_bytes: int
    ):
        self.diagnostics, self.device = diagnostics, diagnostics.device
        self.names, self.planes = diagnostics.made_for(names), planes
        self.stream = self.device.new_stream()
        self.copied: deque[tuple] = deque()  # (event, arrays of the device), the oldest first
        self.free: SimpleQueue = SimpleQueue()  # arrays of the host that nobody needs
        values = planes * sum(map(diagnostics.values, self.names))
        block_bytes = values * diagnostics.dtype.itemsize
        self.left_of_host = max(2, host_bytes // block_bytes)
        self.left_of_device = max(2, diagnostics.spare_bytes // 4 // block_bytes)

    def start(self, begin: int, end: int):
        """Enqueue computing and copying planes begin..end; for the thread of the solver.

        Returns a context manager: entered in any thread it waits, gives the fields by name, and
        takes them back on leaving. It must be left for its memory to serve again.
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
    def _copy(self, event, host, begin, end):
        try:
            self.device.attach()
            event.synchronize()
            yield self.diagnostics.shaped(self._part(host, end - begin), begin, end)
        finally:
            self.free.put(host)

    def _part(self, arrays: dict, planes: int) -> dict:
        """What so many planes take of the arrays of a block."""
        values = self.diagnostics.values
        return {name: array[: planes * values(name)] for name, array in arrays.items()}

    def computed(self) -> None:
        """Wait until the device has computed all that was started; copying may go on."""
        self.device.stream("bulk").synchronize()

    def _of_device(self) -> dict:
        """Arrays of the device for a block: those of the oldest copy if it is done, or new ones."""
        if self.copied and (self.copied[0][0].done or not self.left_of_device):
            event, arrays = self.copied.popleft()
            event.synchronize()
            return arrays
        self.left_of_device -= 1
        return self.diagnostics.arrays(self.names, self.planes)

    def _of_host(self) -> dict:
        """Arrays of the host for a block: free ones, new ones, or the next that become free."""
        try:
            return self.free.get_nowait()
        except Empty:
            if not self.left_of_host:
                return self.free.get()
        self.left_of_host -= 1
        values, dtype = self.diagnostics.values, self.diagnostics.dtype
        return {n: self.device.pinned(self.planes * values(n), dtype) for n in self.names}
