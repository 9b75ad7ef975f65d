"""Reads a triangulated surface from a file, checks it, and closes it if asked to."""

from dataclasses import dataclass, replace
from os.path import isfile  # False for a name that is too long
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.units import counted

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FORMATS = ".stl", ".obj", ".ply"
LARGEST = 1e15  # coordinates in the file
STL_HEADER, STL_TRIANGLE = 84, 50  # bytes of a binary STL file


@dataclass(frozen=True, eq=False)
class Triangles:
    """A surface in the units of its file.

    vertices  float64 (m, 3)
    faces     int64 (n, 3), indices of the corners of each triangle
    repaired  a sentence on what was changed; empty if nothing was
    closed    whether every edge belongs to an even number of triangles
    """

    vertices: Floats
    faces: Ints
    repaired: str = ""
    closed: bool = True


def read(path: Path, repair: bool, thin: bool = False) -> Triangles:
    """Return the surface of a file, with equal vertices merged.

    repair: close an open surface; thin: leave it open. Raises ValueError, whose text follows the
    name of the file, if the file is not a surface, or if it is open and neither is set.
    """
    found = _merged(*_loaded(path))
    edges = open_edges(found.faces)
    if not len(edges):
        return found
    if repair:
        return closed(found)
    if thin:
        return replace(found, closed=False)
    raise ValueError(
        f"has {_counted(edges, found.vertices)}; allowed: a closed surface, in which "
        "every edge belongs to two triangles (or another even number); close it in the program "
        "that made it, set repair = true, or thin = true if it is a sheet"
    )


def _loaded(path: Path) -> tuple[Floats, Ints]:
    """Vertices and faces as the file contains them."""
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"is not a surface; allowed: {', '.join(FORMATS)}")
    if not isfile(path):
        raise ValueError(f"is missing: there is no file {path}; paths are relative to the case")
    trimesh = library()
    try:
        mesh = trimesh.load_mesh(path, process=False)
        vertices = np.array(mesh.vertices, np.float64).reshape(-1, 3)
        faces = np.array(mesh.faces, np.int64).reshape(-1, 3)
        reason = "" if faces.size else _not_text(path)
    except Exception as error:  # of many kinds, for files that are not what their name says
        reason = _reason(path, error)
    if reason:
        raise ValueError(
            f"cannot be read as {path.suffix[1:].upper()} ({reason}); write the file again"
        )
    if not faces.size:
        raise ValueError("contains no triangles; allowed: a surface of triangles; export it again "
                         "with its faces")  # fmt: skip
    if faces.min() < 0 or faces.max() >= len(vertices):
        raise ValueError(f"has a face with vertex {faces.max()} of {len(vertices)}; write the file "
                         "again")  # fmt: skip
    wrong = ~(np.abs(vertices[faces]) < LARGEST).all(axis=(1, 2))
    if wrong.any():
        raise ValueError(
            f"has {counted(int(wrong.sum()), 'triangle')} with coordinates that are not finite "
            f"numbers below {LARGEST:g}, the first is number {int(wrong.argmax())} (counted from "
            "0); write the file again"
        )
    return vertices, faces


def _reason(path: Path, error: Exception) -> str:
    """Why trimesh cannot read a file.

    For text that is not UTF-8 it asks for a package that finds the encoding.
    """
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if not isinstance(error, ImportError | UnicodeError):
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return _not_text(path) or "it is not text in UTF-8"


def _not_text(path: Path) -> str:
    """Why a file without triangles is not a text file, "" if it is one or need not be one.

    trimesh takes a binary STL file of the wrong length for text; if a package that guesses
    encodings is installed, it reads any bytes as a text without triangles.
    """
    kind = path.suffix.lower()
    content = path.read_bytes() if kind in (".stl", ".obj") else b""
    try:
        content.decode("utf-8")
        return ""
    except UnicodeDecodeError:
        pass
    if kind != ".stl" or content.startswith(b"solid") or len(content) < STL_HEADER:
        return "it is not text in UTF-8"
    count = int.from_bytes(content[80:STL_HEADER], "little")
    return (
        f"it has {len(content):,} bytes, but {STL_HEADER + STL_TRIANGLE * count:,} follow from the "
        f"{counted(count, 'triangle')} in its header: it is incomplete or damaged"
    )


def library() -> Any:
    """The package trimesh; ValueError with the command that installs it."""
    try:
        import trimesh
    except ImportError:
        raise ValueError(
            "needs the package trimesh, which is not installed; install it with "
            "pip install 'mpilbm[mesh]'"
        ) from None
    return trimesh


def _merged(vertices: Floats, faces: Ints) -> Triangles:
    """The surface with one vertex for all with the same coordinates."""
    used = vertices[faces].reshape(-1, 3) + 0.0  # -0 becomes 0
    bits = used.view(np.uint64) * np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 1], np.uint64)
    mixed = bits ^ (bits >> np.uint64(29))
    digest = mixed[:, 0] * np.uint64(0x165667B19E3779F9) + mixed[:, 1] ^ mixed[:, 2] << np.uint64(1)
    _, first, index = np.unique(digest, return_index=True, return_inverse=True)
    if not np.array_equal(used[first][index], used):  # two vertices with the same digest
        _, first, index = np.unique(used, axis=0, return_index=True, return_inverse=True)
    return Triangles(used[first], index.reshape(-1, 3).astype(np.int64))


def open_edges(faces: Ints) -> Ints:
    """Return the edges (k, 2) that belong to an odd number of triangles, in order."""
    edges = np.sort(faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    size = int(faces.max()) + 1
    keys, counts = np.unique(edges[:, 0] * size + edges[:, 1], return_counts=True)
    odd = keys[(counts % 2 == 1) & (keys // size != keys % size)]
    return np.stack([odd // size, odd % size], 1)


def _counted(edges: Ints, vertices: Floats) -> str:
    """Text for the number of open edges and the middle of the first one."""
    at = ", ".join(f"{x:.6g}" for x in vertices[edges[0]].mean(axis=0))
    return f"{counted(len(edges), 'open edge')}, the first at [{at}] in coordinates of the file"


def closed(surface: Triangles) -> Triangles:
    """Return the surface closed: by trimesh, then with a fan of triangles for each other hole.

    trimesh merges vertices that are closer than its tolerance, and fills holes of three or four
    edges. The fan joins the edges of a larger hole to their centre. Every vertex has an even number
    of open edges, so the result is closed.
    """
    trimesh = library()
    mesh = trimesh.Trimesh(surface.vertices, surface.faces, process=False)
    before = _counted(open_edges(surface.faces), surface.vertices)
    mesh.merge_vertices()
    merged = len(surface.vertices) - len(mesh.vertices)
    count = len(mesh.faces)
    trimesh.repair.fill_holes(mesh)
    vertices, faces = np.array(mesh.vertices, np.float64), np.array(mesh.faces, np.int64)
    filled, edges = len(faces) - count, open_edges(faces)
    groups = _connected(edges, len(vertices))
    for each in np.unique(groups):
        hole = edges[groups == each]
        apex = np.full(len(hole), len(vertices))
        vertices = np.concatenate([vertices, vertices[hole].mean(axis=(0, 1))[None]])
        faces = np.concatenate([faces, np.column_stack([hole, apex])])
    fans = np.unique(groups).size
    sentence = (
        f"closed {before}; vertices merged: {merged}, triangles added by "
        f"trimesh: {filled}, other holes filled with a fan of triangles: {fans}"
    )
    return Triangles(vertices, faces, sentence)


def _connected(edges: Ints, vertices: int) -> Ints:
    """Return the number of the connected part to which each edge belongs."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(edges)), edges.T), (vertices, vertices))
    return connected_components(graph, directed=False)[1][edges[:, 0]]
