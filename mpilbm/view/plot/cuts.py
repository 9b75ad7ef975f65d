"""Planes of a snapshot that are drawn."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpilbm.case.quantities import UnitError, in_si
from mpilbm.core.errors import CommandError
from mpilbm.core.quantity import QUANTITY
from mpilbm.core.units import LENGTH
from mpilbm.view.plot.middles import through_body
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
        places = [through_body(snapshot, axes[2]) for axes in every]
        return [Cut(*axes, cells, snapshot.middle(axes[2], cells))
                for axes, cells in zip(every, places, strict=True)]  # fmt: skip
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
    low, high = snapshot.ends(axis) if axis >= 0 else (0.0, 0.0)
    if axis < 0 or not low <= position <= high:
        ends = (snapshot.ends(k) for k in range(3))
        sizes = ", ".join(f"{axis}={low / snapshot.cell:g} to {high / snapshot.cell:g}"
                          for axis, (low, high) in zip(AXES, ends, strict=True))  # fmt: skip
        raise CommandError(
            f"--plane {plane}: allowed: an axis and a position in cells, {sizes}; with [units] "
            "also a length, such as x='4 mm'"
        )
    return axis, position


def _length(snapshot: View, text: str) -> float:
    """A length with a unit in m; nan if it is none."""
    found = re.fullmatch(QUANTITY, text)
    if found is None or not snapshot.in_si:
        return float("nan")
    try:
        metres, dimension = in_si(float(found[1]), found[2])
    except UnitError:
        return float("nan")
    return metres if dimension[:3] == LENGTH else float("nan")
