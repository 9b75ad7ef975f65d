"""Volume files: scans of rocks, foams and tissue as arrays [z, y, x], read a few planes at a time.

`formats.py` selects the reader by the ending of a file name, `solid_planes.py` turns values into
solid cells. To add a format, write a function that takes a `Source` and returns a `Volume`, and add
a row to `formats.FORMATS`.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.files.hdf5 import MOST_PER_STORED_BYTE
from mpilbm.core.files.input_arrays import AGAIN

BLOCK = 1 << 20  # bytes that are skipped at a time


@dataclass(frozen=True)
class Source:
    """Where a volume is: a file or folder, an array in it, and the layout of a file without header.

    path   the file or folder
    item   name of an array in the file, or ""
    size   voxels (nx, ny[, nz]), or None
    type   NumPy type of a voxel, such as ">u2", or ""
    order  axes from the fastest to the slowest, such as "xyz", or ""
    """

    path: Path
    item: str = ""
    size: tuple[int, ...] | None = None
    type: str = ""
    order: str = ""


@dataclass(frozen=True, eq=False)
class Volume:
    """Voxels [z, y, x], in 2D [y, x].

    array    has `shape` and `dtype`; indexing with slices reads only the planes of the first axis,
             and raises ValueError, whose text follows the name of the file, if they are unreadable
    chunk    number of planes that are stored and read together
    spacing  sides of a voxel along x, y[, z] in any unit, nan if unknown; () if all are unknown
    notes    sentences on how the content of the file is understood
    """

    array: Any
    chunk: int = 1
    spacing: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()

    def of_dimensions(self, dimensions: int) -> "Volume":
        """The volume with an array of these dimensions; in 2D, (1, ny, nx) becomes (ny, nx).

        Raises ValueError, whose text follows the name of the file, for another array.
        """
        array = self.array
        if min(array.shape, default=0) < 1:
            raise ValueError(f"has no values; {AGAIN}")
        if array.dtype.kind not in "biuf":
            raise ValueError(f"has type {array.dtype}; save it as bool or uint8")
        if dimensions == 2 and len(array.shape) == 3 and array.shape[0] == 1:
            return replace(self, array=array[0])
        if len(array.shape) != dimensions:
            found = f"{len(array.shape)} dimensions, shape {tuple(array.shape)}"
            raise ValueError(f"has {found}; allowed: {dimensions} in {dimensions}D")
        return self

    def start(self, first: int) -> int:
        """The plane at which reading `first` begins: an earlier one in a compressed stream."""
        following = getattr(self.array, "following", first)
        return following if following <= first else 0


class Pages:
    """Base class of arrays that are read plane by plane."""

    shape: tuple[int, ...]
    dtype: np.dtype

    def page(self, k: int) -> NDArray[Any]:
        """Plane k."""
        raise NotImplementedError

    def __getitem__(self, index: Any) -> NDArray[Any]:
        first, *rest = index if isinstance(index, tuple) else (index,)
        if not isinstance(first, slice):
            return self.page(first)[tuple(rest)]
        planes = range(*first.indices(self.shape[0]))
        return np.stack([self.page(k)[tuple(rest)] for k in planes])


class Converted:
    """An array whose values are converted when they are read, such as by a palette."""

    def __init__(self, array: Any, convert: Callable[[NDArray[Any]], NDArray[Any]]):
        self.array, self.convert = array, convert
        self.shape: tuple[int, ...] = array.shape
        self.dtype: np.dtype = convert(np.zeros(1, array.dtype)).dtype

    def __getitem__(self, index: Any) -> NDArray[Any]:
        return self.convert(np.asarray(self.array[index]))


class Stream(Pages):
    """An array in a compressed file, which is decompressed from its beginning.

    opener     returns a binary file with the decompressed content
    stored     compressed bytes
    skip       decompressed bytes before the first voxel
    following  the plane that is read next without starting again

    Raises ValueError, whose text follows the name of the file, if so few bytes cannot contain the
    array: a header may declare any size.
    """

    def __init__(
        self,
        opener: Callable[[], BinaryIO],
        dtype: np.dtype,
        shape: tuple[int, ...],
        stored: int,
        skip: int = 0,
    ):
        self.opener, self.dtype, self.shape, self.skip = opener, dtype, shape, skip
        self.following, self.file = 0, None
        require_stored(skip + prod(shape) * dtype.itemsize, stored)

    def page(self, k: int) -> NDArray[Any]:
        """Plane k; the planes before it are skipped."""
        file: Any = self.file
        if file is None or k < self.following:
            self.close()
            file = self._checked(self._opened)
            self.file, self.following = file, 0
        count = prod(self.shape[1:])
        while self.following <= k:
            data = self._checked(lambda: file.read(count * self.dtype.itemsize))
            if len(data) < count * self.dtype.itemsize:
                ends = self.following
                self.close()
                raise ValueError(
                    f"is truncated: it ends in plane {ends} of {self.shape[0]}; {AGAIN}"
                )
            self.following += 1
        if self.following == self.shape[0]:
            self._checked(lambda: file.read(1))  # the checksum at the end of the stream
            self.close()
        return np.frombuffer(data, self.dtype).reshape(self.shape[1:])

    def _opened(self) -> BinaryIO:
        """The file behind the bytes before the first voxel."""
        file, left = self.opener(), self.skip
        while left:
            found = len(file.read(min(left, BLOCK)))
            if not found:
                raise EOFError("the file ends before its data")
            left -= found
        return file

    def close(self) -> None:
        """Close the file; the next plane is read from the beginning."""
        if self.file is not None:
            self.file.close()
        self.file, self.following = None, 0

    def _checked(self, action: Callable[[], Any]) -> Any:
        """The result of an action; ValueError for data that cannot be decompressed."""
        try:
            return action()
        except (EOFError, zlib.error, BadZipFile, OSError) as error:
            self.close()
            raise ValueError(f"cannot be decompressed ({error}); {AGAIN}") from None


def require_stored(needed: int, stored: int) -> None:
    """ValueError if so few compressed bytes cannot contain `needed` bytes."""
    if needed > MOST_PER_STORED_BYTE * stored:
        raise ValueError(
            f"is truncated: its header declares {needed} bytes, which {max(stored, 0)} compressed "
            f"bytes cannot contain; {AGAIN}"
        )


def mapped(
    path: Path, dtype: np.dtype, shape: tuple[int, ...], offset: int = 0, exact: bool = False
) -> NDArray[Any]:
    """An array [slowest, …, fastest axis] of a file that is mapped into memory.

    exact: refuse a file with more data. Raises ValueError if the file has too few data.
    """
    stored, needed = path.stat().st_size - offset, prod(shape) * dtype.itemsize
    what = f"{' x '.join(map(str, reversed(shape)))} voxels of type {dtype.name}"
    if not needed:
        raise ValueError(f"has no values; {AGAIN}")
    if offset < 0:
        raise ValueError(f"is damaged: its values begin at byte {offset}; {AGAIN}")
    if stored < needed:
        raise ValueError(
            f"is truncated: {what} are {needed} bytes, found {max(stored, 0)}; {AGAIN}"
        )
    if exact and stored > needed:
        raise ValueError(
            f"is larger: {what} are {needed} bytes, found {stored}; change size or type; if the "
            f"file begins with a header of {stored - needed} bytes, describe it by a .mhd file "
            "with HeaderSize = -1, and name that in place of it"
        )
    return np.memmap(path, dtype, "r", offset, shape)
