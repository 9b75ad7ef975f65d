"""Any shape as a rigid body: its surface by a field of distances in the frame of the body."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import isfinite, prod
from typing import TYPE_CHECKING

import numpy as np

from mpilbm.core.files import file_state
from mpilbm.solids import Floats
from mpilbm.solids.distance_field import BAND, ON, SPACING, DistanceField
from mpilbm.solids.rigid_shape import NONE, RigidShape, directions
from mpilbm.solids.shares import SMALL

if TYPE_CHECKING:
    from mpilbm.solids.shapes import Shape

DIRECTIONS, POINTS = 200, 400  # in which the surface extends furthest; points of the surface
PROBED = 2**14  # points of the surface whose distance from the opposite side is computed
STEP = 0.25  # cells between places on the way to it
THIN_PART = 0.1  # of the surface, that is at least as thin as `thickness`
NEAR = 0.5  # cells from the surface, within which the field gives distances
KNOWN = BAND - 1e-6  # cells: interpolation rounds BAND itself
ROUNDS = 2  # of better nearest points
KEPT = 64  # fields in memory
BOXES, FEW, MANY = 64, 2**16, 2**31  # points of a field at most: of so many boxes, and more; in all
BEYOND = 4  # points beside a shape, at most


@dataclass(frozen=True, eq=False)
class SampledShape:
    """The body that a field of distances describes, without formulas.

    Volume, centre of mass and inertia are those of the field, see DistanceField.moments.
    """

    field: DistanceField

    halves, radius, round_axes, core = NONE, 0.0, (), 0.0
    endless, is_round = (), False

    @property
    def dimensions(self) -> int:
        """2 or 3."""
        return self.field.dimensions

    @property
    def middle(self) -> Floats:
        """The centre of mass, (3,)."""
        return self.field.moments[1]

    @cached_property
    def reach(self) -> float:
        """The largest distance of a point from the centre."""
        return float(np.sqrt((self._outline**2).sum(axis=1)).max())

    @cached_property
    def thickness(self) -> float:
        """The distance of opposite sides, from which THIN_PART of the surface is nearer.

        2 BAND if it is larger.
        """
        points, normal = self.field.surface
        every = max(1, points.shape[1] // PROBED)
        points, normal = points[:, ::every], normal[:, ::every]
        found = np.full(points.shape[1], 2 * BAND)
        for depth in np.arange(2 * BAND, STEP, -STEP):
            outside = self.field.at(points - depth * normal)[0] > 0
            found[outside] = depth
        return float(np.quantile(found, THIN_PART, method="lower"))

    @cached_property
    def _outline(self) -> Floats:
        return (self.field.surface[0] - self.middle[:, None]).T

    def outline(self, size: tuple[int, ...]) -> Floats:
        """Points of the surface, one for each cell that it cuts, (n, 3), from the centre."""
        return self._outline

    def spacing(self, size: tuple[int, ...]) -> float:
        """A bound of the distance between neighbours in `outline`, but for rare ones."""
        return 1.0

    @cached_property
    def corners(self) -> Floats:
        """The points of the surface that are furthest in DIRECTIONS, (n, 3), from the centre."""
        points = self.field.surface[0] - self.middle[:, None]
        rays = np.pad(directions(DIRECTIONS, self.dimensions), ((0, 0), (0, 3 - self.dimensions)))
        found = [int(np.argmax(each @ points)) for each in rays]
        return points[:, np.unique(found)].T

    def extent(self, rotation: Floats) -> tuple[Floats, Floats]:
        """How far the turned shape extends from its centre, downwards and upwards along each axis.

        rotation: (3, 3) or (n, 3, 3); each result is (3,) or (n, 3).
        """
        turned = rotation @ self.corners.T
        return -turned.min(axis=-1), turned.max(axis=-1)

    def furthest(self, direction: Floats) -> tuple[float, Floats]:
        """How far the shape extends from its centre, and the point there, (3,).

        direction: (3,), a unit vector in the frame of the shape.
        """
        height = (self._outline * direction).sum(axis=1)
        top = int(np.argmax(height))
        return float(height[top]), self._outline[top]

    def distance(self, q: Floats) -> Floats:
        """The distance of points from the surface, (...); BAND and more are bounds of it.

        q: (..., 3), the offset from the centre in the frame of the shape.
        """
        return self._at(q.reshape(-1, 3))[0].reshape(q.shape[:-1])

    def _at(self, q: Floats) -> tuple[Floats, Floats]:
        """Distances (n,) as in `distance` of points (n, 3), and unit normals (n, 3)."""
        points, field = (q + self.middle).T, self.field
        beyond = np.maximum(field.lower[:, None] - points, points - field.upper[:, None])
        away = np.sqrt((np.maximum(beyond[: self.dimensions], 0) ** 2).sum(axis=0))
        distance, gradient = field.at(points)
        size = np.sqrt((gradient**2).sum(axis=0))
        return distance + away, (gradient / np.maximum(size, SMALL)).T

    def beside(self, q: Floats, within: float) -> tuple[Floats, Floats]:
        """Distances of points from the surface, (n,), and normals of the surface there, (n, 3).

        q: (n, 3), as in `distance`. Up to NEAR those of the field; beyond, interpolated distances
        are too small, and the nearest point of the surface is found, from that of the outline on.
        inf for points further away than about BAND, and for those that are certainly not `within`
        this distance.
        """
        found, normals = self._at(q)
        some = np.flatnonzero((found >= NEAR) & (found < min(KNOWN, within)))
        others = found >= NEAR
        if some.size:
            way = q[some] - self._nearest(q[some])
            found[some] = np.sqrt((way**2).sum(axis=1))
            normals[some] = way / found[some, None]
            others[some] = False
        found[others] = np.inf
        return found, normals

    def _nearest(self, q: Floats) -> Floats:
        """The nearest points of the surface, (n, 3), of points q outside, (n, 3)."""
        low, high = q.min(axis=0) - 2 * BAND, q.max(axis=0) + 2 * BAND
        outline = self._outline
        some = ((outline >= low) & (outline <= high)).all(axis=1)
        outline = outline[some] if some.any() else outline
        first = [outline[np.argmin(((each - outline) ** 2).sum(axis=1))] for each in q]
        x = best = np.array(first)
        _, normal = self._at(x)
        for _ in range(ROUNDS):
            way = q - x
            x = x + way - (way * normal).sum(axis=1, keepdims=True) * normal
            distance, normal = self._at(x)
            x = x - distance[:, None] * normal
            distance, normal = self._at(x)
            nearer = ((q - x) ** 2).sum(axis=1) < ((q - best) ** 2).sum(axis=1)
            best = np.where((nearer & (np.abs(distance) < ON))[:, None], x, best)
        return best

    def points(self, size: tuple[int, ...], away: float = 0.0) -> Floats:
        """Points at a distance from the surface, (n, 3), as offsets from the centre.

        POINTS of them at equal distances in the order of cells, and `corners`; moved along the
        normal.
        """
        points, normal = self.field.surface
        places = points + away * normal - self.middle[:, None]
        chosen = places[:, :: max(1, places.shape[1] // POINTS)].T
        ends = self.corners * (1 + away / np.linalg.norm(self.corners, axis=1, keepdims=True))
        return np.concatenate([chosen, ends])

    def within(self, size: tuple[int, ...]) -> Floats:
        """Points of the surface and in the body, (n, 3), likewise."""
        points, share = self.field.cells
        inner = points[:, share == 1] - self.middle[:, None]
        return np.concatenate([self.points(size), inner[:, :: max(1, inner.shape[1] // POINTS)].T])

    def volume(self, size: tuple[int, ...]) -> float:
        """The volume; in 2D the area."""
        return self.field.moments[0]

    @cached_property
    def surface_to_volume(self) -> float:
        """The area of the surface divided by the volume; in 2D the outline divided by the area."""
        return self.field.area / self.field.moments[0]

    def inertia(self, size: tuple[int, ...]) -> Floats:
        """The tensor of inertia of a density 1 about the centre, (3, 3)."""
        second = self.field.moments[2]
        found: Floats = np.trace(second) * np.eye(3) - second
        return found


Rigid = RigidShape | SampledShape


def rigid_of(shape: "Shape | None", size: tuple[int, ...]) -> Rigid:
    """The surface of a shape for kernels of bodies that move: by formulas or by a field.

    size: the box, (D,). Raises ValueError, which says why the shape cannot move.
    """
    if shape is None:
        raise ValueError("found a mask; allowed for a body with a motion: shapes; use voxels")
    return shape.rigid(len(size)) or sampled(shape, size)


def sampled(shape: "Shape", size: tuple[int, ...]) -> SampledShape:
    """The shape by a field of distances. Raises ValueError as `rigid_of`."""
    return _sampled(shape, tuple(map(file_state, shape.files())), size)


@lru_cache(maxsize=KEPT)
def _sampled(shape: "Shape", state: tuple, size: tuple[int, ...]) -> SampledShape:
    low, high = shape.bounds()
    lower = [a if isfinite(a) else 0.0 for a in low]
    upper = [b if isfinite(b) else float(n) for b, n in zip(high, size, strict=True)]
    if any(a >= b for a, b in zip(lower, upper, strict=True)):
        raise ValueError("found an infinite one outside of the box; use a shape of finite size")
    sides = [b - a for a, b in zip(lower, upper, strict=True)]
    count = prod(side / SPACING + 2 * BEYOND for side in sides)
    if count > min(FEW + BOXES * prod(n / SPACING for n in size), MANY):
        found = " x ".join(f"{side:.3g}" for side in sides)
        raise ValueError(
            f"found sides of {found} cells, whose field of distances has {count:.3g} points; "
            f"allowed: {BOXES} times the volume of the box, and 2^31 points; use a smaller shape, "
            "or check its unit"
        )
    field = DistanceField.of(shape.inside, shape.signed_distance, lower, upper)
    faces = [
        f"{'xyz'[a]}{side}"
        for side, ends in (("-", low), ("+", high))
        for a, end in enumerate(ends)
        if not isfinite(end) and _reaches(field, a, side)
    ]
    if faces:
        raise ValueError(
            f"found an infinite one at {', '.join(faces)}; allowed for a body with a motion: a "
            "finite size; give it a length, or cut it with a box"
        )
    if not (field.values < 0).any():
        raise ValueError(
            f"found no point in it, of a grid with a spacing of {SPACING:.2g} cells; use smaller "
            "cells or a larger shape"
        )
    return SampledShape(field)


def _reaches(field: DistanceField, axis: int, side: str) -> bool:
    """Whether a shape is solid at a face of its grid."""
    face = field.values.take(0 if side == "-" else -1, axis=2 - axis)
    return bool((face < 0).any())
