"""Cells at the faces of the box, and how findings name a cell."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpilbm.case.case import Case
from mpilbm.parallel.slabs import Slab

RAISE, OTHER = "raise the viscosity", "use another collision"  # advice
SAFEST = "equilibrium"  # the condition at faces that was stable in the most flows
Nodes = NDArray[np.int64]  # (n, 3): plane, row and x in the box


def spread(n: int, most: int) -> NDArray[np.int64]:
    """At most so many evenly spaced numbers of 0 … n - 1, with both ends."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))


def box_nodes(case: Case, most: int) -> Nodes:
    """Evenly spaced nodes of the box, at most so many along each side."""
    return _nodes([spread(n, most) for n in case.domain.size])


def face_nodes(case: Case, face: str, most: int) -> Nodes:
    """Evenly spaced nodes of the cells at a face, at most so many along each side."""
    axis, size = "xyz".index(face[0]), case.domain.size
    sides = [spread(n, most) for n in size]
    sides[axis] = np.array([0 if face[1] == "-" else size[axis] - 1])
    return _nodes(sides)


def closed_faces(case: Case) -> Iterator[str]:
    """All faces that are not periodic."""
    for axis, periodic in zip("xyz", case.domain.periodic, strict=False):
        yield from () if periodic else (f"{axis}-", f"{axis}+")


def on_slab(nodes: Nodes, slab: Slab) -> Nodes:
    """The nodes that are on a slab."""
    return nodes[(nodes[:, 0] >= slab.begin) & (nodes[:, 0] < slab.end)]


def _nodes(sides: Sequence[NDArray[np.int64]]) -> Nodes:
    """All nodes with these coordinates along x, y and z, sorted."""
    cells = np.array(list(product(*sides)), np.int64)
    x, *rest = cells.T
    row, plane = rest if len(sides) == 3 else (np.zeros_like(x), rest[0])
    return np.unique(np.stack([plane, row, x], axis=1), axis=0)


class Place(NamedTuple):
    """A cell for a finding.

    text  the cell, with the faces at which it is and their boundaries
    key   that of the first of these boundaries; "" inside of the box
    fix   other conditions at these faces, as advice; "" inside of the box
    """

    text: str
    key: str
    fix: str


def place(case: Case, node: Sequence[int]) -> Place:
    """The place of a node (plane, row, x)."""
    plane, row, x = node
    cell = (x, plane) if case.dimensions == 2 else (x, row, plane)
    text = f"cell ({', '.join(map(str, cell))})"
    sides = zip("xyz", cell, case.domain.size, strict=False)
    at = [f"{a}{s}" for a, k, n in sides for s, end in (("-", 0), ("+", n - 1)) if k == end]
    faces = [face for face in closed_faces(case) if face in at]
    here = {
        f"boundary.{k}": each.name
        for face in faces
        for k, each in enumerate(case.boundaries)
        if face in each.where
    }
    if not here:
        return Place(text, "", "")
    names = dict.fromkeys(here.values())
    text += f" at {' and '.join(faces)} ({' and '.join(map(repr, names))})"
    other = "" if SAFEST in names else f", such as '{SAFEST}'"
    return Place(text, next(iter(here)), f"give these faces other conditions{other}")
