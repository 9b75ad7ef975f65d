"""Arrays of numbers that a case reads from files: .csv, .npy, or a dataset of an HDF5 file."""

from collections.abc import Callable
from math import prod
from os.path import isfile  # False for a name that is too long
from pathlib import Path

import numpy as np

from mpilbm.core.files.hdf5_input import (
    Hdf5File,
    Values,
    dataset_names,
    opened,
    require_intact,
    values,
)
from mpilbm.core.files.npy_input import npy_array

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
