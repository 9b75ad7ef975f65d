"""One file of planes under its temporary name: created by HDF5, filled by writes at known places.

Nothing here is collective: `planes` decides which rank calls what.
"""

import errno
import os
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from mpilbm.core.errors import FileSystemError
from mpilbm.core.files.file_digest import DamagedFileError, Extent, compare, opened, verify
from mpilbm.core.files.hdf5 import open_file
from mpilbm.storage.files import (
    fresh,
    partial_of,
    reserve,
    sync,
    system_errors,
    write,
    write_mapped,
)
from mpilbm.storage.places import Place, find_places
from mpilbm.storage.seal import Seal

if TYPE_CHECKING:
    import h5py

METADATA_BYTES = 1 << 20

Describe = Callable[["h5py.File"], None]  # creates groups, attributes and datasets


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
