"""Where the datasets of an HDF5 file lie, so that ranks write to them without HDF5."""

from dataclasses import dataclass
from math import prod

import numpy as np


@dataclass(frozen=True)
class Place:
    """Where a dataset lies in its file: byte offset, shape and type."""

    offset: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def bytes(self) -> int:
        """Bytes of the dataset."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize


def dataset(parent, name: str, shape, dtype):
    """A contiguous dataset that has its place in the file at once and is never filled."""
    import h5py

    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.CONTIGUOUS)
    plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    plist.set_obj_track_times(False)
    space = h5py.h5s.create_simple(tuple(shape))
    kind = h5py.h5t.py_create(np.dtype(dtype), logical=True)
    return h5py.Dataset(h5py.h5d.create(parent.id, name.encode(), kind, space, plist))


def find_places(file) -> dict[str, Place]:
    """Name -> Place of all datasets that hold numbers in one piece."""
    import h5py

    found = {}

    def visit(name, item):
        if isinstance(item, h5py.Dataset) and item.id.get_offset() is not None:
            found[name] = Place(item.id.get_offset(), item.shape, item.dtype.str)

    file.visititems(visit)
    return found
