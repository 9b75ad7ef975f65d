"""Whether a file at a path that a user names may be replaced.

mpilbm replaces only regular files that it has written, which their content shows:

    HDF5               the digest at the end, see file_digest.py; it is gone if another program has
                       changed the file
    JSON               an object with the keys "mpilbm", "date" and "command"
    PNG, SVG, PDF,     the name of the program, where the format has a place for it
    GIF, MP4, HTML

A symbolic link is never replaced and never followed: replacing it would break the link, following
it would replace a file that the user has not named. A file with the name that is used while writing
(files.PARTIAL) must be one that mpilbm has begun.
"""

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from mpilbm import __version__
from mpilbm.errors import CommandError
from mpilbm.storage.files import partial_of, whole
from mpilbm.system.file_digest import has_digest

PROGRAM = f"mpilbm {__version__}"  # as the program that made a file
# Keyword arguments `metadata` of Matplotlib by the format of a picture
METADATA = {"png": {"Software": PROGRAM}, "svg": {"Creator": PROGRAM}, "pdf": {"Creator": PROGRAM}}
FILM_COMMENT = f"made by {PROGRAM}"
HDF5 = b"\x89HDF\r\n\x1a\n"
MARKS = (
    b"tEXtSoftware\0mpilbm ",
    b"<dc:title>mpilbm ",
    b"/Creator (mpilbm ",
    b"made by mpilbm ",
    b'<meta name="generator" content="mpilbm ',
)
ENDS = 1 << 16  # bytes at the beginning and at the end of a file in which a mark is searched
MOST_JSON = 1 << 26  # bytes
KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def obstacle(path: Path, overwrite: bool = False, how: str = "remove the file first") -> str:
    """Why a file must not be written at `path`, with the fix; "" if it may be.

    `overwrite`: replace any regular file. `how`: what the user can do to replace it.
    """
    found = _obstacle(path, overwrite, _is_own)
    if found == OTHER:
        return f"{OTHER}; choose another name, or {how}"
    if found:
        return f"{found}; choose another name"
    partial = partial_of(path)
    found = _obstacle(partial, overwrite, lambda file: _is_own(file) or _is_begun(file))
    if found:
        return f"{partial}, the name of the file while it is written, {found}; move that file"
    return ""


OTHER = "exists, and mpilbm has not written it"


def _obstacle(path: Path, overwrite: bool, is_own: Any) -> str:
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
    return "" if overwrite or is_own(path) else OTHER


def require(path: Path, overwrite: bool = False) -> None:
    """CommandError unless a file may be written at `path`."""
    if problem := obstacle(path, overwrite):
        raise CommandError(f"{path}: {problem}")


@contextmanager
def replaced(path: Path, mode: str = "w") -> Iterator[IO]:
    """A file to write, see files.whole; CommandError if another file at `path` is not replaced."""
    require(path)
    with whole(path, mode) as file:
        yield file


def _is_own(path: Path) -> bool:
    """Whether the content of a regular file shows that mpilbm has written it."""
    try:
        head, tail = _ends(path)
        if head.startswith(HDF5):
            return has_digest(path)
        if head.lstrip().startswith(b"{"):
            return _is_own_json(path)
    except OSError:
        return False
    return any(mark in part for mark in MARKS for part in (head, tail))


def _is_own_json(path: Path) -> bool:
    if os.path.getsize(path) > MOST_JSON:
        return False
    try:
        found = json.loads(path.read_bytes())
    except ValueError:
        return False
    return isinstance(found, dict) and found.keys() >= {"mpilbm", "date", "command"}


def _is_begun(path: Path) -> bool:
    """Whether a file may be one that a killed process of mpilbm has begun.

    It is empty, has only zeros, or is HDF5 with names of our datasets and attributes.
    """
    try:
        head, _ = _ends(path)
    except OSError:
        return False
    ours = (b"VTKHDF", b"mpilbm"), (b"lattice", b"tails")
    hdf5 = head.startswith(HDF5) and any(all(name in head for name in names) for names in ours)
    return not head.strip(b"\0") or hdf5


def _ends(path: Path) -> tuple[bytes, bytes]:
    """The first and the last bytes of a file."""
    with open(path, "rb") as file:
        head = file.read(ENDS)
        file.seek(max(0, os.path.getsize(path) - ENDS))
        return head, file.read(ENDS)
