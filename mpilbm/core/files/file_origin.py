"""Whether mpilbm has written a file, which its content shows.

HDF5               the digest at the end, see file_digest.py; it is gone if another program has
                   changed the file
JSON               an object with the keys "mpilbm", "date" and "command"
PNG, SVG, PDF,     the name of the program, where the format has a place for it
GIF, MP4, HTML
"""

import json
import os
from pathlib import Path

from mpilbm import __version__
from mpilbm.core.files.file_digest import has_digest

PROGRAM = f"mpilbm {__version__}"  # as the program that made a file
# Keyword arguments `metadata` of Matplotlib by the format of a picture
METADATA = {"png": {"Software": PROGRAM}, "svg": {"Creator": PROGRAM}, "pdf": {"Creator": PROGRAM}}
FILM_COMMENT = "made by mpilbm"
HDF5 = b"\x89HDF\r\n\x1a\n"
MARKS = {  # beginning of a file: the mark that one of mpilbm contains
    b"\x89PNG": b"tEXtSoftware\0mpilbm ",
    b"<?xml": b"<dc:title>mpilbm ",
    b"%PDF": b"/Creator (mpilbm ",
    b"<!DOCTYPE html>": b'<meta name="generator" content="mpilbm ',
    b"GIF8": FILM_COMMENT.encode(),
    b"ftyp": FILM_COMMENT.encode(),  # MP4, after the four bytes of a length
}
ENDS = 1 << 16  # bytes at the beginning and at the end of a file in which a mark is searched
MOST_JSON = 1 << 26  # bytes


def is_own(path: Path) -> bool:
    """Whether the content of a regular file shows that mpilbm has written it."""
    try:
        head, tail = _ends(path)
        if head.startswith(HDF5):
            return has_digest(path)
        if head.lstrip().startswith(b"{"):
            return _is_own_json(path)
    except OSError:
        return False
    begins = head[4:] if head[4:8] == b"ftyp" else head
    found = [mark for start, mark in MARKS.items() if begins.startswith(start)]
    return any(mark in part for mark in found for part in (head, tail))


def _is_own_json(path: Path) -> bool:
    if os.path.getsize(path) > MOST_JSON:
        return False
    try:
        found = json.loads(path.read_bytes())
    except ValueError:
        return False
    return isinstance(found, dict) and found.keys() >= {"mpilbm", "date", "command"}


def is_begun(path: Path) -> bool:
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
