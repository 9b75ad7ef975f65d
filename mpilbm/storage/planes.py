"""HDF5 files made of planes: whole or not there, and the same whoever writes them.

Rank 0 makes the file with all its metadata under a temporary name; every dataset has its place in
it from the start, plane after plane. Then the planes follow,

    own     each rank writes its own planes to their places itself, on one node or a parallel file
            system: no message carries them, and threads may do it
    mpio    all ranks open the file and write their own planes, where h5py is built with MPI
    root    rank 0 takes one block of planes after another from the ranks, in bounded memory,
            and writes them to their places itself: a disk that fills up while HDF5 writes can
            leave the library in a state in which it crashes

and rank 0 appends a digest of all bytes, syncs the file and renames it.
"""

import errno
import os
import shutil
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from mpilbm.errors import FileSystemError, MpilbmError
from mpilbm.parallel.agree import on_root, together
from mpilbm.storage.files import fresh, partial_of, sync
from mpilbm.storage.places import Place, find_places
from mpilbm.storage.seal import Seal
from mpilbm.system.file_digest import DamagedFileError, verify

BLOCK_BYTES = 64 << 20
METADATA_BYTES = 1 << 20


def plane_file(path, comm, slabs, describe: Callable, writer: str) -> "PlaneFile":
    """A file to write: `describe(h5file)` makes its groups, attributes and, by `dataset`, datasets.

    `writer` is "own", "mpio" or "root" (see file_system.best_writer). Use it as a context manager:
    without `commit()` nothing of the file is left.
    """
    kinds = {"own": OwnFile, "mpio": CollectiveFile, "root": RootFile}
    return kinds[writer](path, comm, slabs, describe)


def blocks(planes: int, plane_bytes: int) -> list[tuple[int, int]]:
    """Ranges (begin, end) of planes, each of at most BLOCK_BYTES or one plane."""
    count = max(1, BLOCK_BYTES // max(1, plane_bytes))
    return [(begin, min(begin + count, planes)) for begin in range(0, planes, count)]


class PlaneFile:
    """What all writers share: making, syncing, renaming, removing. FileSystemError on failure."""

    def __init__(self, path, comm, slabs, describe):
        self.path = Path(path)
        self.partial = partial_of(self.path)
        self.comm, self.slabs, self.slab = comm, slabs, slabs[comm.rank]
        try:
            self.places = on_root(comm, self._make, describe)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self._digest, self._sealed = Seal(self.places, self.slab.shape[0]), False

    def _make(self, describe) -> dict[str, Place]:
        import h5py

        self._refuse_full_disk(METADATA_BYTES)
        with system_errors(self.path):
            fresh(self.partial).close()  # HDF5 would follow a link
            with h5py.File(self.partial, "w", locking="best-effort") as file:
                describe(file)
                places = find_places(file)
            status = os.stat(self.partial)
        self._refuse_full_disk(status.st_size - status.st_blocks * 512)
        return places

    def _refuse_full_disk(self, needed: int):
        if shutil.disk_usage(self.path.parent).free < needed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if self.comm.rank == 0:
            self.partial.unlink(missing_ok=True)

    def own_planes(self) -> tuple[int, int]:
        """The global planes that this rank wrote to the disk."""
        return (self.slab.begin, self.slab.end)

    def plane_bytes(self, name: str) -> int:
        """Bytes of one plane of a dataset."""
        return self.places[name].bytes // self.slab.shape[0]

    def put(self, name: str, values):
        """Write a whole small dataset from rank 0's array."""
        on_root(self.comm, self._put, name, values)

    def _put(self, name: str, values):
        view = self._bytes(name, values)
        self._digest.note_whole(name, view)
        self._write_at(self.places[name].offset, view)

    def _store(self, name: str, plane: int, data):
        """Write whole planes of a dataset, from the global `plane` on."""
        view = self._bytes(name, data)
        self._digest.note(name, plane, view)
        self._write_at(self.places[name].offset + plane * self.plane_bytes(name), view)

    def _bytes(self, name: str, data) -> memoryview:
        flat = np.ascontiguousarray(data, self.places[name].dtype).reshape(-1)
        return memoryview(flat.view(np.uint8))

    def _write_at(self, place: int, view):
        with system_errors(self.path):
            number = os.open(self.partial, os.O_WRONLY)
            try:
                done = 0
                while done < len(view):
                    done += os.pwrite(number, view[done:], place + done)
            finally:
                os.close(number)

    def seal(self):
        """Append the digest, when all ranks have written everything; collective."""
        if not self._sealed:
            self._digest.gather(self.comm, *self.own_planes())
            on_root(self.comm, self._append_digest)
            self._sealed = True

    def _append_digest(self):
        with system_errors(self.path), open(self.partial, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            self._write_at(size, memoryview(self._digest.trailer(file.fileno(), size)))

    def read_back(self):
        """Seal the file and compare what is in it with what was to be written; collective."""
        self.seal()
        together(self.comm, self._read_back)

    def _read_back(self):
        import h5py

        try:
            verify(self.partial, *self.own_planes(), self.slab.shape[0])
            if self.comm.rank == 0:
                with (
                    system_errors(self.path),
                    h5py.File(self.partial, "r", locking="best-effort") as file,
                ):
                    found = find_places(file)
                if found != self.places:
                    raise DamagedFileError("its datasets are not where they were created")
        except DamagedFileError as error:
            raise FileSystemError(
                f"{self.path}: reading it back gives other bytes than were written: {error}; "
                "earlier files are kept; check the disk, or write to another one with --output"
            ) from None

    def commit(self):
        """Seal the file and rename it to its name, when all of it is on the disk; collective."""
        self.seal()
        on_root(self.comm, self._commit)

    def _commit(self):
        sync(self.partial)
        os.replace(self.partial, self.path)
        sync(self.path.parent)


class RootFile(PlaneFile):
    """Rank 0 writes; the other ranks send it their planes, a block at a time."""

    def own_planes(self) -> tuple[int, int]:
        """The global planes that this rank wrote to the disk."""
        return (0, self.slab.shape[0] if self.comm.rank == 0 else 0)

    def write(self, name: str, block: Callable):
        """Fill a dataset: `block(begin, end)` gives local planes, (end - begin, …)."""
        together(self.comm, self._write, name, self.plane_bytes(name), block)

    def _write(self, name, plane_bytes, block):
        error, dtype = None, self.places[name].dtype
        for slab in self.slabs:
            for begin, end in blocks(slab.planes, plane_bytes):
                data = self._collect(slab, block, begin, end, dtype, plane_bytes)
                if data is None or error is not None:
                    continue  # after an error the ranks still get rid of what they send
                try:
                    self._store(name, slab.begin + begin, data)
                except OSError as found:
                    error = found
        if error is not None:
            raise error

    def _collect(self, slab, block, begin, end, dtype, plane_bytes):
        """A block of a slab on rank 0, None on the others."""
        rank, data = self.comm.rank, None
        if rank == slab.rank:
            data = np.ascontiguousarray(block(begin, end), dtype).reshape(-1)
        if rank == slab.rank != 0:
            self.comm.Send(data.view(np.uint8), dest=0)
        elif rank == 0 != slab.rank:
            data = np.empty((end - begin) * plane_bytes, np.uint8)
            self.comm.Recv(data, source=slab.rank)
            data = data.view(dtype)
        return data if rank == 0 else None


class OwnFile(PlaneFile):
    """Each rank writes its own planes to their places."""

    def write(self, name: str, block: Callable):
        """As in RootFile."""
        together(self.comm, self._write, name, block)

    def _write(self, name, block):
        for begin, end in blocks(self.slab.planes, self.plane_bytes(name)):
            self.store(name, begin, block(begin, end))

    def store(self, name: str, begin: int, data):
        """Write local planes from `begin` on; for one rank, in any thread, before the commit."""
        self._store(name, self.slab.begin + begin, data)

    def flush(self):
        """Have what this rank wrote on the disk; in any thread."""
        with system_errors(self.path):
            sync(self.partial)

    def commit(self):
        """As in PlaneFile, when the parts of all ranks are on the disk."""
        together(self.comm, self.flush)
        super().commit()


class CollectiveFile(PlaneFile):
    """All ranks write their own planes into the one file (MPI-IO)."""

    def write(self, name: str, block: Callable):
        """As in RootFile. Opening and closing are collective, the writes are not."""
        file = together(self.comm, self._open)
        try:
            together(self.comm, self._write, name, file[name], block)
        except MpilbmError:  # on all ranks, so all can close
            together(self.comm, self._close, file)
            raise
        together(self.comm, self._close, file)

    def _open(self):
        with system_errors(self.path):
            return open_parallel(self.partial, "r+", self.comm)

    def _write(self, name, target, block):
        axis = next(k for k, n in enumerate(target.shape) if n == self.slab.shape[0])
        for begin, end in blocks(self.slab.planes, self.plane_bytes(name)):
            here = (slice(None),) * axis + (slice(self.slab.begin + begin, self.slab.begin + end),)
            shape = (*target.shape[:axis], end - begin, *target.shape[axis + 1 :])
            data = np.ascontiguousarray(block(begin, end), target.dtype)
            self._digest.note(name, self.slab.begin + begin, data.reshape(-1).view(np.uint8).data)
            with system_errors(self.path):
                target[here] = data.reshape(shape)

    def _close(self, file):
        with system_errors(self.path):
            file.close()


@contextmanager
def system_errors(path):
    """Errors of HDF5 as those of the system: OSError with number, text and file."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        number = getattr(error, "errno", None) or _number_in(str(error)) or errno.EIO
        raise OSError(number, os.strerror(number), str(path)) from error


def _number_in(text: str) -> int | None:
    _, found, rest = text.partition("errno = ")
    return int(rest.split(",")[0]) if found else None


def open_parallel(path, mode, comm):
    """A file that all ranks open together, by MPI-IO."""
    import h5py

    return h5py.File(path, mode, driver="mpio", comm=comm, locking="best-effort")
