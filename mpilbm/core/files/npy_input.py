"""Reads .npy files from any source; the header is checked before anything is allocated.

All problems raise a ValueError whose text follows the name of the file.
"""

from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.files.library_errors import AGAIN, reading

Header = tuple[tuple[int, ...], bool, np.dtype]  # shape, Fortran order, type

LARGEST = 2**62  # a size, and the bytes of an array


def npy_array(path: Path) -> NDArray[Any]:
    """The array of a .npy file, mapped into memory."""
    with reading("as .npy"):
        file = path.open("rb")
    with file:
        shape, fortran, dtype = npy_header(file, ".npy")
        begin = file.tell()
    stored = path.stat().st_size - begin
    if stored < (needed := array_bytes(shape, dtype)):
        raise ValueError(f"is truncated: an array of shape {shape} and type {dtype} has {needed} "
                         f"bytes, found {stored}; {AGAIN}")  # fmt: skip
    if not needed:
        raise ValueError(f"has no values: its shape is {shape} and its type {dtype}; {AGAIN}")
    with reading("as .npy"):
        return np.memmap(path, dtype, "r", begin, shape, "F" if fortran else "C")


def npy_header(file: BinaryIO | Any, ending: str) -> Header:
    """The header of an open .npy file, which is read up to its first value; ending: for messages.

    The sizes are not negative, and the array has fewer than LARGEST bytes.
    """
    with reading(f"as {ending}"):
        version = np.lib.format.read_magic(file)
        read = {(1, 0): np.lib.format.read_array_header_1_0}
        shape, fortran, dtype = read.get(version, np.lib.format.read_array_header_2_0)(file)
    if dtype.hasobject:
        raise ValueError("contains Python objects; save it as bool or uint8")
    if not all(0 <= n < LARGEST for n in shape) or array_bytes(shape, dtype) >= LARGEST:
        sizes = ", ".join(str(n) if abs(n) < LARGEST else "2^62 or more" for n in shape[:4])
        raise ValueError(f"is damaged: its header has the shape ({sizes}); {AGAIN}")
    return shape, bool(fortran), dtype


def array_bytes(shape: tuple[int, ...], dtype: np.dtype) -> int:
    """The bytes of an array."""
    return prod(shape) * dtype.itemsize
