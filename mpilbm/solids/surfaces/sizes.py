"""Numbers about a body in a flow: its frontal area, and estimates of its boundary layer."""

from collections.abc import Sequence
from math import sqrt

import numpy as np

from mpilbm.solids.surfaces.lines import hits
from mpilbm.solids.surfaces.surface import Surface

SAMPLES = {2: 2**14, 3: 2**18}  # lines across a projection, by dimension
TURBULENT = 5e5  # Reynolds number of transition at a flat plate


def frontal_area(
    surface: Surface, axis: int, lower: Sequence[float], upper: Sequence[float]
) -> float:
    """Return the area of the projection along an axis, in cells^2; in 2D its length, in cells.

    It is the share of about SAMPLES lines on a regular grid between the corners `lower` and `upper`
    that meet the surface. For a smooth outline the relative error is about 1e-4.
    """
    D = len(lower)
    across = [k for k in range(D) if k != axis]
    low = np.array(lower)[across]
    extent = np.array(upper)[across] - low
    if (extent <= 0).any():
        return 0.0
    spacing = float(np.prod(extent) / SAMPLES[D]) ** (1 / len(across))
    counts = np.ceil(extent / spacing).clip(1, SAMPLES[D]).astype(int)
    # in units of the spacing, in which the lines have the coordinates 0.5, 1.5, …
    triangles = [
        (surface.corners[k] - start) * (n / side)
        for k, start, side, n in zip(across, low, extent, counts, strict=True)
    ]
    centres = [np.arange(n) + 0.5 for n in counts]
    if len(across) == 1:
        triangles.append(surface.corners[2])
        centres.append(np.zeros(1))
    grid = np.stack([each.reshape(-1) for each in np.meshgrid(*centres, indexing="ij")])
    found = hits(np.stack([*triangles, surface.corners[axis]]), grid)
    return float(np.unique(found.line).size * np.prod(extent / counts))


def y_plus(speed: float, length: float, viscosity: float) -> float:
    """Return y+ = u_tau y / nu of the first cell centre, y = 1/2, at a flat plate.

        u_tau = U sqrt(c_f / 2),  c_f = 0.664 / sqrt(Re) (laminar), 0.026 / Re^(1/7) (turbulent)

    with Re = U length / nu and the turbulent law from Re = 5e5. [White, Viscous Fluid Flow]
    """
    number = speed * length / viscosity
    friction = 0.664 / sqrt(number) if number < TURBULENT else 0.026 / number ** (1 / 7)
    return speed * sqrt(friction / 2) * 0.5 / viscosity
