"""Reads a dataset of an HDF5 file; the file is open only while planes are read."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.files.hdf5 import (
    Hdf5File,
    attribute,
    dataset_names,
    opened,
    require_intact,
)
from mpilbm.core.files.input_arrays import hdf5_dataset
from mpilbm.solids.volumes.numpy_files import chosen
from mpilbm.solids.volumes.spacing import side
from mpilbm.solids.volumes.volume import Source, Volume


def dataset(source: Source) -> Volume:
    """The dataset `item` of an HDF5 file, or its only one. Verifies the digest of the file."""
    require_intact(source.path)
    item = source.item
    if not item:
        with opened(source.path) as file:
            item = chosen(source, dataset_names(file), "dataset")
    return checked(source.path, item)


def checked(path: Path, item: str) -> Volume:
    """A dataset of numbers of a file whose digest has been verified."""
    array = Dataset(path, item)
    return Volume(array, array.chunk, array.spacing)


class Dataset:
    """A dataset; indexing opens the file and reads from it."""

    def __init__(self, path: Path, item: str):
        self.path, self.item = path, item
        with opened(path) as file:
            values = hdf5_dataset(file, path, item, "biuf")
            self.shape: tuple[int, ...] = values.shape
            self.dtype: np.dtype = values.dtype
            chunks = values.chunks or (1, 1)
            self.spacing = _spacing(file, item)
        self.chunk = chunks[1 if len(chunks) == 3 and self.shape[0] == 1 else 0]

    def __getitem__(self, index: Any) -> NDArray[Any]:
        with opened(self.path) as file:
            return hdf5_dataset(file, self.path, self.item, "biuf")[index]


def _spacing(file: Hdf5File, item: str) -> tuple[float, ...]:
    """Sides of a voxel along x, y[, z] from `element_size_um` of a dataset (ImageJ, ilastik), in
    the order of its axes, or from the image of VTKHDF; () if they are unknown.
    """
    image = item.strip("/").startswith("VTKHDF/")
    group, name, step = ("VTKHDF", "Spacing", 1) if image else (item, "element_size_um", -1)
    try:
        return tuple(map(side, attribute(file, group, name, np.ndarray).tolist()[::step]))
    except (ValueError, TypeError):
        return ()
