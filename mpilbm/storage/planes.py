"""HDF5 files made of planes, written by all ranks: after an error a file is absent.

Rank 0 creates the file with all its metadata under a temporary name; every dataset has its place in
it from the start, plane after plane. Then the planes are written in one of three ways,

    own     each rank writes its own planes to their places, on one node or a parallel file
            system: no messages, and threads may do it
    mpio    all ranks open the file with MPI-IO and write their own planes, where h5py is built
            with MPI
    root    rank 0 receives one block of planes after another from the ranks, in bounded memory,
            and writes them to their places; not by HDF5, since a disk that fills up while HDF5
            writes can leave the library in a state in which it crashes

and rank 0 appends a digest of all bytes, syncs the file and renames it.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from mpilbm.core.errors import MpilbmError
from mpilbm.parallel import Communicator, MessagePassing, on_root, together
from mpilbm.parallel.slabs import Slab
from mpilbm.storage import system_errors
from mpilbm.storage.file_system import best_writer, threads_write
from mpilbm.storage.partial_file import Describe, PartialFile, Place, open_parallel

if TYPE_CHECKING:
    import h5py

BLOCK_BYTES = 16 << 20

Block = Callable[[int, int], np.ndarray]  # (begin, end) -> local planes begin..end


def blocks(planes: int, plane_bytes: int) -> list[tuple[int, int]]:
    """Ranges (begin, end) of planes, each of at most BLOCK_BYTES or one plane."""
    count = max(1, BLOCK_BYTES // max(1, plane_bytes))
    return [(begin, min(begin + count, planes)) for begin in range(0, planes, count)]


class PlaneFiles:
    """Creates the plane files of a run in its folder, all in the best way that is possible there.

    `slabs` are those of all ranks.
    """

    def __init__(self, directory: Path, comm: Communicator, slabs: Sequence[Slab]):
        self.directory, self.comm, self.slabs = Path(directory), comm, slabs

    @cached_property
    def writer(self) -> str:
        """The way: "own", "mpio" or "root"; collective at the first use."""
        return best_writer(self.comm, self.directory)

    @property
    def in_threads(self) -> bool:
        """Whether threads may write the planes of their rank, see OwnFile.store."""
        return self.writer == "own"

    def create(self, name: str, describe: Describe) -> "PlaneFile":
        """A file to write, as a context manager: without `commit()` it is removed. Collective.

        `describe(h5file)` creates its groups, attributes and, by `partial_file.dataset`, its
        datasets.
        """
        kinds: dict[str, type[PlaneFile]] = {
            "own": OwnFile,
            "mpio": CollectiveFile,
            "root": RootFile,
        }
        return kinds[self.writer](*self._of(name), describe, self._threads_write)

    def create_own(self, name: str, describe: Describe) -> "OwnFile":
        """A file whose planes threads of their rank write; requires `in_threads`. Collective."""
        return OwnFile(*self._of(name), describe, self._threads_write)

    def _of(self, name: str) -> tuple[Path, Communicator, Sequence[Slab]]:
        return self.directory / name, self.comm, self.slabs

    @cached_property
    def _threads_write(self) -> str:
        return threads_write(self.directory)


class PlaneFile:
    """A file that all ranks write together. Raises FileSystemError on all of them."""

    def __init__(
        self,
        path: Path,
        comm: Communicator,
        slabs: Sequence[Slab],
        describe: Describe,
        threads_write: str = "in_turns",
    ):
        self.path, self.comm, self.slabs, self.slab = path, comm, slabs, slabs[comm.rank]
        self.file, self._sealed = PartialFile(path, self.slab.shape[0], threads_write), False
        try:
            self.file.use(on_root(comm, self.file.create, describe))
        except BaseException:
            self.discard()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.discard()

    def discard(self) -> None:
        """Remove the file unless it is committed; waits for no other rank."""
        if self.comm.rank == 0:
            self.file.remove()

    @property
    def places(self) -> dict[str, Place]:
        """The places of the datasets."""
        return self.file.places

    def own_planes(self) -> tuple[int, int]:
        """The planes of the box that this rank writes to the disk."""
        return (self.slab.begin, self.slab.end)

    def plane_bytes(self, name: str) -> int:
        """Bytes of one plane of a dataset."""
        return self.file.plane_bytes(name)

    def write(self, name: str, block: Block) -> None:
        """Fill a dataset: `block(begin, end)` returns local planes, (end - begin, …). Collective.

        `end` is at most `blocks` of a plane's bytes after `begin`.
        """
        together(self.comm, self._write, name, block)

    def _write(self, name: str, block: Block) -> None:
        raise NotImplementedError

    def put(self, name: str, values: Any) -> None:
        """Write a whole small dataset from rank 0's array; collective."""
        on_root(self.comm, self.file.put, name, values)

    def gather(self) -> None:
        """Collect the checksums of all ranks on rank 0; collective."""
        self.file.digest.gather(self.comm, *self.own_planes())

    def seal(self) -> None:
        """Append the digest, when all ranks have written everything; collective."""
        if not self._sealed:
            self.gather()
            on_root(self.comm, self.file.append_digest)
            self._sealed = True

    def read_back(self, from_disk: bool = False) -> None:
        """Seal the file, read it and compare its content with the data in memory; collective.

        `from_disk`: read the disk, not the page cache of the operating system.
        """
        self.seal()
        if from_disk:
            together(self.comm, self.file.flush, True)
        together(self.comm, self.file.verify, *self.own_planes())
        on_root(self.comm, self.file.verify_places)

    def commit(self) -> None:
        """Seal the file and rename it to its name, when all of it is on the disk; collective."""
        self.seal()
        on_root(self.comm, self.file.publish)


class RootFile(PlaneFile):
    """Rank 0 writes; the other ranks send it their planes, a block at a time."""

    def own_planes(self) -> tuple[int, int]:
        """All planes on rank 0, none on the others."""
        return (0, self.slab.shape[0] if self.comm.rank == 0 else 0)

    def _write(self, name: str, block: Block) -> None:
        failure = None
        plane_bytes, dtype = self.plane_bytes(name), np.dtype(self.places[name].dtype)
        for slab in self.slabs:
            for begin, end in blocks(slab.planes, plane_bytes):
                local = slab.rank == self.comm.rank
                data = np.ascontiguousarray(block(begin, end), dtype) if local else None
                data = self._collect(slab.rank, data, (end - begin) * plane_bytes)
                if data is None or failure is not None:
                    continue  # after an error the other ranks still complete their sends
                try:
                    self._store(name, slab.begin + begin, data.view(dtype))
                except OSError as error:
                    failure = error
        if failure is not None:
            raise failure

    def _store(self, name: str, plane: int, data: np.ndarray) -> None:
        """Write whole planes of the box from `plane` on; on rank 0."""
        self.file.store(name, plane, data)

    def _collect(self, owner: int, data: np.ndarray | None, size: int) -> np.ndarray | None:
        """The bytes of a block of the rank `owner` on rank 0; None on the others."""
        sent = None if data is None else data.reshape(-1).view(np.uint8)
        if owner == 0 or self.comm.rank not in (0, owner):
            return sent
        comm = cast(MessagePassing, self.comm)
        if sent is not None:
            comm.Send(sent, dest=0)
            return None
        received = np.empty(size, np.uint8)
        comm.Recv(received, source=owner)
        return received


class OwnFile(PlaneFile):
    """Each rank writes its own planes to their places."""

    def _write(self, name: str, block: Block) -> None:
        for begin, end in blocks(self.slab.planes, self.plane_bytes(name)):
            self.store(name, begin, block(begin, end))

    def store(self, name: str, begin: int, data: np.ndarray) -> None:
        """Write local planes from `begin` on; of this rank only, in any thread, before `commit`."""
        self.file.store(name, self.slab.begin + begin, data)

    def flush(self, leave_cache: bool = False) -> None:
        """Write the part of this rank to the disk; in any thread.

        `leave_cache`: also remove it from the page cache of the operating system.
        """
        self.file.flush(leave_cache)

    def check(self, name: str, begin: int, end: int) -> None:
        """Read local planes, and compare them with those written; in any thread."""
        self.file.check(name, self.slab.begin + begin, self.slab.begin + end)

    def checks(self, names: Iterable[str]) -> list[Callable[[], None]]:
        """Work for threads: `check` of all planes of these datasets."""
        return [
            partial(self.check, name, begin, end)
            for name in names
            for begin, end in blocks(self.slab.planes, self.plane_bytes(name))
        ]

    def publish(self, verify: bool = False, before: Callable[[], None] | None = None) -> None:
        """Append the digest, call `before()`, rename the file; on rank 0, in any thread.

        To be called after `gather`. `verify`: read what `checks` do not read.
        """
        self.file.append_digest()
        if verify:
            self.file.verify(0, 1, 1, besides=self.file.digest.by_planes)
            self.file.verify_places()
        if before:
            before()
        self.file.publish()

    def commit(self) -> None:
        """Seal and rename the file, when the parts of all ranks are on the disk; collective."""
        together(self.comm, self.flush)
        super().commit()


class CollectiveFile(PlaneFile):
    """All ranks write their own planes with MPI-IO."""

    def write(self, name: str, block: Block) -> None:
        """Fill a dataset; opening and closing the file are collective, the writes are not."""
        file = together(self.comm, self._open, waits=True)
        try:
            together(self.comm, self._write_to, file[name], name, block)
        except MpilbmError:  # on all ranks, so all can close
            together(self.comm, self._close, file, waits=True)
            raise
        together(self.comm, self._close, file, waits=True)

    def _open(self) -> "h5py.File":
        with system_errors(self.path):
            return open_parallel(self.file.partial, "r+", self.comm)

    def _write_to(self, target: "h5py.Dataset", name: str, block: Block) -> None:
        axis = target.shape.index(self.slab.shape[0])
        for begin, end in blocks(self.slab.planes, self.plane_bytes(name)):
            first, last = self.slab.begin + begin, self.slab.begin + end
            shape = (*target.shape[:axis], end - begin, *target.shape[axis + 1 :])
            data = np.ascontiguousarray(block(begin, end), target.dtype)
            self.file.digest.note(name, first, data.reshape(-1).view(np.uint8).data)
            with system_errors(self.path):
                target[(*[slice(None)] * axis, slice(first, last))] = data.reshape(shape)

    def _close(self, file: "h5py.File") -> None:
        with system_errors(self.path):
            file.close()
