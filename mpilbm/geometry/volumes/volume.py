"""A volume of voxels that is read a few planes at a time, and the ways to store one in a file."""

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

AGAIN = "write or copy it again"
INTEGER = re.compile(r"[-+]?[0-9]{1,18}", re.ASCII)


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

    array  has `shape` and `dtype`; indexing with slices reads only the planes of the first axis,
           and raises ValueError, whose text follows the name of the file, if they are unreadable
    chunk  number of planes that are stored and read together
    """

    array: Any
    chunk: int = 1

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


class Stream(Pages):
    """An array in a compressed file, which is decompressed from its beginning.

    opener     returns a binary file that begins with the first voxel
    following  the plane that is read next without starting again
    """

    def __init__(self, opener: Callable[[], BinaryIO], dtype: np.dtype, shape: tuple[int, ...]):
        self.opener, self.dtype, self.shape = opener, dtype, shape
        self.following, self.file = 0, None

    def page(self, k: int) -> NDArray[Any]:
        """Plane k; the planes before it are skipped."""
        file: Any = self.file
        if file is None or k < self.following:
            self.close()
            file = self._checked(self.opener)
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


class Skipping:
    """Opens a binary file and skips a number of (decompressed) bytes."""

    def __init__(self, opener: Callable[[], BinaryIO], count: int):
        self.opener, self.count = opener, count

    def __call__(self) -> BinaryIO:
        """The file behind these bytes."""
        file, left = self.opener(), self.count
        while left:
            found = len(file.read(min(left, 1 << 20)))
            if not found:
                raise EOFError("the file ends before its data")
            left -= found
        return file


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
    if stored < needed:
        raise ValueError(
            f"is truncated: {what} are {needed} bytes, found {max(stored, 0)}; {AGAIN}"
        )
    if exact and stored > needed:
        raise ValueError(
            f"is larger: {what} are {needed} bytes, found {stored}; change size or type"
        )
    return np.memmap(path, dtype, "r", offset, shape)


def raw_data(
    path: Path, dtype: np.dtype, shape: tuple[int, ...], begin: int, skip: int, key: str
) -> NDArray[Any]:
    """An array [slowest, …, fastest axis] of a file with a header, mapped into memory.

    begin: the first byte behind the header, 0 in a file without one; skip: the value of `key` in
    the header, the bytes between `begin` and the data, or -1 if the data are the end of the file.
    Raises ValueError, whose text follows the name of the file.
    """
    if skip < -1:
        raise ValueError(
            f"has {key} {skip} in its header; allowed: 0 or more, or -1 if the data are the end of "
            "the file; correct the header"
        )
    end = path.stat().st_size - prod(shape) * dtype.itemsize
    return mapped(path, dtype, shape, max(begin, end) if skip == -1 else begin + skip)


def integers(text: str, key: str) -> tuple[int, ...]:
    """The integers of the value of a key in a header; ValueError if there is none."""
    parts = text.split()
    if not parts or not all(map(INTEGER.fullmatch, parts)):
        raise ValueError(f"has the {key} '{text}' in its header; allowed: integers; {AGAIN}")
    return tuple(map(int, parts))


def integer(text: str, key: str) -> int:
    """The integer that is the value of a key in a header; ValueError if it is not one."""
    found = integers(text, key)
    if len(found) > 1:
        raise ValueError(f"has the {key} '{text}' in its header; allowed: one integer; {AGAIN}")
    return found[0]


def refuse_dimensions(given: int, key: str, sizes: tuple[int, ...]) -> None:
    """ValueError if the value of `key` in a header is not the number of sizes."""
    if given != len(sizes):
        raise ValueError(f"has {key} {given} and the size {list(sizes)} in its header; allowed: "
                         f"a number for each dimension; {AGAIN}")  # fmt: skip


def refuse_sizes(sizes: tuple[int, ...]) -> None:
    """ValueError unless there are two or three sizes above 0."""
    if len(sizes) not in (2, 3) or min(sizes) < 1:
        raise ValueError(f"has the size {list(sizes)}; allowed: two or three numbers above 0")
