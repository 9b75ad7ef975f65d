"""Recognises what a file contains from its first bytes, for messages about wrong files."""

import re
from typing import NamedTuple

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
}  # fmt: skip
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
