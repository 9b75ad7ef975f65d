"""Coefficients of the force on a body: their directions and names, and their means over a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.case.case import Case
from mpilbm.outputs.core.averages import Average, average, last_half
from mpilbm.physics.lattices import AXES
from mpilbm.solids.shapes import Shape
from mpilbm.storage.csv_log import COEFFICIENTS

PARALLEL = 1e-9  # largest part of `lift` across a parallel flow, from rounding


@dataclass(frozen=True)
class Coefficients:
    """c_d, c_l and, in 3D, c_s = 2 F.e / (U^2 A) for the directions e of `directions`.

    velocity   U and its direction; empty: there are no coefficients
    lift       the direction of c_l, see `directions`
    size       A: the area across the flow, in 2D the length
    """

    velocity: Sequence[float]
    lift: Sequence[float] | None
    size: float

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return columns(self.velocity, self.lift) if self.velocity else []

    def values(self, force: NDArray[np.float64]) -> list[float]:
        """The coefficients of a force, (D,)."""
        if not self.velocity:
            return []
        scale = 2 / (sum(v * v for v in self.velocity) * self.size)
        return [scale * float(force @ along) for along in directions(self.velocity, self.lift)]


@dataclass(frozen=True)
class Series:
    """The coefficients of a body in all rows of a run, also of those before a restart."""

    of: Coefficients
    steps: list[int]
    rows: list[list[float]]

    @classmethod
    def of_rows(cls, of: Coefficients, header: list[str], kept: list[str]) -> "Series":
        """The coefficients in the rows that a restart keeps."""
        places = [header.index(name) for name in of.names]
        rows = [row.split(",") for row in kept if places]
        values = [[float(row[place]) for place in places] for row in rows]
        return cls(of, [int(row[0]) for row in rows], values)

    def add(self, step: int, force: NDArray[np.float64]) -> list[float]:
        """The coefficients of the row of a step."""
        found = self.of.values(force)
        if found:
            self.steps.append(step)
            self.rows.append(found)
        return found

    @property
    def averages(self) -> dict[str, Average]:
        """The mean of each coefficient over the last half of the time, by name."""
        half = last_half(self.steps)
        columns, times = zip(*self.rows[half], strict=True), self.steps[half]
        return {n: average(each, times) for n, each in zip(self.of.names, columns, strict=False)}

    @property
    def record(self) -> dict[str, Any]:
        """For summary.json: the averages, and A."""
        size = "length" if len(self.of.velocity) == 2 else "area"
        return {name: each.record for name, each in self.averages.items()} | {size: self.of.size}

    def __str__(self) -> str:
        shown = ", ".join(f"{name} = {each}" for name, each in self.averages.items())
        size = "length {:.5g} cells" if len(self.of.velocity) == 2 else "area {:.5g} cells^2"
        rows = len(self.rows[last_half(self.steps)])
        return f"{shown} (mean of the last {rows} rows; reference {size.format(self.of.size)})"


def directions(velocity: Sequence[float], lift: Sequence[float] | None = None) -> np.ndarray:
    """Unit vectors of drag e, lift l and, in 3D, side force s = l x e, (D, D).

    e is the direction of the flow, and l that of `lift` across the flow, without it the default:
    z, or y for a flow along z; in 2D the other axis. (e, s, l) are right-handed. l and s are nan if
    `lift` is parallel to the flow.
    """
    D = len(velocity)
    e = np.array(velocity, float) / np.sqrt(np.square(velocity).sum())
    along = int(np.abs(e).argmax())
    upwards = D - 1 if along < D - 1 else D - 2
    towards = np.array(lift, float) if lift else np.eye(D)[upwards]
    across = towards - (towards @ e) * e
    size = np.sqrt(across @ across)
    with np.errstate(invalid="ignore", divide="ignore"):
        across = across / (size if size > PARALLEL * np.abs(towards).max() else 0)
    found = [e, across]
    return np.stack([*found, np.cross(across, e)] if D == 3 else found)


def columns(velocity: Sequence[float], lift: Sequence[float] | None = None) -> list[str]:
    """The names of the columns: c_d, c_l and, in 3D, c_s, each with its direction: "c_l +z"."""
    found = directions(velocity, lift)
    return [f"{name} {shown(v)}" for name, v in zip(COEFFICIENTS, found, strict=False)]


def shown(direction: np.ndarray) -> str:
    """A direction in the name of a column: +x, -z, or +0.6x+0.8y."""
    parts = [(axis, v) for axis, v in zip(AXES, direction, strict=False) if abs(v) > PARALLEL]
    if len(parts) == 1:
        ((axis, v),) = parts
        return f"{'+' if v > 0 else '-'}{axis}"
    return "".join(f"{v:+.3g}{axis}" for axis, v in parts)


def width(case: Case, shape: Shape | None, velocity: Sequence[float] | None) -> float | None:
    """The width of a shape across the flow in 2D, its smallest side across the flow in 3D."""
    if shape is None:
        return None
    axis = int(np.abs(velocity or 0).argmax())
    if case.dimensions == 2:
        return shape.frontal_area(axis, case.domain)
    lower, upper = (np.array(bound, float) for bound in shape.bounds())
    side = float(np.delete(upper - lower, axis).min())
    return side if np.isfinite(side) else None
