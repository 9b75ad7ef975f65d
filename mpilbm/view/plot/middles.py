"""The planes and lines that show a flow: in the middle of the box, or of the body, and in fluid."""

import numpy as np

from mpilbm.view.results.snapshot import View

NEAR = 0.9  # planes with this part of the most solid or fluid cells are as good
SPREAD = 0.25  # if half of all planes have this part of the most solid cells, the middle is drawn
LEAST_FLUID = 0.25  # of the cells on a line


def half_way(n: int) -> slice:
    """The middle cell of n, or both cells next to the middle."""
    return slice((n - 1) // 2, n // 2 + 1)


def through_body(snapshot: View, axis: int) -> slice:
    """The cells of the plane normal to an axis that is drawn.

    It is the middle of the box, but with a body that extends over less than half of the axis it is
    the middle of the planes with the most solid cells. Solid cells at both ends are walls, as of a
    pipe, and no such body. In each case the plane has fluid cells, if there are any.
    """
    middle, lines = half_way(snapshot.u.shape[2 - axis]), snapshot.solid_lines
    if lines is None:
        return middle
    solid = (lines[1].sum(axis=0), lines[0].sum(axis=0), lines[0].sum(axis=1))[axis]
    fluid = np.prod(snapshot.u.shape[:3]) // solid.size - solid
    open_planes = np.flatnonzero(fluid)
    if not open_planes.size:
        return middle
    extra = np.where(fluid > 0, solid - solid.min(), 0)
    ends = extra[open_planes[[0, -1]]]
    if max(np.median(extra), ends.min()) < SPREAD * extra.max():
        return _nearest(extra, middle)
    return middle if fluid[middle].all() else _nearest(fluid, middle)


def _nearest(count: np.ndarray, middle: slice) -> slice:
    """The middle if its count is among the largest, else the place in the middle of these."""
    good = count >= NEAR * count.max()
    if good[middle].all():
        return middle
    places = np.flatnonzero(good)
    at = int(places[abs(places - places.mean()).argmin()])
    return slice(at, at + 1)


def through_fluid(snapshot: View, axis: int) -> tuple[slice, ...]:
    """The index (z, y, x) of the line along an axis that is drawn.

    It is in the middle of the box; if few of its cells are fluid, the nearest with the most fluid.
    """
    shape, kept = snapshot.u.shape[:3], 2 - axis
    index = [slice(None) if k == kept else half_way(n) for k, n in enumerate(shape)]
    others = [k for k in range(3) if k != kept]
    lines = snapshot.solid_lines
    if lines is None:
        return tuple(index)
    fluid = shape[kept] - lines[axis]
    if fluid[tuple(index[k] for k in others)].min() < LEAST_FLUID * shape[kept]:
        places = np.argwhere(fluid == fluid.max())
        distance = places - [(shape[k] - 1) / 2 for k in others]
        best = places[(distance**2).sum(axis=1).argmin()].tolist()
        for k, at in zip(others, best, strict=True):
            index[k] = slice(at, at + 1)
    return tuple(index)
