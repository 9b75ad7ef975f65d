"""Result files: run folder, collective HDF5, CSV, background writing, digests.

Imports no output and no solver. Outputs use it; add a file format here.

This module creates files in the user's folders, complete or absent.
At a path that a user names, mpilbm replaces only regular files that it has written itself, see
core/files/file_origin.py. A symbolic link is never replaced and never followed: replacing it would
break the link, following it would replace a file that the user has not named.
"""

import errno
import mmap
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from mpilbm.core.errors import CommandError
from mpilbm.core.files.file_origin import is_begun, is_own

PARTIAL = ".partial"
OTHER = "exists, and mpilbm has not written it"
KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def partial_of(path: Path) -> Path:
    """The temporary name of a file while it is written."""
    return path.with_name(path.name + PARTIAL)


def fresh(path: Path, mode: str = "wb", **options: Any) -> IO:
    """Create a file and open it for writing.

    An existing file or symbolic link of this name is removed; the target of a link is not changed.
    """
    path.unlink(missing_ok=True)
    flags = os.O_EXCL | os.O_NOFOLLOW
    return open(path, mode, opener=lambda name, more: os.open(name, more | flags, 0o666), **options)


@contextmanager
def whole(path: Path, mode: str = "w", **options: Any) -> Iterator[IO]:
    """A file to write, renamed to `path` when all of it is on the disk; removed after an error.

    Raises OSError with the name of the file.
    """
    partial, options = partial_of(path), options if "b" in mode else {"encoding": "utf-8"} | options
    try:
        with fresh(partial, mode, **options) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def sync(path: Path) -> None:
    """Write the content of a file or folder to the disk and wait for it."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def write(number: int, offset: int, view: memoryview) -> None:
    """Write all bytes to a place in an open file."""
    done = 0
    while done < len(view):
        done += os.pwrite(number, view[done:], offset + done)


def reserve(number: int, offset: int, view: memoryview) -> None:
    """Allocate the place of these bytes in an open file; OSError if there is no room."""
    if view:
        os.posix_fallocate(number, offset, len(view))


def write_mapped(number: int, offset: int, view: memoryview) -> None:
    """Copy all bytes to a reserved part of a file in memory. Threads may do it at the same time."""
    if not view:
        return
    start = offset // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
    with mmap.mmap(number, offset - start + len(view), offset=start) as mapped:
        target = np.frombuffer(mapped, np.uint8)
        target[offset - start :] = view  # releases the lock of the interpreter, unlike mapped[:]
        del target  # which would keep the map open


@contextmanager
def system_errors(path: Path | str) -> Iterator[None]:
    """Convert errors of the system and of HDF5 to OSError with number, text and file name."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        in_message = re.search(r"errno = (\d+)", str(error))  # of HDF5
        number = getattr(error, "errno", None) or int(in_message[1] if in_message else errno.EIO)
        raise OSError(number, os.strerror(number), str(path)) from error


def obstacle(path: Path, overwrite: bool = False, how: str = "remove the file first") -> str:
    """Why a file must not be written at `path`, with the fix; "" if it may be.

    `overwrite`: replace any regular file. `how`: what the user can do to replace it.
    """
    found = _obstacle(path, overwrite, is_own)
    if found == OTHER:
        return f"{OTHER}; choose another name, or {how}"
    if found:
        return f"{found}; choose another name"
    partial = partial_of(path)
    found = _obstacle(partial, overwrite, lambda file: is_own(file) or is_begun(file))
    if found:
        return f"{partial}, the name of the file while it is written, {found}; move that file"
    return ""


def _obstacle(path: Path, overwrite: bool, ours: Callable[[Path], bool]) -> str:
    try:
        mode = os.lstat(path).st_mode
    except (OSError, ValueError):
        return ""  # there is no such file; if it cannot be created, writing it says why
    if stat.S_ISLNK(mode):
        return f"is a symbolic link to {os.readlink(path)}, which is not replaced"
    if stat.S_ISDIR(mode):
        return "is a folder"
    if not stat.S_ISREG(mode):
        return f"is {KINDS.get(stat.S_IFMT(mode), 'no regular file')}, which is not replaced"
    return "" if overwrite or ours(path) else OTHER


def require_replaceable(path: Path) -> None:
    """CommandError unless a file may be written at `path`."""
    if problem := obstacle(path):
        raise CommandError(f"{path}: {problem}")


def replaced(path: Path, mode: str = "w") -> AbstractContextManager[IO]:
    """A file to write, see `whole`; CommandError if another file at `path` is not replaced."""
    require_replaceable(path)
    return whole(path, mode)
