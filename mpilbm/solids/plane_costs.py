"""Slabs of equal cost: the time of each plane in a step, and how many planes a slab needs.

A slab holds the cells that boundaries read inwards of its faces and away from walls of bodies.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from mpilbm.core.errors import CaseError
from mpilbm.core.units import counted
from mpilbm.model.case import Case
from mpilbm.parallel.slabs import Slab, split
from mpilbm.physics.boundaries import Condition, one_face_each, reflecting
from mpilbm.physics.lattices import AXES, Lattice
from mpilbm.solids import Flags, Ints
from mpilbm.solids.solid_cells import padded_ids

# Bytes of memory traffic that take as long as one link of a boundary list, for layouts of
# populations, and for `moments`, which computes cells at boundaries a second time. Measured on four
# H200 with equal slabs, two of a rock of porosity 0.3 and two of 0.9, float32, 2026-11-22: the time
# of a step minus that of the same number of cells without links; ab 130, moments 200.
LINK_BYTES, MOMENTS_LINK_BYTES = 130, 200
PLANES = 16  # evaluated together


def slabs(case: Case, ranks: int, costs: Ints | None = None) -> tuple[Slab, ...]:
    """Return one slab per rank, of equal cost; of equal size if `costs` is None."""
    periodic = case.domain.periodic[-1]
    return split(case.shape, ranks, periodic, costs, planes_needed(case))


def plane_costs(case: Case, begin: int, end: int) -> Ints | None:
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
    link = _link_bytes(case)
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


def traffic(case: Case, cells: int, links: int) -> int:
    """Return the bytes that a step moves for so many stored cells and listed links to bodies."""
    return cells * _cell_bytes(case) + links * _link_bytes(case)


def _link_bytes(case: Case) -> int:
    """Bytes of memory traffic that take as long as one link of a boundary list."""
    return LINK_BYTES if case.layout.populations else MOMENTS_LINK_BYTES


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
    """Bool (bodies + 1,): whether links to a cell with this id belong to a boundary list.

    The kernel of CUDA devices for a layout applies some walls itself; other devices, which use
    lists, are not counted.
    """
    grid = case.layout.grid(case.lattice, 1, *case.shape[1:])
    applied = reflecting(case) if case.layout.sweeps(case) else ()
    listed = (
        not ((grid.turned and body.boundary.reflects) or body.boundary.conducts or k in applied)
        for k, body in enumerate(case.bodies)
    )
    return np.array([False, *listed])


def listed(case: Case, links: Sequence[int]) -> int:
    """Return the number of links in boundary lists, from the links of each body."""
    return int(np.asarray(links, np.int64) @ _in_list(case)[1:]) if case.bodies else 0


def _links(lattice: Lattice, fluid: Flags, listed: Flags) -> Ints:
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


def inward_step(lattice: Lattice, boundary: Condition) -> tuple[int, int, int]:
    """(planes, rows, cells) from a cell to the next one along the normal; 2 planes if staggered."""
    plane, row, x = lattice.offset_of(boundary.normal(lattice.D))
    return lattice.volume * plane, lattice.volume * row, x


def planes_needed(case: Case) -> tuple[int, int, int]:
    """Smallest number of planes of the first slab, of inner slabs and of the last slab.

    With these, the cells that boundaries read inwards of the first and last plane are local.
    """
    needed = {"-": case.ghost, "+": case.ghost}
    for boundary, planes in _inward_planes(case):
        side = boundary.where[0][1]
        needed[side] = max(needed[side], planes)
    return needed["-"], case.ghost, needed["+"]


def _inward_planes(case: Case) -> Iterator[tuple[Condition, int]]:
    """The boundaries at the first and last plane that read inwards, and the planes they need."""
    for boundary in one_face_each(case.boundaries):
        inward = boundary.capabilities.inward
        if inward and boundary.where[0][0] == "xyz"[case.dimensions - 1]:
            planes = max(map(abs, inward_step(case.lattice, boundary)))
            yield boundary, min(1 + inward * planes, case.shape[0])


def require_planes(case: Case, slab: Slab) -> None:
    """Raise CaseError if a boundary reads cells that its rank does not hold.

    Cells inwards of a face must belong to the same rank. Cells along links may also belong to the
    neighbouring rank.
    """
    _require_behind(case, slab)
    for boundary, needed in _inward_planes(case):
        face = slab.begin == 0 if boundary.where[0][1] == "-" else slab.end == case.shape[0]
        if face and slab.planes < needed:
            raise CaseError(
                f"'{boundary.name}' at {boundary.where[0]} reads {counted(needed - 1, 'cell')} "
                f"inwards, and the rank there owns {counted(slab.planes, 'plane')} of "
                f"{case.shape[0]}; needed: {needed}; start at most "
                f"{counted(case.shape[0] // needed, 'rank')}",
                "boundary",
                case.path,
            )


def _require_behind(case: Case, slab: Slab) -> None:
    """Raise CaseError if the smallest slab has fewer planes than a boundary reads beyond it."""
    everywhere = (*case.boundaries, *(body.boundary for body in case.bodies))
    for boundary in everywhere:
        planes, fewest = case.shape[0], case.shape[0] // slab.ranks
        behind = boundary.capabilities.planes_behind
        if fewest >= behind:
            continue
        fix = f"start at most {counted(planes // behind, 'rank')}"
        if planes < behind:
            fix = f"use more cells along {AXES[case.dimensions - 1]}"
        raise CaseError(
            f"'{boundary.name}' reads {counted(behind, 'cell')} away from its walls, and a "
            f"rank owns {counted(fewest, 'plane')} of {planes}; needed: {behind}; {fix}",
            "boundary",
            case.path,
        )
