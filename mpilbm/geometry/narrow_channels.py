"""Fluid cells in channels of few cells between solids, counted in slabs.

A cell lies in a channel of w cells if, along one axis, w fluid cells follow each other between
two solid cells or walls. Neighbour planes are looked up, so that the count is the same however the
box is cut. Lattices without nodes at all places (D3Q13) are left out.
"""

from functools import reduce

import numpy as np

from mpilbm.geometry.solids import fluid_plane
from mpilbm.physics.boundaries.wall import Wall

WIDEST = 3  # cells
STEPS = range(-WIDEST, WIDEST + 1)


def count(case, slab, ids) -> tuple[int, int]:
    """Such cells of a slab, and the first of them (-1: none); ids: see solids.padded_ids."""
    thin = min(case.domain.size) <= WIDEST
    if case.lattice.staggered or not (thin or ids.any()):
        return 0, -1
    walls, (lower, upper) = _walls(case)
    window = [_solid(case, slab, ids, local, lower, upper) for local in range(-WIDEST, WIDEST + 1)]
    found, first, size = 0, -1, slab.shape[1] * slab.shape[2]
    for local in range(slab.planes):
        if thin or any(plane.any() for plane in window):
            cells = np.flatnonzero(_narrow(window, walls, case.dimensions))
            if cells.size and first < 0:
                first = int(cells[0]) + (slab.begin + local) * size
            found += cells.size
        window = [*window[1:], _solid(case, slab, ids, local + 1 + WIDEST, lower, upper)]
    return found, first


def _walls(case) -> tuple[list, tuple[bool, bool]]:
    """Of rows and x how to pad: "wrap", or whether each side is a wall; the same of planes."""
    faces = {f for b in case.boundaries if isinstance(b, Wall) for f in b.where}
    sides = {axis: (f"{axis}-" in faces, f"{axis}+" in faces) for axis in "xyz"}
    periodic = dict(zip("xyz", case.domain.periodic, strict=False))
    inner = ["wrap" if periodic[axis] else sides[axis] for axis in "yx"[3 - case.dimensions :]]
    return inner, sides["xyz"[case.dimensions - 1]]


def _solid(case, slab, ids, local: int, lower: bool, upper: bool) -> np.ndarray:
    """Bool (rows, nx): the solid cells of a local plane; beyond a face whether it is a wall."""
    if slab.global_plane(local) is None:
        return np.full(slab.shape[1:], lower if local < 0 else upper)
    if -1 <= local <= slab.planes:
        return ids[local + 1] != 0
    return ~fluid_plane(case, slab, local)


def _narrow(window, walls, dimensions: int) -> np.ndarray:
    """Bool (rows, nx) of the plane in the middle of 2 WIDEST + 1 planes of solid cells."""
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


def _between(shifted: dict) -> np.ndarray:
    """Where solid cells follow on both sides, `shifted`: by step the solid cells so far along."""
    below, above = (_within(shifted, sign) for sign in (-1, 1))
    pairs = zip(below, reversed(above), strict=True)  # steps a and WIDEST + 1 - a
    return reduce(np.logical_or, [a & b for a, b in pairs])


def _within(shifted, sign: int) -> list[np.ndarray]:
    """Where there is a solid cell within 1, 2, … WIDEST steps."""
    found = [shifted[sign]]
    for k in range(2, WIDEST + 1):
        found.append(found[-1] | shifted[sign * k])
    return found
