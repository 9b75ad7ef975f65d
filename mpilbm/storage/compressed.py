"""HDF5 files whose datasets are compressed plane by plane with gzip.

The sizes of compressed planes are not known before, so that ranks cannot write them to known
places. Where threads may write files, those of each rank compress its planes into a file of its
own, and rank 0 copies the chunks of these files. Elsewhere rank 0 receives the planes as in
RootFile and compresses them, while the other ranks wait. Both give the same bytes.
"""

import os
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import IO, TYPE_CHECKING

import numpy as np

from mpilbm.core.files.hdf5 import open_file
from mpilbm.parallel import Communicator, together
from mpilbm.parallel.slabs import Slab
from mpilbm.storage import fresh, partial_of, system_errors
from mpilbm.storage.partial_file import Describe, Place
from mpilbm.storage.planes import OwnFile, PlaneFile, RootFile

if TYPE_CHECKING:
    import h5py

LEVEL = 4  # of 9; higher ones take longer and gain little for floating-point numbers
NOWHERE = -1  # the offset of a dataset in chunks

Chunk = tuple[str, int, int, int]  # dataset, plane of the box, place in the file, bytes
Shapes = dict[str, tuple[tuple[int, ...], np.dtype]]


def compressed(plane: np.ndarray) -> bytes:
    """The chunk of a plane after the filters shuffle and gzip of HDF5."""
    values = np.ascontiguousarray(plane)
    shuffled = values.reshape(-1).view(np.uint8).reshape(-1, values.itemsize).T
    return zlib.compress(shuffled.tobytes(), LEVEL)


class Chunked(PlaneFile):
    """A file of datasets in chunks of a plane; `shapes`: the shape and type of each.

    `describe` creates them with the filters shuffle and gzip.
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
        for name, (shape, kind) in shapes.items():
            self.file.places[name] = Place(NOWHERE, shape, kind.str)

    def write_chunk(self, file: "h5py.File", name: str, plane: int, chunk: bytes) -> None:
        """Write the chunk of a plane of the box."""
        self.file.require_room(len(chunk))  # HDF5 can crash on a full disk
        shape = self.places[name].shape
        place = [0] * len(shape)
        place[shape.index(self.slab.shape[0])] = plane
        file[name].id.write_direct_chunk(tuple(place), chunk)


class CompressedParts(Chunked, OwnFile):
    """Threads of each rank compress its planes.

    `<name>.<rank>.partial` has the chunks of a rank until rank 0 has copied them.
    """

    def __init__(
        self,
        path: Path,
        comm: Communicator,
        slabs: Sequence[Slab],
        describe: Describe,
        shapes: Shapes,
    ):
        self._turn = Lock()
        self._output: IO[bytes] | None = None
        self._chunks: list[Chunk] = []
        self._of_ranks: list[list[Chunk]] = []  # on rank 0, after `gather`
        super().__init__(path, comm, slabs, describe, shapes)
        try:
            together(comm, self._open)
        except BaseException:
            self.discard()
            raise

    def _part(self, rank: int) -> Path:
        return partial_of(self.path.with_name(f"{self.path.name}.{rank}"))

    def _open(self) -> None:
        with system_errors(self.path):
            self._output = fresh(self._part(self.comm.rank))

    def store(self, name: str, begin: int, data: np.ndarray) -> None:
        """Compress and write local planes from `begin` on; in any thread."""
        place = self.places[name]
        values = np.ascontiguousarray(data, place.dtype)
        planes = values.reshape(-1, self.plane_bytes(name) // values.itemsize)
        for plane, chunk in enumerate(map(compressed, planes), self.slab.begin + begin):
            with self._turn, system_errors(self.path):
                assert self._output is not None
                self._chunks.append((name, plane, self._output.tell(), len(chunk)))
                self._output.write(chunk)

    def flush(self, leave_cache: bool = False) -> None:
        """Close the part of this rank."""
        with system_errors(self.path):
            if self._output is not None:
                self._output.close()

    def gather(self) -> None:
        """Collect the places of all chunks on rank 0; collective."""
        super().gather()
        self._of_ranks = self.comm.gather(self._chunks) or []

    def publish(self, verify: bool = False, before: Callable[[], None] | None = None) -> None:
        """Copy the chunks of all ranks, in the order of the planes, and rename the file.

        On rank 0, in any thread, after `gather`.
        """
        self._copy_chunks()
        for rank in range(self.comm.size):
            self._part(rank).unlink(missing_ok=True)
        super().publish(verify, before)

    def _copy_chunks(self) -> None:
        order = {name: number for number, name in enumerate(self.places)}
        chunks = sorted(
            (order[name], plane, name, rank, start, size)
            for rank, part in enumerate(self._of_ranks)
            for name, plane, start, size in part
        )
        with ExitStack() as stack:
            stack.enter_context(system_errors(self.path))
            file = stack.enter_context(open_file(self.file.partial, "r+"))
            parts = [
                stack.enter_context(open(self._part(rank), "rb")) for rank in range(self.comm.size)
            ]
            for _, plane, name, rank, start, size in chunks:
                parts[rank].seek(start)
                self.write_chunk(file, name, plane, parts[rank].read(size))

    def discard(self) -> None:
        """Remove the file unless it is committed, and the part of this rank."""
        with self._turn:
            if self._output is not None:
                with suppress(OSError):  # on a full disk, of bytes that are discarded
                    self._output.close()
                self._part(self.comm.rank).unlink(missing_ok=True)
        super().discard()


class CompressedFile(Chunked, RootFile):
    """Rank 0 compresses and writes."""

    def _store(self, name: str, plane: int, data: np.ndarray) -> None:
        """Compress and write planes from `plane` on."""
        planes = data.reshape(-1, self.plane_bytes(name) // data.itemsize)
        for number, chunk in enumerate(self._pool.map(compressed, planes), plane):
            with system_errors(self.path):
                self.write_chunk(self._hdf5, name, number, chunk)

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(len(os.sched_getaffinity(0)), "mpilbm-gzip")

    @cached_property
    def _hdf5(self) -> "h5py.File":
        with system_errors(self.path):
            return open_file(self.file.partial, "r+")

    def _close(self) -> None:
        if "_pool" in vars(self):
            self._pool.shutdown()
            del self._pool
        if "_hdf5" in vars(self):
            with system_errors(self.path):
                self._hdf5.close()
            del self._hdf5

    def seal(self) -> None:
        """Complete the file, and seal it as PlaneFile does; collective."""
        self._close()
        super().seal()

    def discard(self) -> None:
        """Remove the file unless it is committed; waits for no other rank."""
        with suppress(OSError):  # on a full disk, of bytes that are discarded
            self._close()
        super().discard()
