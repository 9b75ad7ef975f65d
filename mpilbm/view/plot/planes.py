"""The planes and lines of a snapshot that are drawn: given, or in the middle and in fluid."""

import re
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

from mpilbm.case.quantities import UnitError, in_si
from mpilbm.core.errors import CommandError
from mpilbm.core.quantity import QUANTITY
from mpilbm.core.units import LENGTH
from mpilbm.view.results.snapshot import View

AXES = "xyz"


@dataclass(frozen=True)
class Cut:
    """A plane normal to an axis, drawn with the axes `across` and `up`.

    `cells` are the cells that it cuts: two if it is between cells, whose mean is drawn. `position`
    is in m or in cells, as in the snapshot.
    """

    across: int
    up: int
    normal: int
    cells: slice
    position: float

    @property
    def _index(self) -> tuple[slice, ...]:
        return (slice(None),) * (2 - self.normal) + (self.cells,)

    def mean(self, stored: Any, size: bool = False) -> np.ndarray:
        """Values in the plane, rows along `up`; with `size` the lengths of vectors."""
        values = stored[self._index].astype(float)
        values = np.linalg.norm(values, axis=-1) if size else values
        return values.mean(axis=2 - self.normal)

    def largest(self, stored: Any) -> np.ndarray:
        """The larger value of the cells on both sides, for numbers that have no mean."""
        found: np.ndarray = stored[self._index].astype(float).max(axis=2 - self.normal)
        return found

    def solid(self, snapshot: View) -> np.ndarray:
        """True where a cell of the plane is solid."""
        return np.asarray(snapshot.solid(self._index).any(axis=2 - self.normal))


def cuts_of(snapshot: View, plane: str | None = None) -> list[Cut]:
    """The planes to draw: in 2D the box, in 3D three through the body, or the given one.

    `plane` is "x=32" in cells, or "x=4 mm" with [units]. Raises CommandError for a plane that the
    box does not have.
    """
    if snapshot.dimensions == 2:
        if plane is not None:
            raise CommandError(f"--plane {plane}: has no meaning in two dimensions; remove it")
        return [Cut(0, 1, 2, slice(0, 1), 0.0)]
    every = [(0, 1, 2), (0, 2, 1), (1, 2, 0)]
    if plane is None:
        cuts = []
        for axes in every:
            cells = _through_body(snapshot, axes[2])
            cuts.append(Cut(*axes, cells, snapshot.middle(axes[2], cells)))
        return cuts
    axis, position = _position(snapshot, plane)
    across, up, normal = next(axes for axes in every if axes[2] == axis)
    place = int((position - snapshot.origin[axis]) / snapshot.spacing[axis])
    cell = min(place, snapshot.size[axis] - 1)
    return [Cut(across, up, normal, slice(cell, cell + 1), position)]


def _position(snapshot: View, plane: str) -> tuple[int, float]:
    """The axis and the position in m or in cells, as in the snapshot."""
    name, _, text = plane.partition("=")
    axis = AXES.find(name.strip().lower()) if name.strip() else -1
    try:
        position = float(text) * snapshot.cell
    except ValueError:
        position = _length(snapshot, text)
    low, high = snapshot.ends(axis) if axis >= 0 else (nan, nan)
    if not low <= position <= high:
        ends = [(end / snapshot.cell for end in snapshot.ends(k)) for k in range(3)]
        sizes = ", ".join(f"{x}={a:g} to {b:g}" for x, (a, b) in zip(AXES, ends, strict=True))
        raise CommandError(
            f"--plane {plane}: allowed: an axis and a position in cells, {sizes}; with [units] "
            "also a length, such as x='4 mm'"
        )
    return axis, position


def _length(snapshot: View, text: str) -> float:
    """A length with a unit in m; nan if it is none."""
    found = re.fullmatch(QUANTITY, text)
    if found is None or not snapshot.in_si:
        return nan
    try:
        metres, dimension = in_si(float(found[1]), found[2])
    except UnitError:
        return nan
    return metres if dimension[:3] == LENGTH else nan


NEAR = 0.9  # planes with this part of the most solid or fluid cells are as good
SPREAD = 0.25  # if half of all planes have this part of the most solid cells, the middle is drawn
LEAST_FLUID = 0.25  # of the cells on a line


def half_way(n: int) -> slice:
    """The middle cell of n, or both cells next to the middle."""
    return slice((n - 1) // 2, n // 2 + 1)


def _through_body(snapshot: View, axis: int) -> slice:
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
