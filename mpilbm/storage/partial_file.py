"""One file of planes under its temporary name: created by HDF5, filled by writes at known places.

The places of its datasets are those that HDF5 reserves, so that ranks can write without HDF5. Its
digest is computed from the bytes in memory that were to be written.

Nothing here is collective: `planes` decides which rank calls what.
"""

import errno
import os
import shutil
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from math import prod
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from mpilbm.core.errors import FileSystemError
from mpilbm.core.files.file_digest import (
    DamagedFileError,
    Extent,
    compare,
    opened,
    piece_sums,
    trailer,
    verify,
)
from mpilbm.core.files.hdf5 import open_file
from mpilbm.parallel import Communicator
from mpilbm.storage import (
    fresh,
    partial_of,
    reserve,
    sync,
    system_errors,
    write,
    write_mapped,
)

if TYPE_CHECKING:
    import h5py

METADATA_BYTES = 1 << 20

Describe = Callable[["h5py.File"], None]  # creates groups, attributes and datasets


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


class Seal:
    """Collects the crc32 of the planes that this rank writes to the datasets in `places`.

    A dataset written plane by plane has a crc32 for each plane, a dataset written at once has one.
    The rest of the file, which HDF5 wrote, is read to compute its crc32.
    """

    def __init__(self, places: dict[str, Place], planes: int):
        self.places, self.planes = places, planes
        self.sums: dict[str, np.ndarray] = {}

    def note(self, name: str, plane: int, view: memoryview) -> None:
        """`view` holds the bytes of whole planes from `plane` on; in any thread."""
        sums = self.sums.setdefault(name, np.zeros(self.planes, np.uint32))
        size = self.places[name].bytes // self.planes
        for k, begin in enumerate(range(0, len(view), size) if size else ()):
            sums[plane + k] = zlib.crc32(view[begin : begin + size])

    def note_whole(self, name: str, view: memoryview) -> None:
        """`view` holds the bytes of the whole dataset."""
        self.sums[name] = np.array([zlib.crc32(view)], np.uint32)

    def gather(self, comm: Communicator, begin: int, end: int) -> None:
        """Collect the sums of all planes on rank 0; each rank has those of planes begin..end."""
        own = {name: self.sums[name][begin:end] for name in self.by_planes}
        parts = comm.gather(own)
        if parts is None:
            return
        for name in {name for part in parts for name in part}:
            self.sums[name] = np.concatenate([part[name] for part in parts if name in part])

    @property
    def by_planes(self) -> list[str]:
        """The datasets of which this rank has written planes, or all if it has collected them."""
        return [name for name, sums in self.sums.items() if len(sums) == self.planes]

    def trailer(self, number: int, size: int) -> bytes:
        """The bytes to append to the file of `size` bytes with this descriptor; on rank 0."""
        extents: list[Extent] = []
        sums: list[np.ndarray] = []
        end = 0

        def rest(until: int) -> None:
            if end < until:
                extents.append(Extent(end, 1, until - end))
                sums.append(piece_sums(number, extents[-1], range(1)))

        for name in sorted(self.sums, key=lambda name: self.places[name].offset):
            place, pieces = self.places[name], len(self.sums[name])
            if place.bytes:
                rest(place.offset)
                extents.append(Extent(place.offset, pieces, place.bytes // pieces))
                sums.append(self.sums[name])
                end = extents[-1].end
        rest(size)
        return trailer(extents, np.concatenate(sums))


class PartialFile:
    """A file of `planes` planes, named `path.partial` until `publish` renames it to `path`.

    `threads_write`: see file_system.threads_write. Where threads take turns in a call of the
    system, they would wait busily; here they sleep instead.
    """

    def __init__(self, path: Path, planes: int, threads_write: str = "in_turns"):
        self.path, self.partial, self.planes = path, partial_of(path), planes
        at_once, self._mapped = threads_write == "at_once", threads_write == "mapped"
        self._turn: AbstractContextManager = nullcontext() if at_once else Lock()
        self.places: dict[str, Place] = {}
        self.digest = Seal({}, planes)

    def create(self, describe: Describe) -> dict[str, Place]:
        """Create the file with all its metadata; returns the places of its datasets.

        Raises OSError if the disk has no room for the file.
        """
        self.require_room(METADATA_BYTES)
        with system_errors(self.path):
            fresh(self.partial).close()  # HDF5 would follow a link
            with open_file(self.partial, "w") as file:
                describe(file)
                places = find_places(file)
            status = os.stat(self.partial)
        self.require_room(status.st_size - status.st_blocks * 512)
        return places

    def require_room(self, needed: int) -> None:
        """Raise OSError if the disk has not so many free bytes."""
        if shutil.disk_usage(self.path.parent).free < needed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))

    def use(self, places: dict[str, Place]) -> None:
        """Set the places of the datasets, before the first write."""
        self.places, self.digest = places, Seal(places, self.planes)

    def plane_bytes(self, name: str) -> int:
        """Bytes of one plane of a dataset."""
        return self.places[name].bytes // self.planes

    def put(self, name: str, values: ArrayLike) -> None:
        """Write a whole dataset."""
        view = self._bytes(name, values)
        self.digest.note_whole(name, view)
        self._write_at(self.places[name].offset, view)

    def store(self, name: str, plane: int, data: ArrayLike) -> None:
        """Write whole planes of a dataset, from the plane `plane` of the box on; in any thread."""
        view = self._bytes(name, data)
        self.digest.note(name, plane, view)
        self._write_at(self.places[name].offset + plane * self.plane_bytes(name), view)

    def _bytes(self, name: str, data: ArrayLike) -> memoryview:
        flat = np.ascontiguousarray(data, self.places[name].dtype).reshape(-1)
        return flat.view(np.uint8).data

    def _write_at(self, offset: int, view: memoryview) -> None:
        with system_errors(self.path):
            number = os.open(self.partial, os.O_RDWR)
            try:
                with self._turn:
                    (reserve if self._mapped else write)(number, offset, view)
                if self._mapped:
                    write_mapped(number, offset, view)
            finally:
                os.close(number)

    def append_digest(self) -> None:
        """Append the digest of all bytes; its sums must be complete."""
        with system_errors(self.path), open(self.partial, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            self._write_at(size, memoryview(self.digest.trailer(file.fileno(), size)))

    def verify(
        self, begin: int, end: int, of: int | None = None, besides: Collection[str] = ()
    ) -> None:
        """Read the part begin / of to end / of again; FileSystemError if it differs from memory.

        `of`: by default all planes, of which those from begin to end are read. `besides`: datasets
        that are not read.
        """
        known = [self.places[name].offset for name in besides]
        with self._differences():
            verify(self.partial, begin, end, of or self.planes, known)

    def verify_places(self) -> None:
        """FileSystemError if HDF5 does not find the datasets at their places."""
        with system_errors(self.path), open_file(self.partial) as file:
            found = find_places(file)
        with self._differences():
            if found != self.places:
                raise DamagedFileError("its datasets are not where they were created")

    def check(self, name: str, begin: int, end: int) -> None:
        """Read planes begin..end of a dataset; FileSystemError if they are not those written."""
        extent = Extent(self.places[name].offset, self.planes, self.plane_bytes(name))
        if not extent.size:
            return
        with system_errors(self.path), self._differences(), opened(self.partial) as number:
            compare(number, extent, range(begin, end), self.digest.sums[name][begin:end])

    @contextmanager
    def _differences(self) -> Iterator[None]:
        """Convert a DamagedFileError."""
        try:
            yield
        except DamagedFileError as error:
            raise FileSystemError(
                f"{self.path}: the bytes read back differ from those written: {error}; "
                "earlier files are kept; check the disk, or write to another one with --output"
            ) from None

    def flush(self, leave_cache: bool = False) -> None:
        """Sync the bytes that this rank has written to the disk; in any thread.

        `leave_cache`: also remove the file from the page cache, so that it is read from the disk.
        """
        with system_errors(self.path), opened(self.partial) as number:
            os.fsync(number)
            if leave_cache:
                os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)

    def publish(self) -> None:
        """Rename the file to its name when all of it is on the disk."""
        sync(self.partial)
        os.replace(self.partial, self.path)
        sync(self.path.parent)

    def remove(self) -> None:
        """Remove the file, if it has only its temporary name."""
        self.partial.unlink(missing_ok=True)
