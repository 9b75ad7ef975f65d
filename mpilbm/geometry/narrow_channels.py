"""Counts the fluid cells of a slab in channels 1 to 3 cells wide between solids.

A cell lies in a channel of w cells if, along one axis, it is one of w consecutive fluid cells
between two solid cells or walls. Planes of other slabs are computed if needed, so the count does
not depend on the partition. Staggered lattices (D3Q13) are not examined.
"""

from functools import reduce
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mpilbm.geometry.cell_counts import NO_CELLS, CellCount
from mpilbm.geometry.solids import fluid_planes
from mpilbm.links.wall_distance import FluidPlane
from mpilbm.physics.boundaries.wall import Wall

Plane = NDArray[np.bool_]
Padding = Literal["wrap"] | tuple[bool, bool]  # periodic, or whether each side is a wall

WIDEST = 3  # cells
STEPS = range(-WIDEST, WIDEST + 1)


def count(case, slab, ids: NDArray[Any]) -> CellCount:
    """The cells of a slab that lie in such channels; ids: see solids.padded_ids."""
    thin, found = min(case.domain.size) <= WIDEST, NO_CELLS
    if case.lattice.staggered or not (thin or ids.any()):
        return found
    walls, (lower, upper) = _walls(case)
    fluid = fluid_planes(case, slab, ids)
    window = [_solid(slab, fluid, local, lower, upper) for local in range(-WIDEST, WIDEST + 1)]
    for local in range(slab.planes):
        if thin or any(plane.any() for plane in window):
            found += CellCount.of_planes(
                _narrow(window, walls, case.dimensions)[None], slab.begin + local
            )
        window = [*window[1:], _solid(slab, fluid, local + 1 + WIDEST, lower, upper)]
    return found


def _walls(case) -> tuple[list[Padding], tuple[bool, bool]]:
    """Return the padding along rows and x, and whether each end of the slowest axis is a wall."""
    faces = {f for b in case.boundaries if isinstance(b, Wall) for f in b.where}
    sides = {axis: (f"{axis}-" in faces, f"{axis}+" in faces) for axis in "xyz"}
    periodic = dict(zip("xyz", case.domain.periodic, strict=False))
    inner: list[Padding] = [
        "wrap" if periodic[axis] else sides[axis] for axis in "yx"[3 - case.dimensions :]
    ]
    return inner, sides["xyz"[case.dimensions - 1]]


def _solid(slab, fluid: FluidPlane, local: int, lower: bool, upper: bool) -> Plane:
    """Bool (rows, nx): the solid cells of a local plane; beyond a face, True for walls."""
    if slab.global_plane(local) is None:
        return np.full(slab.shape[1:], lower if local < 0 else upper)
    return ~fluid(local)


def _narrow(window: list[Plane], walls: list[Padding], dimensions: int) -> Plane:
    """Bool (rows, nx): cells in narrow channels of the middle one of 2 WIDEST + 1 planes."""
    solid = window[WIDEST]
    found = _between({step: window[WIDEST + step] for step in STEPS})
    for axis, wall in zip((0, 1)[3 - dimensions :], walls, strict=True):
        width = [(WIDEST, WIDEST) if axis == a else (0, 0) for a in (0, 1)]
        if wall == "wrap":
            padded = np.pad(solid, width, mode="wrap")
        else:
            padded = np.pad(solid, width, constant_values=[wall if axis == a else (False, False)
                                                           for a in (0, 1)])  # fmt: skip
        along = np.moveaxis(padded, axis, 0)
        parts = {k: along[WIDEST + k : WIDEST + k + solid.shape[axis]] for k in STEPS}
        found |= np.moveaxis(_between(parts), 0, axis)
    return found & ~solid


def _between(shifted: dict[int, Plane]) -> Plane:
    """Bool array: cells with solid cells on both sides and at most WIDEST cells between these.

    shifted: {step: solid cells, shifted by the step along the axis}.
    """
    below, above = (_within(shifted, sign) for sign in (-1, 1))
    pairs = zip(below, reversed(above), strict=True)  # steps a and WIDEST + 1 - a
    found: Plane = reduce(np.logical_or, [a & b for a, b in pairs])
    return found


def _within(shifted: dict[int, Plane], sign: int) -> list[Plane]:
    """Bool arrays: cells with a solid cell within 1, 2, … WIDEST steps in one direction."""
    found = [shifted[sign]]
    for k in range(2, WIDEST + 1):
        found.append(found[-1] | shifted[sign * k])
    return found
