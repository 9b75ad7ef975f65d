"""Arrays of numbers that a case reads from files: .csv, .npy, or a dataset of an HDF5 file.

All problems raise a ValueError whose text follows the name of the file.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from os.path import isfile  # False for a name that is too long
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.files.hdf5 import Hdf5File, Values, dataset_names, opened, require_intact, values
from mpilbm.core.printable import one_line

AGAIN = "write or copy it again"
MOST = 200  # characters of the error of a library


@contextmanager
def reading(what: str, fix: str = AGAIN) -> Iterator[None]:
    """Any error of a library that reads a file becomes a ValueError; its warnings are ignored.

    Parsers raise errors of any class for damaged files, MemoryError and RecursionError included.
    what: such as "as TIFF"; the text of the ValueError follows the name of the file.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Exception as error:
        text = one_line(error, MOST) or type(error).__name__
        raise ValueError(f"cannot be read {what} ({text}); {fix}") from None


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
        raise ValueError(
            f"is truncated: an array of shape {shape} and type {dtype} has {needed} "
            f"bytes, found {stored}; {AGAIN}"
        )
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


MOST_NUMBERS = 2**26  # of a face: 4700 x 4700 cells with three components
RELATIVE = "paths are relative to the folder of the case"


def load_numbers(
    directory: Path, spec: str, check_shape: Callable[[tuple[int, ...]], None] | None = None
) -> np.ndarray:
    """All numbers of "file.csv", "file.npy" or "file.h5:dataset", float64.

    Raises ValueError if they cannot be read. `check_shape(shape)` may raise it for the shape of an
    array before the array is read.
    """
    file, _, dataset = spec.rpartition(":") if ".h5:" in spec else (spec, "", "")
    path = directory / file
    if not isfile(path):
        raise ValueError(f"is missing: there is no file {path}; {RELATIVE}")
    if dataset:
        require_intact(path)
        with opened(path) as hdf5:
            return _numbers(hdf5_dataset(hdf5, path, dataset, "iuf"), check_shape)
    elif file.endswith(".npy"):
        array = npy_array(path)
    else:
        try:
            begins = path.read_text("utf-8").lstrip()[:1]
            names = begins.isalpha() or begins == '"'  # the first row has names of columns
            return np.loadtxt(path, delimiter=",", skiprows=int(names), ndmin=2, encoding="utf-8")
        except (ValueError, OSError) as error:
            raise ValueError(f"cannot be read as rows of numbers ({error})") from None
    return _numbers(array, check_shape)


def _numbers(
    array: np.ndarray | Values, check_shape: Callable[[tuple[int, ...]], None] | None
) -> np.ndarray:
    """All numbers of an array that has not been read yet, float64."""
    if array.dtype.kind not in "iuf":
        raise ValueError(f"has type {array.dtype}; save it as float64")
    if check_shape:
        check_shape(array.shape)
    if prod(array.shape) > MOST_NUMBERS:
        raise ValueError(f"has {prod(array.shape)} numbers; allowed: {MOST_NUMBERS} at most")
    return np.asarray(array[()], np.float64)


def hdf5_dataset(file: Hdf5File, path: Path, name: str, kinds: str) -> Values:
    """A dataset of an open HDF5 file; if it is missing, ValueError with those that exist."""
    found = values(file, name, kinds)
    if found is not None:
        return found
    names = dataset_names(file)
    more = ", …" if len(names) > 10 else ""
    listed = ", ".join(names[:10]) + more if names else "none"
    raise ValueError(f"is missing: {path.name} has no dataset '{name}'; it has {listed}")
