"""Shapes of bodies. A [[body]] has either a shape or a mask.

Imports physics and lower layers. To add a shape, write one file with a class derived from `Shape`
and `@register("shapes", name)`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.registry import Parameters
from mpilbm.core.units import counted
from mpilbm.model.case import Case
from mpilbm.model.findings import Finding
from mpilbm.solids import Floats, inside_distance, periodic_images
from mpilbm.solids.periodic_images import Corners, ShapeInBox, bisected
from mpilbm.solids.rigid_shape import RigidShape
from mpilbm.solids.shares import around_cells, plane_through, share_behind

ALONG = 256  # points along a projection
ACROSS = {2: 2**12, 3: 512}  # lines along each axis across a projection, by dimension


@dataclass(frozen=True)
class Flow:
    """The flow around a body, for estimates.

    speed  the largest given or estimated speed in cells/step; 0 if it is not known
    axis   the axis of the flow (0, 1, 2), or None if it is not known
    """

    speed: float
    axis: int | None


class Shape(Parameters):
    """A set of points; a cell is solid if its centre is in the set.

    Lengths are in cells, the box extends from 0 to nx, ny, nz, cell centres are 0.5, 1.5, …
    Its methods treat a shape as if there were no box: `in_box` adds the images of a shape that
    reaches through a periodic face.
    """

    @property
    def has_surface(self) -> bool:
        """Whether the shape has a surface between cells; otherwise all walls are half-way."""
        return True

    @property
    def cuts(self) -> bool:
        """Whether the shape has sheets, which cut the links between fluid cells; see `first`."""
        return False

    def files(self) -> list[Path]:
        """The files that the shape reads."""
        return []

    @property
    def roughness(self) -> float:
        """Largest velocity through the surface, relative to the speed, that is not an error.

        Formulas of velocities have rounded numbers.
        """
        return 0.01

    def resolved(self, case: Case) -> Self:
        """Return the shape as it is used in this case, such as with the path of its file.

        It is called once, before anything else; `case.directory` is the folder to which paths are
        relative. Raises ValueError for an invalid file.
        """
        return self

    def inside(self, x: Any, y: Any, z: Any = None) -> Any:
        """Return a bool array: whether each point (x, y, z) is in the shape.

        x, y, z: arrays that broadcast against each other; z is None in 2D.
        """
        raise NotImplementedError

    def distance(self, points: NDArray[Any], step: NDArray[Any]) -> Floats:
        """Return q, (n,), 0 <= q <= 1, such that points + q * step lies on the surface.

        points, step: (D, n); `points` are outside the shape, points + step inside. Computed by
        bisection, which finds one of the surfaces if there are several.
        """
        return bisected(self.inside, points, step)

    def share(self, points: NDArray[Any]) -> Floats:
        """Return the share of the unit cell around each point that is in the shape, (n,), 0 to 1.

        points: (D, n). Computed from the plane through the points where the axes of a cell meet the
        surface; exact for planes. A part of the shape that contains neither the centre nor a corner
        of a cell is not found.
        """
        found = np.broadcast_to(self.inside(*points), points.shape[1:]).astype(float)
        cut = np.flatnonzero(around_cells(self.inside, points))
        found[cut] = share_behind(*plane_through(self.inside, points[:, cut]))
        return found

    def signed_distance(self, points: NDArray[Any]) -> Floats:
        """Return the distance of points (D, n) from the surface, negative inside, (n,).

        For bodies that move, at points within about two cells of the surface; for others any larger
        distance of this sign is allowed. Computed from `inside`, see inside_distance.py.
        """
        return inside_distance.signed_distance(self.inside, points)

    def rigid(self, dimensions: int) -> RigidShape | None:
        """Return the surface as formulas in the frame of the shape, for bodies that move.

        None if the shape has no such formulas: then the body moves by `signed_distance`.
        """
        return None

    def first(self, points: NDArray[Any], step: NDArray[Any]) -> Floats:
        """Return q, (n,), 0 <= q <= 1, of the first sheet at points + q * step; nan without one.

        points, step: (D, n). It is called if `cuts`. A link and its reverse must give the same
        answer, also where an end lies on a sheet.
        """
        return np.full(points.shape[1], np.nan)

    def in_box(self, domain: Any) -> ShapeInBox:
        """Return the shape with its images in a box, `case.domain`; see periodic_images.py."""
        return ShapeInBox.of(self, domain)

    def bounds(self) -> Corners:
        """Return the corners (x, y[, z]) of a box that contains the shape; may be infinite."""
        raise NotImplementedError

    def frontal_area(self, axis: int, domain: Any) -> float | None:
        """Return the area of the projection along an axis in cells^2, in 2D its length in cells.

        Only the part in the box `case.domain` counts; a shape that reaches through a periodic face
        counts as a whole. None if a shape has no such area. Computed from ALONG points on each of
        ACROSS lines; for a smooth outline the relative error is about 5e-4.
        """
        low, high = periodic_images.counted(self.bounds(), domain)
        D = len(low)
        counts = [ALONG if k == axis else ACROSS[D] for k in range(D)]
        points = [
            a + (np.arange(n) + 0.5) * (b - a) / n
            for a, b, n in zip(low, high, counts, strict=True)
        ]
        grid = list(np.meshgrid(*points[::-1], indexing="ij", sparse=True))[::-1]  # rows along x
        slow = max(k for k in range(D) if k != axis)
        shape = [1 if k == slow else counts[k] for k in range(D)][::-1]
        met = 0
        for at in points[slow]:
            grid[slow] = np.full((1,) * D, at)
            inside = np.broadcast_to(self.inside(*grid), shape)
            met += int(np.count_nonzero(inside.any(axis=D - 1 - axis)))
        across = [k for k in range(D) if k != axis]
        return met * prod((high[k] - low[k]) / counts[k] for k in across)

    def problems(self, case: Case) -> list[str]:
        """Errors in the parameters, one line each."""
        return []

    def problems_in_cells(self, case: Case) -> list[str]:
        """Errors that follow from the cells of the box, one line each; one rank asks for them."""
        return []

    def findings(self, case: Case, where: str, flow: Flow) -> list[Finding]:
        """Return what is allowed but probably not intended; where: the key of the shape."""
        return []

    def contents(self) -> list[tuple[str, str]]:
        """Return what the files of the shape contain, for `check`: texts, each with a remark."""
        return []

    def wrong_lengths(self, case: Case, *keys: str) -> list[str]:
        """A line for each of the keys whose vector does not have one entry per dimension."""
        wanted = case.dimensions
        axes = ", ".join("xyz"[:wanted])
        return [
            f"{key} = {list(getattr(self, key))} has {counted(len(getattr(self, key)), 'entry')}; "
            f"give {wanted} ({axes}) in {wanted}D"
            for key in keys
            if len(getattr(self, key)) != wanted
        ]


def around(centre: Sequence[float], half: Sequence[float]) -> Corners:
    """Return the corners of a box, from its centre and half of its size along each axis."""
    lower = tuple(c - h for c, h in zip(centre, half, strict=True))
    return lower, tuple(c + h for c, h in zip(centre, half, strict=True))


def along_and_across(points: Any, centre: Sequence[float], axis: str | None) -> tuple[Any, Any]:
    """Return the offsets of points from a centre along an axis, 0 in 2D, and squared across it."""
    offsets = [p - c for p, c in zip(points, centre, strict=True)]
    along = 0 if len(offsets) == 2 else offsets.pop(number_of(axis))
    return along, sum(offset**2 for offset in offsets)


def wrong_axis(shape: "Shape", case: Case, in_2d: str, *keys: str) -> list[str]:
    """A line if a shape has no `axis` in 3D, and for each of the keys that it has in 2D."""
    if case.dimensions == 3:
        missing = getattr(shape, "axis", None) is None
        return ['axis is missing; give axis = "x", "y" or "z"'] if missing else []
    given = {key: getattr(shape, key) for key in keys if getattr(shape, key) is not None}
    return [f"{k} = {v!r} has no meaning in 2D, where {in_2d}; remove it" for k, v in given.items()]


def number_of(axis: str | None) -> int:
    """Return 0, 1, 2 for x, y, z; raise ValueError for None, which `problems` refuses in 3D."""
    if axis is None:
        raise ValueError("a shape in 3D has no axis")
    return "xyz".index(axis)
