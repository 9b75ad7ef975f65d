"""Reads a triangulated surface from a file, checks it, and repairs it if asked to.

A surface that is not closed, or that contains triangles twice, is repaired in these steps:

1. Vertices closer than CLOSE times the longest side of the bounding box become one. Triangles that
   collapse to an edge by this are dropped.
2. Triangles that repeat earlier ones are dropped.
3. Loose parts are dropped: flat parts that share no vertex with others, and single triangles whose
   edges are all open.
4. Holes are filled: of three or four edges by one or two triangles, larger ones by a fan around
   the centre of their edges. Each vertex has an even number of open edges, so the result is closed.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise, product
from os.path import isfile  # False for a name that is too long
from pathlib import Path

import numpy as np

from mpilbm.core.files.file_origin import mistaken, quoted
from mpilbm.core.units import counted
from mpilbm.solids import Flags, Floats, Ints
from mpilbm.solids.surfaces import AGAIN, Unreadable, obj, ply, stl
from mpilbm.solids.surfaces.triangles import (
    Triangles,
    collapsed,
    components,
    has_edge,
    merged,
    open_edges,
    repeated,
)

LARGEST = 1e15  # coordinates in the file

Reader = Callable[[bytes], tuple[Floats, Ints]]
FORMATS: dict[str, Reader] = {".stl": stl.surface, ".obj": obj.surface, ".ply": ply.surface}
CLOSE = 1e-6  # part of the longest side


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
        fix = "in the program that made it, or set repair = true, which removes them"
        return f"{copies}; allowed: once; remove the copies {fix}"
    also = f" ({counted(twice.size, 'triangle')} more than once)" if twice.size else ""
    return (
        f"{open_text(edges, found.vertices)}{also}; allowed: a closed surface, in which "
        "every edge belongs to two triangles (or another even number); close it in the program "
        "that made it, set repair = true, or thin = true if it is a sheet"
    )


def _loaded(path: Path) -> tuple[Floats, Ints]:
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
        vertex = f"vertex {wrong} (counted from 0) of {len(vertices)}"
        raise ValueError(f"has a face with {vertex}; {AGAIN}")
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


def repaired(surface: Triangles) -> Triangles:
    """Return the surface, closed and without repetitions, with a sentence on the changes."""
    vertices, faces = surface.vertices, surface.faces
    before = open_edges(faces)
    tolerance = CLOSE * float(np.ptp(vertices, axis=0).max())
    index = _close(vertices, tolerance)
    counts = {"vertices merged": int((index != np.arange(len(index))).sum())}
    faces = index[faces]
    for what, find in (
        ("collapsed triangles dropped", collapsed),
        ("repeated triangles dropped", repeated),
        ("triangles of loose flat parts dropped", lambda f: _flat_parts(vertices, f, tolerance)),
        ("loose triangles dropped", _loose),
    ):
        wrong = find(faces)
        if not wrong.all():
            counts[what] = int(wrong.sum())
            faces = faces[~wrong]
    vertices, faces, counts["holes filled"] = _filled(vertices, faces)
    changes = ", ".join(f"{what}: {count}" for what, count in counts.items() if count)
    what = f"closed {open_text(before, surface.vertices)}" if len(before) else "repaired"
    used, index = np.unique(faces, return_inverse=True)  # the bounding box is that of the rest
    return Triangles(
        vertices[used], index.reshape(-1, 3), f"{what}; {changes or 'nothing changed'}"
    )


def open_text(edges: Ints, vertices: Floats) -> str:
    """Text for the number of open edges and the middle of the first one."""
    return f"{counted(len(edges), 'open edge')}, {first_at(vertices[edges[0]])}"


def first_at(points: Floats) -> str:
    """Text for the middle of points (n, 3), where the first of several problems is."""
    at = ", ".join(f"{x:.6g}" for x in points.mean(axis=0))
    return f"the first at [{at}] in coordinates of the file"


def _close(vertices: Floats, tolerance: float) -> Ints:
    """Return for each vertex the first one to which vertices closer than the tolerance lead.

    Two vertices are close if they share a cell of one of eight grids with cells of twice the
    tolerance, of which each is shifted by half a cell along some axes.
    """
    if not tolerance:
        return np.arange(len(vertices))
    scaled = (vertices - vertices.min(axis=0)) / (2 * tolerance)
    pairs = []
    for shift in product((0.0, 0.5), repeat=3):
        cell = np.floor(scaled + shift).astype(np.int64)
        order = np.lexsort(cell.T)
        same = (cell[order[1:]] == cell[order[:-1]]).all(axis=1)
        pairs.append(np.stack([order[1:][same], order[:-1][same]], axis=1))
    return components(np.concatenate(pairs).T, len(vertices))


def _flat_parts(vertices: Floats, faces: Ints, tolerance: float) -> Flags:
    """Whether each triangle is in an open, flat part that shares no vertex with other parts."""
    part = components(faces[:, [0, 1, 1, 2]].reshape(-1, 2).T, len(vertices))
    is_open = np.unique(part[open_edges(faces)])
    order = np.argsort(part[faces[:, 0]], kind="stable")
    parts, begin = np.unique(part[faces[order, 0]], return_index=True)
    wrong = np.zeros(len(faces), bool)
    ends = np.append(begin[1:], len(faces))
    some = np.isin(parts, is_open)
    for first, last in zip(begin[some], ends[some], strict=True):
        mine = order[first:last]
        wrong[mine] = _is_flat(vertices[faces[mine]], tolerance)
    return wrong


def _is_flat(corners: Floats, tolerance: float) -> bool:
    a, b, c = corners.transpose(1, 0, 2)
    normals = np.cross(b - a, c - a)
    lengths = np.sqrt((normals**2).sum(axis=1))
    largest = int(lengths.argmax())
    if not lengths[largest]:
        return True
    height = (corners - a[largest]) @ (normals[largest] / lengths[largest])
    return bool(np.abs(height).max() <= tolerance)


def _loose(faces: Ints) -> Flags:
    """Whether all edges of each triangle are open."""
    first, second, third = has_edge(faces, open_edges(faces)).T
    return first & second & third


def _filled(vertices: Floats, faces: Ints) -> tuple[Floats, Ints, int]:
    """Vertices and faces with the holes filled, and the number of holes."""
    edges = _against(faces, open_edges(faces))
    hole = components(edges.T, len(vertices))[edges[:, 0]]
    order = np.argsort(hole, kind="stable")
    names, begin = np.unique(hole[order], return_index=True)
    added, centres = [faces], [vertices]
    for k, (first, last) in enumerate(pairwise([*begin, len(edges)])):
        mine = edges[order[first:last]]
        centres.append(vertices[mine].mean(axis=(0, 1))[None])
        added.append(_patch(mine, len(vertices) + k))
    return np.concatenate(centres), np.concatenate(added), len(names)


def _against(faces: Ints, edges: Ints) -> Ints:
    """Edges (a, b) or (b, a), against the direction that most of their triangles have."""
    directed = faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)[has_edge(faces, edges).reshape(-1)]
    forward = directed[:, 0] < directed[:, 1]
    size = int(faces.max(initial=0)) + 1
    ordered = np.sort(directed, axis=1)
    keys = edges[:, 0] * size + edges[:, 1]
    at = np.searchsorted(keys, ordered[:, 0] * size + ordered[:, 1])
    balance = np.bincount(at, np.where(forward, 1, -1), len(edges))
    return np.where(balance[:, None] > 0, edges[:, ::-1], edges)


def _patch(edges: Ints, centre: int) -> Ints:
    """The triangles (n, 3) that fill a hole with edges (k, 2); centre: the vertex of a fan."""
    p, q = edges[0]
    others = set(edges.reshape(-1).tolist()) - {p, q}
    if len(edges) == 3:
        return np.array([[p, q, *others]])
    if len(edges) == 4 and len(others) == 2:
        touching = edges[1:][(edges[1:] == q).any(axis=1)][0]
        r = int(touching.sum() - q)
        (s,) = others - {r}
        return np.array([[p, q, r], [r, s, p]])
    return np.column_stack([edges, np.full(len(edges), centre)])
