"""HDF5 files whose datasets are compressed plane by plane with gzip, written by rank 0.

The sizes of compressed planes are not known before, so that ranks cannot write them to known
places. Rank 0 receives the planes as in RootFile and compresses them in threads.
"""

import os
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mpilbm.parallel.communicator import Communicator
from mpilbm.parallel.slabs import Slab
from mpilbm.storage.files import system_errors
from mpilbm.storage.partial_file import Describe
from mpilbm.storage.places import Place
from mpilbm.storage.planes import RootFile

if TYPE_CHECKING:
    import h5py

LEVEL = 4  # of 9; higher ones take longer and gain little for floating-point numbers
NOWHERE = -1  # the offset of a dataset in chunks

Shapes = dict[str, tuple[tuple[int, ...], np.dtype]]


def compressed(plane: np.ndarray) -> bytes:
    """The chunk of a plane after the filters shuffle and gzip of HDF5."""
    values = np.ascontiguousarray(plane)
    shuffled = values.reshape(-1).view(np.uint8).reshape(-1, values.itemsize).T
    return zlib.compress(shuffled.tobytes(), LEVEL)


class CompressedFile(RootFile):
    """Rank 0 compresses and writes; `shapes` has the shape and type of each dataset.

    `describe` creates them with chunks of a plane and the filters shuffle and gzip.
    """

    def __init__(
        self,
        path: Path,
        comm: Communicator,
        slabs: Sequence[Slab],
        describe: Describe,
        shapes: Shapes,
    ):
        super().__init__(path, comm, slabs, describe)
        self.file.places |= {
            name: Place(NOWHERE, shape, kind.str) for name, (shape, kind) in shapes.items()
        }

    def _store(self, name: str, plane: int, data: np.ndarray) -> None:
        """Compress and write planes from `plane` on."""
        place = self.places[name]
        axis = next(k for k, n in enumerate(place.shape) if n == self.slab.shape[0])
        planes = data.reshape(-1, self.plane_bytes(name) // data.itemsize)
        for k, chunk in enumerate(self._pool.map(compressed, planes)):
            # HDF5 can crash on a full disk
            self.file.require_room(len(chunk))
            offset = (*(0,) * axis, plane + k, *(0,) * (len(place.shape) - axis - 1))
            with system_errors(self.path):
                self._hdf5[name].id.write_direct_chunk(offset, chunk)

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(len(os.sched_getaffinity(0)), "mpilbm-gzip")

    @cached_property
    def _hdf5(self) -> "h5py.File":
        import h5py

        with system_errors(self.path):
            return h5py.File(self.file.partial, "r+", locking="best-effort")

    def _close(self) -> None:
        if "_pool" in vars(self):
            self._pool.shutdown()
            del self._pool
        if "_hdf5" in vars(self):
            with system_errors(self.path):
                self._hdf5.close()
            del self._hdf5

    def seal(self) -> None:
        """As in PlaneFile."""
        self._close()
        super().seal()

    def discard(self) -> None:
        """As in PlaneFile."""
        self._close()
        super().discard()
