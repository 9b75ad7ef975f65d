"""The memory through which values of the device reach files while the time steps continue."""

from collections import deque
from collections.abc import Callable
from threading import Condition
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from mpilbm.backends import Device
from mpilbm.backends.interfaces import Array, Event

BLOCK_BYTES = 16 << 20
ALIGNMENT = 256  # bytes; arrays in a block begin at multiples of it

Sizes = dict[str, tuple[int, DTypeLike]]  # number of values, and type, of the arrays in a block
Block = TypeVar("Block")


class Source(Protocol):
    """Values of the planes of a slab that the device can compute."""

    def sizes(self, planes: int, /) -> Sizes:
        """The arrays that so many planes need, by name."""

    def enqueue(self, arrays: dict[str, Array], begin: int, end: int, /) -> None:
        """Enqueue filling these arrays with the values of planes begin..end in the bulk stream."""

    def shaped(self, flat: dict[str, np.ndarray], begin: int, end: int, /) -> dict[str, np.ndarray]:
        """Host copies of these arrays with the shapes that files need."""


class Pool(Generic[Block]):
    """Blocks of memory that are allocated at first use and used again; for any threads.

    `changed`, which pools may share, is notified when a block is returned.
    """

    def __init__(self, allocate: Callable[[], Block], most: int, changed: Condition):
        self._allocate, self.most, self.made = allocate, most, 0
        self._free: deque[Block] = deque()
        self._changed = changed

    def available(self, most: int) -> bool:
        """Whether a block is not in use, or there are less than `most`."""
        return bool(self._free) or self.made < most

    def take(self, most: int) -> Block:
        """Wait until a block is available, and take it; others wait while it is allocated."""
        with self._changed:
            self._changed.wait_for(lambda: self.available(most))
            if self._free:
                return self._free.popleft()
            block = self._allocate()
            self.made += 1
            return block

    def put(self, block: Block) -> None:
        """Return a block that is no longer in use."""
        with self._changed:
            self._free.append(block)
            self._changed.notify_all()


class DeviceBlock(NamedTuple):
    """A block of device memory, and the event after which it may be overwritten."""

    array: Array
    read: Event | None = None


class Staging:
    """Blocks of memory on the device and on the host, for copies of states and fields.

    ```
    bulk stream   | last step | piece 0 | piece 1 | … | next steps …
    own stream                          | copy 0 | copy 1 | …
    threads                                      | `with piece as arrays:` 0 | 1 | …
    host          | start 0, 1, …       | next steps …
    ```

    A piece is computed into a block of the device in the order of the steps, and copied to a block
    of the host when a thread needs it. The host has `ahead` pinned blocks for this, because pinned
    memory is allocated slowly. If all blocks of the device are in use, `start` has the oldest piece
    copied at once, with up to `host_bytes` of host memory: the next steps then wait for the copies,
    and if the host has no more memory, also for the threads. Unified devices need no copies.

    The pieces are copied in the order in which they were started, and threads must enter them in
    this order, too: so every block of the host is held by a piece that a thread has entered or can
    enter next, and no thread waits for a piece behind its own.
    """

    def __init__(
        self, device: Device, block_bytes: int, device_bytes: int, host_bytes: int, ahead: int
    ):
        device.require(2 * block_bytes, "the copies for files that are written in the background")
        self.device, self.block_bytes = device, block_bytes
        self.bulk, self.stream = device.stream("bulk"), device.new_stream()
        most_of_host = max(2, host_bytes // block_bytes)
        self.ahead = min(ahead, most_of_host)
        self._changed = Condition()  # a block was returned, or a piece was copied to the host
        most, size = max(2, device_bytes // block_bytes), (block_bytes, np.uint8)
        self.on_device = Pool(lambda: DeviceBlock(device.allocate(*size)), most, self._changed)
        self.on_host = Pool(lambda: device.pinned(*size), most_of_host, self._changed)
        self._waiting: deque[Piece] = deque()  # pieces on the device, oldest first

    def planes(self, source: Source) -> int:
        """How many planes of a source fit into a block."""
        sizes = source.sizes(1)
        plane = sum(count * np.dtype(kind).itemsize for count, kind in sizes.values())
        return max(1, (self.block_bytes - ALIGNMENT * len(sizes)) // max(1, plane))

    @staticmethod
    def bytes_of(sizes: Sizes) -> int:
        """Bytes of a block with these arrays."""
        return sum(padded(count * np.dtype(kind).itemsize) for count, kind in sizes.values())

    def start(self, source: Source, begin: int, end: int) -> "Piece":
        """Enqueue computing planes begin..end; call it in the thread of the solver."""
        block = self._device_block()
        piece = Piece(self, source, (begin, end), block)
        if block.read is not None:
            self.bulk.wait(block.read)
        source.enqueue(piece.arrays(block.array), begin, end)
        piece.computed = self.bulk.record()
        self.bulk.flush()
        if self.device.unified:
            piece.host, piece.arrived = block.array, piece.computed
        else:
            with self._changed:
                self._waiting.append(piece)
        return piece

    def _device_block(self) -> DeviceBlock:
        """A block of the device; if none is left, one whose piece is copied to the host."""
        most = self.on_device.most
        if not self.device.unified:
            with self._changed:
                while not self.on_device.available(most):
                    self._copy_oldest(self.on_host.most)
        return self.on_device.take(most)

    def _copy_oldest(self, most: int) -> None:
        """Enqueue the copy of the oldest piece to one of `most` host blocks, or wait for a change.

        The caller holds `_changed` and repeats its own condition after each call.
        """
        if self._waiting and self.on_host.available(most):
            piece, host = self._waiting[0], self.on_host.take(most)
            self.stream.wait(piece.computed)
            self.device.copy(host[: piece.bytes], piece.block.array[: piece.bytes], self.stream)
            piece.host, piece.arrived = host, self.stream.record()
            self.stream.flush()
            self.on_device.put(DeviceBlock(piece.block.array, piece.arrived))
            self._waiting.popleft()
        else:
            self._changed.wait()

    def arrived(self, piece: "Piece") -> np.ndarray:
        """Wait until a piece is on the host; its block."""
        self.device.attach()
        with self._changed:
            while piece.host is None:
                self._copy_oldest(self.ahead)
        assert piece.arrived is not None
        piece.arrived.synchronize()
        return piece.host

    def release(self, piece: "Piece") -> None:
        """Return the block of the host that a piece uses, if it uses one."""
        if self.device.unified:
            self.on_device.put(piece.block)
        elif piece.host is not None:
            self.on_host.put(piece.host)


class Piece:
    """Values of some planes on their way to the host; `host`: None while they are on the device
    only.

    A context manager, entered once, in any thread: it waits and returns the values by name, which
    must not be used after leaving it.
    """

    def __init__(
        self, staging: Staging, source: Source, planes: tuple[int, int], block: DeviceBlock
    ):
        self.staging, self.source, self.block = staging, source, block
        self.begin, self.end = planes
        self.sizes = source.sizes(self.end - self.begin)
        self.bytes = staging.bytes_of(self.sizes)
        if self.bytes > staging.block_bytes:
            raise ValueError(f"{self.bytes} bytes for a block of {staging.block_bytes}")
        self.host: np.ndarray | None = None
        self.computed: Event | None = None
        self.arrived: Event | None = None

    def arrays(self, block: Array) -> dict[str, Array]:
        """The arrays of this piece in a block."""
        found, start = {}, 0
        for name, (count, kind) in self.sizes.items():
            size = count * np.dtype(kind).itemsize
            found[name] = block[start : start + size].view(kind)
            start += padded(size)
        return found

    def __enter__(self) -> dict[str, np.ndarray]:
        try:
            host = self.arrays(self.staging.arrived(self))
            return self.source.shaped(host, self.begin, self.end)
        except BaseException:
            self.staging.release(self)
            raise

    def __exit__(self, *raised: object) -> None:
        self.staging.release(self)


def padded(size: int) -> int:
    """Bytes from an array of so many bytes to the next one in a block."""
    return -(-size // ALIGNMENT) * ALIGNMENT


class Copies:
    """Copies of a source's values to the host, planes by planes."""

    def __init__(self, staging: Staging, source: Source):
        self.staging, self.source = staging, source

    def start(self, begin: int, end: int) -> Piece:
        """Enqueue computing and copying these planes, which must fit a block."""
        return self.staging.start(self.source, begin, end)

    def blocks(self, planes: int) -> list[tuple[int, int]]:
        """Ranges (begin, end) of planes that fit a block."""
        step = self.staging.planes(self.source)
        return [(begin, min(begin + step, planes)) for begin in range(0, planes, step)]
