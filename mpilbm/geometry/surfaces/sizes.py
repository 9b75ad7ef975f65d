"""Numbers about a body in a flow: its frontal area, and estimates of its boundary layer."""

from collections.abc import Sequence
from math import ceil, sqrt

import numpy as np

from mpilbm.geometry.surfaces.lines import Floats
from mpilbm.geometry.surfaces.surface import FAR, Surface

SAMPLES = 2**18  # lines across the frontal area
TURBULENT = 5e5  # Reynolds number of transition at a flat plate


def frontal_area(surface: Surface, axis: int, size: Sequence[int]) -> float:
    """Return the area of the projection along an axis, in cells^2; in 2D its length, in cells.

    It is the share of SAMPLES lines on a regular grid over the bounding box, cut at the box of
    `size` cells, that meet the surface. For a smooth outline the relative error is about 1e-4.
    """
    points, cell = samples(surface.lower.min(axis=1), surface.upper.max(axis=1), axis, size)
    if not points.size:
        return 0.0
    found, _ = surface.hits(points, np.eye(3)[axis], (-FAR, FAR))
    return float(np.unique(found.line).size * cell)


def samples(
    lower: Sequence[float], upper: Sequence[float], axis: int, size: Sequence[int],
    count: int = SAMPLES,
) -> tuple[Floats, float]:  # fmt: skip
    """Return points (3, m) of a regular grid across an axis, and the area that each stands for.

    The grid covers the box between two corners, as far as it is in a box of `size` cells, with
    about `count` points. The coordinate along the axis is 0, and in 2D z, too.
    """
    across = [k for k in range(len(size)) if k != axis]
    low = np.array([max(lower[k], 0.0) for k in across])
    high = np.array([min(upper[k], size[k]) for k in across])
    extent = high - low
    if (extent <= 0).any():
        return np.zeros((3, 0)), 0.0
    spacing = sqrt(float(np.prod(extent)) / count) if len(across) == 2 else extent[0] / count
    sides, cell = [np.zeros(1)] * 3, 1.0
    for k, start, length in zip(across, low, extent, strict=True):
        n = min(max(1, ceil(length / spacing)), count)
        sides[k] = start + (np.arange(n) + 0.5) * (length / n)
        cell *= length / n
    return np.stack([each.reshape(-1) for each in np.meshgrid(*sides, indexing="ij")]), cell


def y_plus(speed: float, length: float, viscosity: float) -> float:
    """Return y+ = u_tau y / nu of the first cell centre, y = 1/2, at a flat plate.

        u_tau = U sqrt(c_f / 2),  c_f = 0.664 / sqrt(Re) (laminar), 0.026 / Re^(1/7) (turbulent)

    with Re = U length / nu and the turbulent law from Re = 5e5. [White, Viscous Fluid Flow]
    """
    number = speed * length / viscosity
    friction = 0.664 / sqrt(number) if number < TURBULENT else 0.026 / number ** (1 / 7)
    return speed * sqrt(friction / 2) * 0.5 / viscosity
