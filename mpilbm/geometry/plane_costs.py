"""What the planes of a box cost in a step, so that slabs of equal cost can be cut."""

import numpy as np

from mpilbm.geometry.solids import padded_ids
from mpilbm.links.boundary_links import planes_needed
from mpilbm.parallel.slabs import Slab, split

# Bytes of traffic that take as long as one link of a list: of populations, and of moments, which
# are computed anew for it. From four H200 with equal slabs, two of a rock of porosity 0.3, two of
# 0.9, float32, 2026-11-22: the step less that of as many free cells, ab 130, moments 200.
LINK_BYTES, MOMENTS_LINK_BYTES = 130, 200
PLANES = 16  # looked at together


def slabs(case, ranks: int, costs=None) -> tuple[Slab, ...]:
    """One slab a rank, of equal cost if the costs of all planes are given (None: equal size)."""
    periodic = case.domain.periodic[-1]
    return split(case.shape, ranks, periodic, costs, planes_needed(case))


def plane_costs(case, begin: int, end: int) -> np.ndarray | None:
    """Bytes, int64 (end - begin,), that stand for the time of each plane; None if all are alike.

    That is the traffic of its cells (of the fluid ones, where no others are stored) and that of the
    links to bodies that are in a list. Faces of the box are left out: on all planes but the
    first and last they are alike. Computed from global coordinates, so any rank may do any part.
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
        # one byte a cell for what does look at solids too: planes without fluid have a cost
        costs[first - begin : last - begin] = cells * cell + links * link + rows * nx
    return costs


def _cell_bytes(case) -> int:
    """Bytes that the update of a cell moves: its values and, where neighbours are looked up, 4."""
    layout, lattice = case.layout, case.lattice
    size = np.dtype(case.precision.storage).itemsize
    places = {place for p in range(layout.parities) for place in layout.reads(lattice, p)}
    away = len({place.offset for place in places if any(place.offset)})
    sides = layout.reads(lattice, 0), layout.writes(lattice, 0)
    values = sum(len({place.slot for place in side}) for side in sides)
    return values * size + (4 * away // layout.parities if layout.listed else 0)


def _in_list(case) -> np.ndarray:
    """Bool (bodies + 1,) by id of a cell: a link to it is in a list. Others come back unlisted."""
    grid = case.layout.grid(case.lattice, 1, *case.shape[1:])
    return np.array([False, *(not (grid.turned and b.boundary.reflects) for b in case.bodies)])


def _links(lattice, fluid, listed) -> np.ndarray:
    """Links from fluid to listed cells of each plane, of (planes + 2, rows, nx) cells.

    Rows are taken as unstaggered and closed on themselves: it is an estimate.
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
