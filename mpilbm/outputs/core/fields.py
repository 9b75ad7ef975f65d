"""The fields that outputs write: their names, and their values at all nodes of the box."""

from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mpilbm.case.case import Case
    from mpilbm.physics.lattices import Lattice


# Components in files: a vector has three there, also in two dimensions.
COMPONENTS = {"rho": 1, "u": 3, "vorticity": 3, "q_criterion": 1}


def field_problems(names: tuple[str, ...], case: "Case") -> list[str]:
    """Names that are not fields of a flow, or none."""
    own = case.own_fields
    fields = (*COMPONENTS, *own)
    choice, lines = f"choose from {', '.join(fields)}", []
    for name in names:
        if name not in fields:
            near = get_close_matches(name, fields, 1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            lines.append(f"fields: '{name}' is not a field; {choice}{hint}")
    return lines if names else [f"fields: found none; {choice}"]


def filled(
    lattice: "Lattice",
    values: np.ndarray,
    solid: np.ndarray,
    plane: int,
    wraps: tuple[bool, bool],
    rest: float = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Values (n, rows, nx[, k]) of stored cells -> (n, rows, 2 nx[, k]), and a mask of solid nodes.

    `solid`: bool (n, rows, nx); `plane`: number of the first plane in the box; `wraps`: whether x
    and y are periodic. A node that is not stored gets the mean of its neighbours at x - 1 and
    x + 1, which is exact for linear fields. If one of them is solid or beyond a wall, it gets the
    mean of those at y - 1 and y + 1, else the mean of those of the four that are fluid. If fewer
    than half of them are fluid, the node is solid and has the value `rest`; flat faces of bodies
    thus keep their places. All neighbours are in the same plane, so that the result does not depend
    on how the box is split into slabs.
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


def _beside(
    full: np.ndarray, fluid: np.ndarray, axis: int, wraps: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The values before and after each node along an axis, and whether these nodes are fluid."""
    low, high = _there(fluid, axis, wraps)
    return np.roll(full, 1, axis), np.roll(full, -1, axis), low, high


def _there(fluid: np.ndarray, axis: int, wraps: bool) -> tuple[np.ndarray, np.ndarray]:
    """Whether the nodes before and after each node along an axis are fluid."""
    low, high = np.roll(fluid, 1, axis), np.roll(fluid, -1, axis)
    if not wraps:
        np.moveaxis(low, axis, 0)[0] = False
        np.moveaxis(high, axis, 0)[-1] = False
    return low, high
