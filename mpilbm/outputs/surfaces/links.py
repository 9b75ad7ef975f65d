"""The cells of a slab that have links to measured bodies."""

from typing import Any, NamedTuple

import numpy as np

from mpilbm.outputs.surfaces.facets import Floats, Ints
from mpilbm.parallel.slabs import Slab
from mpilbm.solids.entry_list import EntryList
from mpilbm.solids.solid_cells import coordinates


class LinkedCells(NamedTuple):
    """n cells of a body each, in the order of MomentumExchange.measured.

    body   int64 (n,), the number of the body
    place  int64 (n, D), the cell in the box
    area   float64 (n, D), the sum of 2 w_i c_i / cs2 over its links, into the fluid
    faces  bool (n, 2 D), whether links along +x, -x, +y, … come from the body
    """

    body: Ints
    place: Ints
    area: Floats
    faces: np.ndarray


def linked_cells(case: Any, slab: Slab, lists: tuple[EntryList, ...]) -> LinkedCells:
    """The cells of measured lists of a slab."""
    lattice, D = case.lattice, case.dimensions
    area = 2 * np.array(lattice.w, float)[:, None] * np.array(lattice.c) / float(lattice.cs2)
    found = [LinkedCells(np.zeros(0, np.int64), np.zeros((0, D), np.int64), np.zeros((0, D)),
                         np.zeros((0, 2 * D), bool))]  # fmt: skip
    for each in lists:
        flags = (each.links & (each.blocked | each.cut)).moving().flags()[:, : lattice.Q]
        place = coordinates(case, slab, each.cells).T
        body = np.array([-1 if owner.body is None else owner.body for owner in each.owners])
        areas = lattice.volume * summed(flags, area)
        found.append(LinkedCells(body[each.member], place, areas, flags[:, _along_axes(lattice)]))
    return LinkedCells(*(np.concatenate(part) for part in zip(*found, strict=True)))


def summed(flags: np.ndarray, vectors: Floats) -> Floats:
    """For each row of flags (n, m) the sum of the vectors (m, D) whose flag is set, (n, D).

    Added in the order of the vectors: the order of a product of matrices may depend on n, and so on
    the number of ranks.
    """
    total = np.zeros((len(flags), vectors.shape[1]))
    for flag, vector in zip(flags.T, vectors, strict=True):
        total[flag] += vector
    return total


def _along_axes(lattice: Any) -> list[int]:
    """Numbers of the directions +x, -x, +y, …; none on a staggered lattice."""
    if lattice.staggered:
        return [0] * (2 * lattice.D)
    c = [tuple(int(v) for v in each) for each in lattice.c]
    unit = np.eye(lattice.D, dtype=int)
    return [c.index(tuple(int(s * v) for v in axis)) for axis in unit for s in (1, -1)]
