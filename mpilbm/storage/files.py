"""Files in folders of the user: made without following a link, and whole or not there."""

import os
from contextlib import contextmanager, suppress
from pathlib import Path

PARTIAL = ".partial"


def partial_of(path: Path) -> Path:
    """The temporary name of a file that is being written."""
    return path.with_name(path.name + PARTIAL)


def fresh(path: Path, mode: str = "wb", **options):
    """A new file open for writing; what had its name, a symbolic link too, loses the name only."""
    path.unlink(missing_ok=True)
    return open(path, mode, opener=_exclusive, **options)


def _exclusive(path, flags: int) -> int:
    return os.open(path, flags | os.O_EXCL | os.O_NOFOLLOW, 0o666)


@contextmanager
def whole(path: Path, mode: str = "w", **options):
    """A file to write that gets its name when all of it is on the disk; else nothing is left.

    OSError names the file.
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


def sync(path) -> None:
    """Have a file's or directory's content on the disk before going on."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
