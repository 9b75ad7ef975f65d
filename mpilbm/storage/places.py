"""HDF5 datasets with known places in the file, so that ranks can write them without HDF5."""

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from mpilbm.core.files.hdf5 import open_file

if TYPE_CHECKING:
    from pathlib import Path

    import h5py

    from mpilbm.parallel.communicator import Communicator


@dataclass(frozen=True)
class Place:
    """Where a dataset is in its file: byte offset, shape and type."""

    offset: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def bytes(self) -> int:
        """Bytes of the dataset."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize


def dataset(
    parent: "h5py.Group", name: str, shape: tuple[int, ...], dtype: DTypeLike
) -> "h5py.Dataset":
    """Create a contiguous dataset; its place is reserved at once and not filled."""
    import h5py

    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.CONTIGUOUS)
    plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    plist.set_obj_track_times(False)
    space = h5py.h5s.create_simple(tuple(shape))
    kind = h5py.h5t.py_create(np.dtype(dtype), logical=True)
    return h5py.Dataset(h5py.h5d.create(parent.id, name.encode(), kind, space, plist))


def find_places(file: "h5py.File") -> dict[str, Place]:
    """Name -> Place of all contiguous datasets of numbers."""
    import h5py

    found = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.id.get_offset() is not None:
            found[name] = Place(item.id.get_offset(), item.shape, item.dtype.str)

    file.visititems(visit)
    return found


def open_parallel(path: "Path", mode: str, comm: "Communicator") -> "h5py.File":
    """Open a file on all ranks with MPI-IO; collective."""
    return open_file(path, mode, driver="mpio", comm=comm)
