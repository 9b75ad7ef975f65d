"""Planes of a staggered lattice at all nodes of the box, for files that know no such lattice."""

import numpy as np


def filled(lattice, values, solid, plane: int, wraps: tuple[bool, bool], rest: float = 0):
    """Values (n, rows, nx[, k]) of stored cells -> (n, rows, 2 nx[, k]), and which are solid.

    `solid`: bool (n, rows, nx); `plane`: number of the first plane in the box; `wraps`: whether x
    and y are periodic. A node that is not stored takes the mean of its neighbours at x - 1 and
    x + 1, which is exact for linear fields; where one of them is solid or beyond a wall, that of
    those at y - 1 and y + 1; else that of whichever of the four are fluid. Where fewer than half of
    them are it is solid, and `rest` is its value: so flat faces of bodies are where they are. All
    lies in one plane, so that the cut does not show.
    """
    planes, rows, nx, *components = values.shape
    kind = np.result_type(values, np.float32)
    full = np.full((planes, rows, 2 * nx, *(components or [1])), rest, kind)
    fluid, known = (np.zeros((*full.shape[:3], 1), bool) for _ in "fk")
    p, row, k = np.ogrid[:planes, :rows, :nx]
    stored = p, row, lattice.x(plane + p, row, k)
    full[stored] = values.reshape(planes, rows, nx, -1)
    fluid[stored], known[stored] = ~solid[..., None], True
    axes = list(zip((2, 1), wraps, strict=True))
    sides = [_beside(full, fluid, *along) for along in axes]
    inside = sum(side.astype(kind) for along in axes for side in _there(fluid | True, *along))
    means = [((before + after) / 2, low & high) for before, after, low, high in sides]
    count = sum(low.astype(kind) + high for _, _, low, high in sides)
    total = sum(before * low + after * high for before, after, low, high in sides)
    means.append((total / np.maximum(count, 1), (count > 0) & (2 * count >= inside)))
    for mean, there in means:
        here = there & ~known
        full = np.where(here, mean, full)
        fluid, known = fluid | here, known | here
    return full.reshape(planes, rows, 2 * nx, *components), ~fluid[..., 0]


def _beside(full, fluid, axis: int, wraps: bool) -> tuple:
    """Values before and after along an axis, and whether these are fluid, of all nodes."""
    return np.roll(full, 1, axis), np.roll(full, -1, axis), *_there(fluid, axis, wraps)


def _there(fluid, axis: int, wraps: bool) -> list:
    """Whether what is before, and after, along an axis is fluid."""
    there = [np.roll(fluid, step, axis) for step in (1, -1)]
    if not wraps:
        for side, end in zip(there, (0, -1), strict=True):
            np.moveaxis(side, axis, 0)[end] = False
    return there
