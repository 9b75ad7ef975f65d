"""A triangulated surface, and what its edges and triangles have in common."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


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


def merged(vertices: Floats, faces: Ints) -> Triangles:
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
    keys, size = _edges(faces)
    found, counts = np.unique(keys, return_counts=True)
    odd = found[(counts % 2 == 1) & (found // size != found % size)]
    return np.stack([odd // size, odd % size], 1)


def has_edge(faces: Ints, edges: Ints) -> NDArray[np.bool_]:
    """Whether the edges 01, 12 and 20 of each triangle are among the edges (k, 2), (n, 3)."""
    keys, size = _edges(faces)
    return np.isin(keys, edges[:, 0] * size + edges[:, 1]).reshape(-1, 3)


def _edges(faces: Ints) -> tuple[Ints, int]:
    """A number for each edge (a, b), a <= b, of each triangle: a * size + b; and the size."""
    edges = np.sort(faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    size = int(faces.max(initial=0)) + 1
    return edges[:, 0] * size + edges[:, 1], size


def collapsed(faces: Ints) -> Flags:
    """Whether two corners of each triangle are the same."""
    return (faces == faces[:, [1, 2, 0]]).any(axis=1)


def repeated(faces: Ints) -> Flags:
    """Whether each triangle repeats an earlier one by mistake.

    A triangle that two touching parts share is no mistake: without one of its copies their edges
    would be open. So the copies, first those with the same orientation and then all, are
    repetitions only if there are not more open edges without them.
    """
    ordered = np.sort(faces, axis=1)
    order = np.lexsort(ordered.T)  # stable
    same = (ordered[order[1:]] == ordered[order[:-1]]).all(axis=1)
    nothing = np.zeros(len(faces), bool)
    if not same.any():
        return nothing
    group = np.empty(len(faces), np.int64)
    group[order] = np.cumsum(np.append(True, ~same)[: len(faces)])
    before = len(open_edges(faces))
    k = faces.argmin(axis=1)[:, None]
    second, third = (np.take_along_axis(faces, (k + n) % 3, 1)[:, 0] for n in (1, 2))
    for what in (2 * group + (second < third), group):
        _, first = np.unique(what, return_index=True)
        copies = nothing.copy()
        copies[:] = True
        copies[first] = False
        copies &= ~collapsed(faces)
        if copies.any() and len(open_edges(faces[~copies])) <= before:
            return copies
    return nothing


def components(pairs: Ints, size: int) -> Ints:
    """Return for each of `size` points the smallest point to which pairs (k, 2) connect it."""
    label = np.arange(size)
    while True:
        low = label[pairs].min(axis=1)
        before = label.copy()
        for column in (0, 1):
            np.minimum.at(label, before[pairs[:, column]], low)
            np.minimum.at(label, pairs[:, column], low)
        while not np.array_equal(label, label[label]):
            label = label[label]
        if np.array_equal(label, before):
            return label
