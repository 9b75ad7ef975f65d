"""Planes of a staggered lattice at all nodes of the box, for files that know no such lattice."""

import numpy as np


def filled(lattice, values, solid, plane: int, wraps: tuple[bool, bool], rest: float = 0):
    """Values (n, rows, nx[, k]) of stored cells -> (n, rows, 2 nx[, k]), and which are solid.

    `solid`: bool (n, rows, nx); `plane`: number of the first plane in the box; `wraps`: whether x
    and y are periodic. A node that is not stored takes the mean of its neighbours at x - 1 and
    x + 1, which is exact for linear fields; where one of them is solid or beyond a wall, that of
    those at y - 1 and y + 1; else that of whichever of the four are fluid. With none of them fluid
    it is solid, and `rest` is its value. All lies in one plane: the cut does not show.
    """
    shape = (*values.shape[:2], 2 * values.shape[2], *values.shape[3:])
    full, fluid = np.zeros(shape, values.dtype), np.zeros(shape[:3], bool)
    planes, row, k = np.ogrid[: shape[0], : shape[1], : values.shape[2]]
    at = planes, row, lattice.x(plane + planes, row, k)
    full[at], fluid[at] = values, ~solid
    stored = np.zeros(shape[:3], bool)
    stored[at] = True
    sides = [_beside(full, fluid, axis, wraps[2 - axis]) for axis in (2, 1)]
    scalar = values.ndim == 3
    mean, known = full, stored
    for (before, after), there in sides:
        both = there[0] & there[1] & ~known
        mean = np.where(both if scalar else both[..., None], (before + after) / 2, mean)
        known = known | both
    count = sum(side.astype(int) for _, there in sides for side in there)
    total = sum(
        np.where(there if scalar else there[..., None], value, 0)
        for values_beside, theres in sides
        for value, there in zip(values_beside, theres, strict=True)
    )
    weight = np.maximum(count, 1) if scalar else np.maximum(count, 1)[..., None]
    others = ~known & (count > 0)
    mean = np.where(others if scalar else others[..., None], total / weight, mean)
    none = ~known & (count == 0)
    mean[none] = rest
    return mean.astype(values.dtype), none | (stored & ~fluid)


def _beside(full, fluid, axis: int, wraps: bool):
    """(values before, after along an axis), (whether these are fluid) of all nodes."""
    values = [np.roll(full, step, axis) for step in (1, -1)]
    there = [np.roll(fluid, step, axis) for step in (1, -1)]
    if not wraps:
        for side, end in zip(there, (0, -1), strict=True):
            np.moveaxis(side, axis, 0)[end] = False
    return values, there
