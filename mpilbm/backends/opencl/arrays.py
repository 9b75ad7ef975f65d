"""Arrays in buffers of an OpenCL device."""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike


class Memory:
    """A buffer; calls changed(bytes) when it is made and changed(-bytes) when it is freed."""

    def __init__(self, buffer: Any, size: int, changed: Callable[[int], None]):
        self.buffer, self._size, self._changed = buffer, size, changed
        changed(size)

    def __del__(self) -> None:
        self._changed(-self._size)


class BufferArray:
    """A contiguous 1-D array in a buffer; slices refer to the same memory.

    `offset`: of its first byte in the buffer.
    """

    flags = SimpleNamespace(c_contiguous=True)
    ndim = 1

    def __init__(self, memory: Memory, offset: int, size: int, dtype: DTypeLike):
        self.memory, self.offset, self.size, self.dtype = memory, offset, size, np.dtype(dtype)
        self.shape = (size,)

    @property
    def buffer(self) -> Any:
        """The buffer of pyopencl."""
        return self.memory.buffer

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, part: slice) -> "BufferArray":
        begin, end, step = part.indices(self.size)
        if step != 1:
            raise IndexError(f"found a step of {step}, allowed 1")
        offset = self.offset + begin * self.dtype.itemsize
        return BufferArray(self.memory, offset, max(0, end - begin), self.dtype)

    def reshape(self, *shape: Any) -> "BufferArray":
        """Itself, if that is a shape of one axis."""
        size = math.prod(shape) if shape != (-1,) else self.size
        if len(shape) != 1 or size != self.size:
            raise ValueError(f"found the shape {shape}, allowed ({self.size},)")
        return self

    def view(self, dtype: DTypeLike) -> "BufferArray":
        """The same bytes as numbers of another type."""
        size, rest = divmod(self.nbytes, np.dtype(dtype).itemsize)
        if rest:
            raise ValueError(f"{self.nbytes} bytes are no whole number of {np.dtype(dtype)}")
        return BufferArray(self.memory, self.offset, size, dtype)

    def first(self) -> np.int64:
        """The offset in items of its type, the second argument of a kernel for an array."""
        place, rest = divmod(self.offset, self.dtype.itemsize)
        if rest:
            raise ValueError(f"the array begins at byte {self.offset}, within a {self.dtype}")
        return np.int64(place)
