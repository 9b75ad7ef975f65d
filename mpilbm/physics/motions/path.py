"""The path: places and directions of a body at times, from a file."""

from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, PrivateAttr

from mpilbm.core.files.input_arrays import load_numbers
from mpilbm.core.quantity import LENGTH
from mpilbm.core.registry import register
from mpilbm.core.units import LENGTH as METRES
from mpilbm.core.units import TIME, counted
from mpilbm.model.case import Case
from mpilbm.physics.motions import Floats, Motion, Placement

Z = np.array([0.0, 0.0, 1.0])
COLUMNS = {
    2: {3: "t, x, y", 4: "t, x, y, angle"},
    3: {4: "t, x, y, z", 7: "t, x, y, z, rx, ry, rz", 8: "t, x, y, z, qw, qx, qy, qz"},
}


@register("motions", "path")
class Path(Motion):
    """A body on the path that the rows of a CSV file give: t, x, y[, z] and a direction.

    The columns are t, x, y or t, x, y, angle in 2D; t, x, y, z alone, with the angles rx, ry, rz or
    with a quaternion qw, qx, qy, qz in 3D. Angles are in degrees, relative to the shape as it is in
    the case: about x, then y, then z, axes of the box. A quaternion may have any length. The first
    row may hold names. Times increase; before the first and after the last row the body is at rest.

    Between two rows the place is interpolated linearly, and the body turns at a constant rate about
    the axis between both directions by at most 180 degrees (slerp), in 2D by the difference of the
    angles. The velocity therefore jumps at each row: give many rows.
    """

    file: str = Field(description="file.csv", examples=["path.csv"])
    units: Literal["lattice", "si"] = Field(
        "lattice", description="of t and the place: steps and cells, or s and m, with [units]"
    )
    point: Annotated[tuple[float, ...] | None, LENGTH] = Field(
        None,
        description="the point of the shape that is at the given places; without it: its centre",
        examples=[[32, 32, 32]],
    )

    _knots: "Knots | None" = PrivateAttr(None)

    def files(self) -> list[FilePath]:
        """The file of the path."""
        return [FilePath(self.file)]

    def resolved(self, case: Case) -> Self:
        """The path with the rows of its file. Raises ValueError for an invalid file."""
        try:
            rows = load_numbers(case.directory, self.file)
            self._require(case, rows)
        except ValueError as error:
            raise ValueError(f"'{self.file}' {error}") from None
        rows, D = rows.copy(), case.dimensions
        if self.units == "si":
            assert case.units is not None, "see _require"
            rows[:, 0] = case.units.to_lattice(rows[:, 0], TIME)
            rows[:, 1 : 1 + D] = case.units.to_lattice(rows[:, 1 : 1 + D], METRES)
        path = (case.directory / self.file).absolute()
        found = self.model_copy(update={"file": str(path)})
        found._knots = Knots.of(rows, D)
        return found

    def _require(self, case: Case, rows: Floats) -> None:
        """Raise ValueError for rows that are no path."""
        allowed = COLUMNS[case.dimensions]
        if rows.ndim != 2 or rows.shape[1] not in allowed:
            columns = counted(rows.shape[-1], "column")
            texts = " or ".join(allowed.values())
            raise ValueError(f"has {columns}; allowed in {case.dimensions}D: {texts}")
        if not np.isfinite(rows).all():
            raise ValueError("contains values that are not finite; change the file")
        late = np.flatnonzero(np.diff(rows[:, 0]) <= 0)
        if late.size or len(rows) < 2:
            k = late[0] + 2 if late.size else 1
            found = "one row" if not late.size else f"row {k} with t = {rows[k - 1, 0]:g} after "
            found += f"t = {rows[k - 2, 0]:g}" if late.size else ""
            raise ValueError(f"has {found}; allowed: two rows at least, with increasing t")
        if rows.shape[1] == 8 and not (rows[:, 4:] ** 2).sum(axis=1).all():
            raise ValueError("has a quaternion of length 0; give qw, qx, qy, qz such as 1, 0, 0, 0")
        if self.units == "si" and case.units is None:
            raise ValueError("has units = 'si', but the case has no [units]; add [units]")

    def placement(self, t: float | Floats, centre: Floats) -> Placement:
        """Of the row before t, and a part of the way to the next."""
        assert self._knots is not None, "the file is not read yet; call resolved(case)"
        knots, point = self._knots, centre
        if self.point is not None:
            point = np.append(self.point, [0.0, 0.0])[:3]
        times, lengths = knots.t, np.diff(knots.t)
        k = np.clip(np.searchsorted(times, t, "right") - 1, 0, len(lengths) - 1)
        part = np.clip((t - times[k]) / lengths[k], 0, 1)
        moves = ((t >= times[0]) & (t < times[-1]))[..., None]
        way, axis = np.diff(knots.place, axis=0)[k], knots.axis[k]
        rotation = turned(axis, part * knots.angle[k]) @ knots.rotation[k]
        rate = (knots.angle[k] / lengths[k])[..., None]
        angle = knots.total[k] + part * np.diff(knots.total)[k]
        place = knots.place[k] + part[..., None] * way
        velocity = np.where(moves, way / lengths[k][..., None], 0)
        return Placement(rotation, point, place, velocity, np.where(moves, rate * axis, 0), angle)

    def problems(self, case: Case) -> list[str]:
        """Errors: a point with a wrong number of entries."""
        if self.point is None or len(self.point) == case.dimensions:
            return []
        return [f"point: found {counted(len(self.point), 'entry')}; allowed: {case.dimensions}"]


@dataclass(frozen=True, eq=False)
class Knots:
    """The rows of a file: what is known at n times.

    t         (n,), steps
    place     (n, 3), cells
    rotation  (n, 3, 3)
    axis      (n - 1, 3), about which the body turns from each time to the next
    angle     (n - 1,), by which it does
    total     (n,), in 2D the angle; in 3D the sum of `angle`
    """

    t: Floats
    place: Floats
    rotation: Floats
    axis: Floats
    angle: Floats
    total: Floats

    @classmethod
    def of(cls, rows: Floats, D: int) -> "Knots":
        """Of rows in steps and cells, with the columns of COLUMNS."""
        n, given = len(rows), rows[:, 1 + D :]
        place = np.pad(rows[:, 1 : 1 + D], ((0, 0), (0, 3 - D)))
        z = np.tile([0.0, 0.0, 1.0], (n, 1))
        if D == 2:
            total = np.radians(given[:, 0]) if given.shape[1] else np.zeros(n)
            return cls(rows[:, 0], place, turned(z, total), z[1:], np.diff(total), total)
        if given.shape[1] == 4:
            length = np.sqrt((given[:, 1:] ** 2).sum(axis=1))
            unit = given[:, 1:] / np.where(length > 0, length, 1)[:, None]
            R = turned(unit, 2 * np.arctan2(length, given[:, 0]))
        else:
            angles = np.radians(given if given.shape[1] else np.zeros((n, 3)))
            about_x, about_y, about_z = (
                turned(np.tile(np.eye(3)[a], (n, 1)), angles[:, a]) for a in range(3)
            )
            R = about_z @ about_y @ about_x
        axis, angle = axis_and_angle(R[1:] @ np.swapaxes(R[:-1], 1, 2))
        return cls(rows[:, 0], place, R, axis, angle, np.append(0, np.cumsum(angle)))


def turned(axis: Floats, angle: Floats) -> Floats:
    """The rotations (..., 3, 3) by angles (...) about unit vectors (..., 3): Rodrigues' formula."""
    cross = np.cross(np.eye(3), axis[..., None, :])
    sine, versine = np.sin(angle)[..., None, None], (1 - np.cos(angle))[..., None, None]
    found: Floats = np.eye(3) + sine * cross + versine * (cross @ cross)
    return found


def axis_and_angle(R: Floats) -> tuple[Floats, Floats]:
    """The axes (n, 3) and angles (n,), 0 to pi, of rotations (n, 3, 3).

    From the quaternion (w, v), of which the largest component comes from the trace or from the
    diagonal, and the others from it: exact also near 0 and pi.
    """
    d, trace = np.diagonal(R, axis1=1, axis2=2), np.trace(R, axis1=1, axis2=2)
    squares = np.concatenate([1 + trace[:, None], 1 - trace[:, None] + 2 * d], axis=1)  # 4 q^2
    off = R - np.swapaxes(R, 1, 2)
    v = np.stack([off[:, 2, 1], off[:, 0, 2], off[:, 1, 0]], axis=1)  # 4 w v
    products = R + np.swapaxes(R, 1, 2)  # 4 v_a v_b beside the diagonal
    products[:, range(3), range(3)] = squares[:, 1:]
    table = np.zeros((len(R), 4, 4))
    table[:, 0, 0], table[:, 1:, 1:] = squares[:, 0], products
    table[:, 0, 1:] = table[:, 1:, 0] = v
    q = table[np.arange(len(R)), squares.argmax(axis=1)]
    q *= np.where(q[:, :1] < 0, -1, 1) / np.sqrt((q**2).sum(axis=1, keepdims=True))
    length = np.sqrt((q[:, 1:] ** 2).sum(axis=1))
    axis = np.where(length[:, None] > 0, q[:, 1:] / np.where(length > 0, length, 1)[:, None], Z)
    return axis, 2 * np.arctan2(length, q[:, 0])
