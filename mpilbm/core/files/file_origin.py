"""What a file contains: whether mpilbm has written it, or which foreign format it has.

Files of mpilbm are recognised by

HDF5               the digest at the end, see file_digest.py; it is gone if another program has
                   changed the file
JSON               an object with the keys "mpilbm", "date" and "command"
PNG, SVG, PDF,     the name of the program, where the format has a place for it
GIF, MP4, HTML
"""

import json
import os
import re
from pathlib import Path
from typing import NamedTuple

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


HEAD = 512  # bytes of a file that `foreign_content` needs
SHOWN = 48  # characters that are quoted
ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Content(NamedTuple):
    """What a file contains, and what the user can do to get the intended one."""

    what: str
    fix: str


PAGE = Content("a web page (HTML)", "download the file itself, not the page that shows it")
POINTER = Content("a Git LFS pointer (the name of a file without its content)", "run git lfs pull")


def _packed(what: str) -> Content:
    return Content(what, "unpack it first")


def _other(what: str) -> Content:
    return Content(what, "convert it, or export it again in an allowed format")


# The beginning of a file, without white space before it and in lower case: its content. Longer
# beginnings precede shorter ones.
BEGINNINGS = {
    b"version https://git-lfs": POINTER,
    b"<!doctype html": PAGE,
    b"<head": PAGE,
    b"<?xml": _other("an XML file"),
    b"<svg": _other("an SVG picture"),
    b"iso-10303-21": _other("a STEP file (CAD)"),
    b"dbrep_drawableshape": _other("a BREP file (CAD)"),
    b"solidworks": _other("a SolidWorks file (CAD)"),
    b"**abcdefghijklmnopqrstuvwxyz": _other("a Parasolid file (CAD)"),
    b"$meshformat": _other("a Gmsh mesh"),
    b"# vtk datafile": _other("a VTK file"),
    b"ply\r": _other("a PLY surface"),
    b"ply\n": _other("a PLY surface"),
    b"off\r": _other("an OFF surface"),
    b"off\n": _other("an OFF surface"),
    b"gltf": _other("a glTF file"),
    b"foamfile": _other("an OpenFOAM file"),
    b"nrrd0": _other("an NRRD image"),
    b"objecttype": _other("the header of a MetaImage"),
    b"%pdf": _other("a PDF document"),
    b"\x89hdf": _other("an HDF5 file"),
    b"\x93numpy": _other("a NumPy array (.npy)"),
    b"\x89png": _other("a PNG picture"),
    b"\xff\xd8\xff": _other("a JPEG picture"),
    b"gif8": _other("a GIF picture"),
    b"bm6": _other("a BMP picture"),
    b"ii*\0": _other("a TIFF picture"),
    b"mm\0*": _other("a TIFF picture"),
    b"\xd0\xcf\x11\xe0": _other("a document of Microsoft Office or a CAD program (OLE)"),
    b"pk\x03\x04": _packed("a zip archive"),
    b"\x1f\x8b": _packed("a gzip archive"),
    b"bzh": _packed("a bzip2 archive"),
    b"\xfd7zxz": _packed("an xz archive"),
    b"\x28\xb5\x2f\xfd": _packed("a Zstandard archive"),
    b"7z\xbc\xaf": _packed("a 7-Zip archive"),
    b"rar!": _packed("a RAR archive"),
}
IGES = b"S      1"  # columns 73 to 80 of the first line


def foreign_content(head: bytes) -> Content | None:
    """What a file contains that begins with `head` (HEAD bytes); None if it is not recognised."""
    if head[72:80] == IGES:
        return _other("an IGES file (CAD)")
    begins = head[:HEAD].removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n").lower()
    if begins.startswith(b"<") and b"<html" in begins:
        return PAGE
    return next((found for start, found in BEGINNINGS.items() if begins.startswith(start)), None)


def mistaken(head: bytes, name: str) -> str:
    """The error for a file that should contain `name`, such as STL, but is something else.

    It follows the name of the file. "" if the content is not recognised, or is `name`.
    """
    found = foreign_content(head)
    if found is None or f" {name} " in f"{found.what} ":
        return ""
    return f"is {found.what}, not {name}: it begins with {quoted(head)}; {found.fix}"


def quoted(head: bytes) -> str:
    """The first bytes of a file as one line of printable text in quotes.

    Runs of spaces are shown as one, and bytes that are no ASCII characters as `\\x00`.
    """
    text = re.sub(" +", " ", head[:HEAD].decode("latin-1"))
    escaped = "".join(c if " " <= c <= "~" else ESCAPES.get(c, f"\\x{ord(c):02x}") for c in text)
    return f"'{escaped[:SHOWN]}'" + " …" * (len(escaped) > SHOWN)
