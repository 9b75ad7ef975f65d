"""Counts the fluid cells of a slab in channels 1 to 3 cells wide between solids.

A cell lies in a channel of w cells if, along one axis, it is one of w consecutive fluid cells
between two solid cells or walls. Planes of other slabs are computed if needed, so the count does
not depend on the partition. Staggered lattices (D3Q13) are not examined.
"""

from functools import reduce
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mpilbm.model.case import Case
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.boundaries.wall import Wall
from mpilbm.solids.cell_counts import CELLS, NO_CELLS, CellCount
from mpilbm.solids.solids import fluid_planes

Cells = NDArray[np.bool_]  # (planes, rows, nx)
Padding = Literal["wrap"] | tuple[bool, bool]  # periodic, or whether each side is a wall

WIDEST = 3  # cells
STEPS = range(-WIDEST, WIDEST + 1)


def count(case: Case, slab: Slab, ids: NDArray[Any]) -> CellCount:
    """The cells of a slab that lie in such channels; ids: see solids.padded_ids."""
    thin, found = min(case.domain.size) <= WIDEST, NO_CELLS
    if case.lattice.staggered or not (thin or ids.any()):
        return found
    walls, ends = _walls(case)
    for begin, end in slab.blocks(CELLS):
        solid = _solid(case, slab, ids, (begin - WIDEST, end + WIDEST), ends)
        if thin or solid.any():
            found += CellCount.of_planes(_narrow(solid, walls, case.dimensions), slab.begin + begin)
    return found


def _walls(case: Case) -> tuple[list[Padding], tuple[bool, bool]]:
    """Return the padding along rows and x, and whether each end of the slowest axis is a wall."""
    faces = {f for b in case.boundaries if isinstance(b, Wall) for f in b.where}
    sides = {axis: (f"{axis}-" in faces, f"{axis}+" in faces) for axis in "xyz"}
    periodic = dict(zip("xyz", case.domain.periodic, strict=False))
    inner: list[Padding] = [
        "wrap" if periodic[axis] else sides[axis] for axis in "yx"[3 - case.dimensions :]
    ]
    return inner, sides["xyz"[case.dimensions - 1]]


def _solid(
    case: Case, slab: Slab, ids: NDArray[Any], span: tuple[int, int], ends: tuple[bool, bool]
) -> Cells:
    """The solid cells of local planes span[0] … span[1] - 1.

    ends: whether the planes beyond the lower and the upper face are walls.
    """
    solid = np.empty((span[1] - span[0], *slab.shape[1:]), bool)
    first, last = max(span[0], 0), min(span[1], slab.planes)
    np.not_equal(ids[1 + first : 1 + last], 0, out=solid[first - span[0] : last - span[0]])
    fluid = fluid_planes(case, slab, ids)
    for local in (*range(span[0], first), *range(last, span[1])):
        inside = slab.global_plane(local) is not None
        solid[local - span[0]] = ~fluid(local) if inside else ends[local > 0]
    return solid


def _narrow(window: Cells, walls: list[Padding], dimensions: int) -> Cells:
    """Cells in narrow channels of a block; the window has WIDEST more planes on each side."""
    planes = len(window) - 2 * WIDEST
    solid = window[WIDEST : WIDEST + planes]
    found = _between({step: window[WIDEST + step :][:planes] for step in STEPS})
    for axis, wall in zip((1, 2)[3 - dimensions :], walls, strict=True):
        width = [(WIDEST, WIDEST) if axis == a else (0, 0) for a in range(3)]
        if wall == "wrap":
            padded = np.pad(solid, width, mode="wrap")
        else:
            padded = np.pad(solid, width, constant_values=[wall if axis == a else (False, False)
                                                           for a in range(3)])  # fmt: skip
        along = np.moveaxis(padded, axis, 0)
        parts = {k: along[WIDEST + k : WIDEST + k + solid.shape[axis]] for k in STEPS}
        found |= np.moveaxis(_between(parts), 0, axis)
    return np.greater(found, solid)


def _between(shifted: dict[int, Cells]) -> Cells:
    """Bool array: cells with solid cells on both sides and at most WIDEST cells between these.

    shifted: {step: solid cells, shifted by the step along the axis}.
    """
    below, above = (_within(shifted, sign) for sign in (-1, 1))
    pairs = zip(below, reversed(above), strict=True)  # steps a and WIDEST + 1 - a
    found: Cells = reduce(np.logical_or, [a & b for a, b in pairs])
    return found


def _within(shifted: dict[int, Cells], sign: int) -> list[Cells]:
    """Bool arrays: cells with a solid cell within 1, 2, … WIDEST steps in one direction."""
    found = [shifted[sign]]
    for k in range(2, WIDEST + 1):
        found.append(found[-1] | shifted[sign * k])
    return found
