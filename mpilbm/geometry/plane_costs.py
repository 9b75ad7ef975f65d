"""Cost of each plane of a box in a step, for a partition into slabs of equal cost."""

import numpy as np
from numpy.typing import NDArray

from mpilbm.geometry.solids import padded_ids
from mpilbm.links.boundary_links import planes_needed
from mpilbm.parallel.slabs import Slab, split

Flags = NDArray[np.bool_]

# Bytes of traffic that take as long as one link of a list: with populations, and with moments,
# where the cell is computed a second time. From four H200 with equal slabs, two of a rock of
# porosity 0.3, two of 0.9, float32, 2026-11-22: the step minus that of as many cells without links,
# ab 130, moments 200.
LINK_BYTES, MOMENTS_LINK_BYTES = 130, 200
PLANES = 16  # evaluated together


def slabs(case, ranks: int, costs: NDArray[np.int64] | None = None) -> tuple[Slab, ...]:
    """One slab for each rank, of equal cost; of equal size if costs is None."""
    periodic = case.domain.periodic[-1]
    return split(case.shape, ranks, periodic, costs, planes_needed(case))


def plane_costs(case, begin: int, end: int) -> NDArray[np.int64] | None:
    """Bytes, int64 (end - begin,), as a measure of each plane's time; None if all are equal.

    That is the traffic of its cells (only fluid cells, if the layout stores no others) and of its
    listed links to bodies. Faces of the box do not count: they are equal on all planes except the
    first and last. Computed from global coordinates, so any rank can compute any part.
    """
    if not case.bodies:
        return None
    layout, (_, rows, nx) = case.layout, case.shape
    cell, in_list = _cell_bytes(case), _in_list(case)
    link = LINK_BYTES if layout.populations else MOMENTS_LINK_BYTES
    costs = np.empty(end - begin, np.int64)
    for first in range(begin, end, PLANES):
        last = min(first + PLANES, end)
        part = Slab(case.shape, 0, 1, first, last, case.domain.periodic[-1])
        ids = padded_ids(case, part)
        cells = np.count_nonzero(ids[1:-1] == 0, axis=(1, 2)) if layout.listed else rows * nx
        links = _links(case.lattice, ids == 0, in_list[ids])
        # one byte per cell for kernels that also read solid cells: a plane without fluid has a cost
        costs[first - begin : last - begin] = cells * cell + links * link + rows * nx
    return costs


def _cell_bytes(case) -> int:
    """Bytes that the update of a cell moves: its values and, with tables of neighbours, 4 each."""
    layout, lattice = case.layout, case.lattice
    size = np.dtype(case.precision.storage).itemsize
    places = {place for p in range(layout.parities) for place in layout.reads(lattice, p)}
    away = len({place.offset for place in places if any(place.offset)})
    sides = layout.reads(lattice, 0), layout.writes(lattice, 0)
    values = sum(len({place.slot for place in side}) for side in sides)
    return values * size + (4 * away // layout.parities if layout.listed else 0)


def _in_list(case) -> Flags:
    """Bool (bodies + 1,) by id of a cell: whether a link to it is listed; others need no list."""
    grid = case.layout.grid(case.lattice, 1, *case.shape[1:])
    return np.array([False, *(not (grid.turned and b.boundary.reflects) for b in case.bodies)])


def _links(lattice, fluid: Flags, listed: Flags) -> NDArray[np.int64]:
    """Links from fluid to listed cells of each plane, of (planes + 2, rows, nx) cells.

    An estimate: rows count as periodic and not staggered.
    """
    found = np.zeros(len(fluid) - 2, np.int64)
    if not listed.any():
        return found
    for i in range(1, lattice.Q):
        plane, row, x = lattice.offset(i)
        there = listed[1 - plane : len(listed) - 1 - plane]
        there = np.roll(there, (row, x // lattice.volume), (1, 2))
        found += np.count_nonzero(fluid[1:-1] & there, axis=(1, 2))
    return found
