"""The time that each plane of a box takes in a step, for a partition into slabs of equal cost."""

import numpy as np
from numpy.typing import NDArray

from mpilbm.model.case import Case
from mpilbm.parallel.slabs import Slab, split
from mpilbm.physics.lattices import Lattice
from mpilbm.solids.planes_read import planes_needed
from mpilbm.solids.solids import padded_ids

Flags = NDArray[np.bool_]

# Bytes of memory traffic that take as long as one link of a boundary list, for layouts of
# populations, and for `moments`, which computes cells at boundaries a second time. Measured on four
# H200 with equal slabs, two of a rock of porosity 0.3 and two of 0.9, float32, 2026-11-22: the time
# of a step minus that of the same number of cells without links; ab 130, moments 200.
LINK_BYTES, MOMENTS_LINK_BYTES = 130, 200
PLANES = 16  # evaluated together


def slabs(case: Case, ranks: int, costs: NDArray[np.int64] | None = None) -> tuple[Slab, ...]:
    """Return one slab per rank, of equal cost; of equal size if `costs` is None."""
    periodic = case.domain.periodic[-1]
    return split(case.shape, ranks, periodic, costs, planes_needed(case))


def plane_costs(case: Case, begin: int, end: int) -> NDArray[np.int64] | None:
    """Return the cost of each plane from begin to end - 1 in bytes, int64 (end - begin,).

    The cost is the memory traffic of the cells (of the fluid cells, if the layout stores only
    these) and of the listed links to bodies. Links to faces of the box do not count, because they
    are equal on all planes except the first and last. None if all planes have equal costs. Any rank
    can compute any part, because all data follow from global coordinates.
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
        # one byte per cell for kernels that also read solid cells, so no plane has zero cost
        costs[first - begin : last - begin] = cells * cell + links * link + rows * nx
    return costs


def _cell_bytes(case: Case) -> int:
    """Bytes that the update of a cell moves: stored values, and 4 per entry of neighbour tables."""
    layout, lattice = case.layout, case.lattice
    size = [np.dtype(name).itemsize for name in case.formats.names]
    places = {place for p in range(layout.parities) for place in layout.reads(lattice, p)}
    away = len({place.offset for place in places if any(place.offset)})
    sides = layout.reads(lattice, 0), layout.writes(lattice, 0)
    values = sum(size[slot] for side in sides for slot in {place.slot for place in side})
    return values + (4 * away // layout.parities if layout.listed else 0)


def _in_list(case: Case) -> Flags:
    """Bool (bodies + 1,): whether links to a cell with this id belong to a boundary list."""
    grid = case.layout.grid(case.lattice, 1, *case.shape[1:])
    return np.array([False, *(not (grid.turned and b.boundary.reflects) for b in case.bodies)])


def _links(lattice: Lattice, fluid: Flags, listed: Flags) -> NDArray[np.int64]:
    """Return the number of links from fluid to listed cells for each plane, int64 (planes,).

    fluid, listed: bool (planes + 2, rows, nx). An estimate: rows and x wrap around, and the shift
    of staggered rows is neglected.
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
