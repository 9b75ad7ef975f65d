"""Reads a triangulated surface from a file, checks it, and repairs it if asked to."""

from collections.abc import Callable
from dataclasses import replace
from os.path import isfile  # False for a name that is too long
from pathlib import Path

import numpy as np

from mpilbm.core.files.file_origin import mistaken, quoted
from mpilbm.core.units import counted
from mpilbm.solids.surfaces import obj, ply, stl
from mpilbm.solids.surfaces.repair import first_at, open_text, repaired
from mpilbm.solids.surfaces.text import AGAIN, Unreadable
from mpilbm.solids.surfaces.triangles import (
    Floats,
    Ints,
    Triangles,
    merged,
    open_edges,
    repeated,
)

LARGEST = 1e15  # coordinates in the file

Reader = Callable[[bytes], tuple[Floats, Ints]]
FORMATS: dict[str, Reader] = {".stl": stl.surface, ".obj": obj.surface, ".ply": ply.surface}


def read(path: Path, repair: bool, thin: bool = False) -> Triangles:
    """Return the surface of a file, with equal vertices merged.

    repair: repair a surface that is open or contains triangles twice; thin: leave it as it is.
    Raises ValueError, whose text follows the name of the file, if the file is not a surface, or if
    it is open or contains triangles twice and neither is set.
    """
    found = merged(*_loaded(path))
    edges = open_edges(found.faces)
    twice = repeated(found.faces) if repair or not thin else np.zeros(0, bool)
    if repair and (len(edges) or twice.any()):
        return repaired(found)
    if not len(edges) and not twice.any():
        return found
    if thin:
        return replace(found, closed=False)
    raise ValueError(f"has {_problem(found, edges, np.flatnonzero(twice))}")


def _problem(found: Triangles, edges: Ints, twice: Ints) -> str:
    """The error for a surface with open edges, or with triangles that occur twice."""
    where = first_at(found.vertices[found.faces[twice[0]]]) if twice.size else ""
    copies = f"{counted(twice.size, 'triangle')} more than once, {where}"
    if not len(edges):
        return (f"{copies}; allowed: once; remove the copies in the program that made it, or set "
                "repair = true, which removes them")  # fmt: skip
    also = f" ({counted(twice.size, 'triangle')} more than once)" if twice.size else ""
    return (
        f"{open_text(edges, found.vertices)}{also}; allowed: a closed surface, in which "
        "every edge belongs to two triangles (or another even number); close it in the program "
        "that made it, set repair = true, or thin = true if it is a sheet"
    )


def _loaded(path: Path) -> tuple[Floats, Ints]:
    """Vertices and faces as the file contains them."""
    kind = path.suffix.lower()
    if kind not in FORMATS:
        raise ValueError(f"is not a surface; allowed: {', '.join(FORMATS)}")
    if not isfile(path):
        raise ValueError(f"is missing: there is no file {path}; paths are relative to the case")
    name = kind[1:].upper()
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(f"cannot be read ({error.strerror}); check the file") from None
    try:
        vertices, faces = FORMATS[kind](data)
    except Unreadable as error:
        raise ValueError(mistaken(data, name) or _unreadable(data, name, error)) from None
    if not faces.size:
        raise ValueError(
            mistaken(data, name)
            or "contains no triangles; allowed: a surface of triangles; export it again with its "
            "faces"
        )
    if faces.min() < 0 or faces.max() >= len(vertices):
        wrong = faces.min() if faces.min() < 0 else faces.max()
        raise ValueError(f"has a face with vertex {wrong} (counted from 0) of {len(vertices)}; "
                         f"{AGAIN}")  # fmt: skip
    wrong = ~(np.abs(vertices[faces]) < LARGEST).all(axis=(1, 2))
    if wrong.any():
        raise ValueError(
            f"has {counted(int(wrong.sum()), 'triangle')} with coordinates that are not finite "
            f"numbers below {LARGEST:g}, the first is number {int(wrong.argmax())} (counted from "
            f"0); {AGAIN}"
        )
    return vertices, faces


def _unreadable(data: bytes, name: str, error: Unreadable) -> str:
    begins = "" if error.reason.startswith("line ") else f"; it begins with {quoted(data)}"
    return f"cannot be read as {name} ({error.reason}{begins}); {error.fix}"
