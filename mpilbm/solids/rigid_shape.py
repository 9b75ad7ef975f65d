"""The surface of a shape in the frame of the body, by formulas, for kernels of moving bodies."""

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import ceil, hypot, inf, isfinite, pi, prod, sqrt

import numpy as np

from mpilbm.solids import Floats

NONE = (inf, inf, inf)
DEPTHS = (1.0, 0.6, 0.2)  # of points within a body, as a part of their distance to the surface
FLAT = 1e-4  # component of a direction below which it is across an axis
SLOPE = 1e-4  # cells, of differences of distances
RAYS, ALONG = 200, 9  # points of a surface, and places along an endless axis
APART, MOST = 0.5, 2**14  # cells between points of an outline; points, about, of one without edges
OUTLINES = 64  # in memory


@dataclass(frozen=True)
class RigidShape:
    """The points between pairs of planes and, if there is a radius, within it from the centre.

    The distance from the centre is measured along the `round_axes`: all axes of a sphere, those
    across the axis of a cylinder. Lengths are in cells, in the frame in which the shape is given.

    centre      (D,), the centre
    half        (D,), half of the distance between the planes across each axis; inf without planes
    radius      0 without a round part
    round_axes  the axes along which the radius is measured
    """

    centre: tuple[float, ...]
    half: tuple[float, ...] = NONE
    radius: float = 0.0
    round_axes: tuple[int, ...] = ()

    field = None  # of distances, which formulas give

    @property
    def dimensions(self) -> int:
        """2 or 3."""
        return len(self.centre)

    @property
    def middle(self) -> Floats:
        """The centre, (3,); z = 0 in 2D."""
        return np.append(self.centre, [0.0] * (3 - self.dimensions))

    @property
    def halves(self) -> tuple[float, ...]:
        """`half` along three axes; inf in 2D along z."""
        return (*self.half[: self.dimensions], *NONE[self.dimensions :])

    @property
    def endless(self) -> tuple[int, ...]:
        """The axes along which it is infinite."""
        return tuple(
            a
            for a in range(self.dimensions)
            if a not in self.round_axes and not isfinite(self.half[a])
        )

    @property
    def reach(self) -> float:
        """The largest distance of a point from the centre, across the `endless` axes."""
        return hypot(self.radius, *(h for h in self.halves if isfinite(h)))

    @property
    def thickness(self) -> float:
        """The least distance between two opposite sides."""
        sides = [h for h in self.halves if isfinite(h)]
        return 2 * min([*sides, *([self.radius] if self.radius else [])])

    @property
    def core(self) -> float:
        """The radius of a ball about the centre, in `bounded` axes, that is inside."""
        return self.thickness / 2

    def extent(self, rotation: Floats) -> tuple[Floats, Floats]:
        """How far the turned shape extends from its centre, downwards and upwards along each axis.

        Without endless parts. rotation: (3, 3) or (n, 3, 3); each result is (3,) or (n, 3).
        """
        finite = [a for a, h in enumerate(self.halves) if isfinite(h)]
        sides = np.abs(rotation[..., finite]) @ [self.halves[a] for a in finite]
        squares = (rotation[..., list(self.round_axes)] ** 2).sum(axis=-1)
        found: Floats = sides + self.radius * np.sqrt(squares)
        return found, found

    def furthest(self, direction: Floats) -> tuple[float, Floats]:
        """How far the shape extends from its centre, and the point there, (3,).

        direction: (3,), a unit vector in the frame of the shape, along no endless axis. Of a face
        or an edge across it the middle.
        """
        height, point = 0.0, np.zeros(3)
        for a, half in enumerate(self.halves):
            if isfinite(half):
                height += abs(float(direction[a])) * half
                point[a] = half * np.sign(direction[a]) * (abs(direction[a]) >= FLAT)
        axes = list(self.round_axes)
        across = float(np.sqrt((direction[axes] ** 2).sum()))
        if across >= FLAT:
            point[axes] += self.radius * direction[axes] / across
        return height + self.radius * across, point

    @property
    def is_round(self) -> bool:
        """Whether it has no planes: a ball, a disc or an infinite cylinder."""
        return not any(isfinite(h) for h in self.halves)

    def distance(self, q: Floats) -> Floats:
        """The distance of points from the surface, (...); inside it is negative and a bound.

        q: (..., 3), the offset from the centre in the frame of the shape.
        """
        planes = [np.abs(q[..., a]) - h for a, h in enumerate(self.halves) if isfinite(h)]
        if self.radius:
            planes.append(np.linalg.norm(q[..., list(self.round_axes)], axis=-1) - self.radius)
        beyond = np.stack(planes, axis=-1)
        outside = np.linalg.norm(np.maximum(beyond, 0), axis=-1)
        found: Floats = outside + np.minimum(beyond.max(axis=-1), 0)
        return found

    def beside(self, q: Floats, within: float) -> tuple[Floats, Floats]:
        """Distances of points from the surface, (n,), and their gradients, (n, 3); q: (n, 3).

        Gradients of points that are not `within` this distance are 0.
        """
        found, gradients = self.distance(q), np.zeros(q.shape)
        some = found < within
        values = self.distance(q[some][:, None] + SLOPE * np.concatenate([np.eye(3), -np.eye(3)]))
        slope = values[:, :3] - values[:, 3:]
        length = np.sqrt((slope**2).sum(axis=1, keepdims=True))
        gradients[some] = slope / np.where(length > 0, length, 1)
        return found, gradients

    def points(self, size: tuple[int, ...], away: float = 0.0) -> Floats:
        """Points at a distance from the surface, (n, 3), as offsets from the centre.

        Those of a shape whose planes and radius are `away` larger: where RAYS from the centre meet
        it, and corners; repeated along endless axes, for a box of `size` cells.
        """
        if away:
            half, radius = tuple(h + away for h in self.half), self.radius and self.radius + away
            return replace(self, half=half, radius=radius).points(size)
        finite = [a for a in range(self.dimensions) if a not in self.endless]
        d = np.zeros((RAYS, 3))
        d[:, finite] = directions(RAYS, len(finite))
        with np.errstate(divide="ignore"):
            ends = [h / np.abs(d[:, a]) for a, h in enumerate(self.halves) if isfinite(h)]
            if self.radius:
                ends.append(self.radius / np.linalg.norm(d[:, list(self.round_axes)], axis=1))
        found = np.min(ends, axis=0)[:, None] * d
        if not self.radius:
            sides = [(-h, h) if isfinite(h) else (0.0,) for h in self.halves]
            found = np.vstack([found, list(product(*sides))])
        for a in self.endless:
            copies = np.linspace(-0.5, 0.5, ALONG)[:, None] * (size[a] * np.eye(3)[a])
            found = (found + copies[:, None]).reshape(-1, 3)
        return found

    def outline(self, size: tuple[int, ...]) -> Floats:
        """Points of the surface by which gaps to other shapes are found, (n, 3), from the centre.

        At most APART from each other on edges, for two edges that cross, and about so beside them
        on shapes with at most MOST points. Endless shapes are as long as the box.
        """
        return _outline(self, size if self.endless else ())

    def spacing(self, size: tuple[int, ...]) -> float:
        """A bound of the distance between neighbours in `outline`; at least 1."""
        return max(1.0, self._apart(size))

    def _apart(self, size: tuple[int, ...]) -> float:
        """The distance between points of faces in `outline`."""
        return max(APART, sqrt(self.surface_to_volume * self.volume(size) / MOST))

    def within(self, size: tuple[int, ...]) -> Floats:
        """Points of the surface and in the body, (n, 3), likewise."""
        points = self.points(size)
        return np.concatenate([depth * points for depth in DEPTHS])

    def volume(self, size: tuple[int, ...]) -> float:
        """The volume in a box of `size` cells; in 2D the area."""
        r, m = self.radius, len(self.round_axes)
        of_round = {0: 1.0, 2: pi * r**2, 3: 4 / 3 * pi * r**3}[m]
        sides = (h for a, h in enumerate(self.halves) if isfinite(h))
        return of_round * prod(2 * h for h in sides) * prod(size[a] for a in self.endless)

    @property
    def surface_to_volume(self) -> float:
        """The area of the surface divided by the volume; in 2D the outline divided by the area."""
        of_planes = sum(1 / h for h in self.halves if isfinite(h))
        return of_planes + (len(self.round_axes) / self.radius if self.radius else 0.0)

    def inertia(self, size: tuple[int, ...]) -> Floats:
        """The tensor of inertia of a density 1 about the centre, (3, 3).

        Endless axes are left out: bodies turn about them only.
        """
        of_round = self.radius**2 / (len(self.round_axes) + 2)  # the mean of x^2 in disc and ball
        squares = np.array(
            [
                of_round if a in self.round_axes else h * h / 3 if isfinite(h) else 0.0
                for a, h in enumerate(self.halves)
            ]
        )
        return self.volume(size) * np.diag(squares.sum() - squares)


@lru_cache(maxsize=OUTLINES)
def _outline(shape: RigidShape, size: tuple[int, ...]) -> Floats:
    """The points of RigidShape.outline; size: the box of an endless shape."""
    D = shape.dimensions
    apart = shape._apart(size)
    if not shape.round_axes:
        found = _of_box(shape.half[:D], apart)
    elif len(shape.round_axes) < D:
        found = _of_cylinder(shape, apart, size)
    else:
        area = shape.surface_to_volume * shape.volume(size)
        count = max(RAYS, ceil(area / apart ** (D - 1)))
        found = shape.radius * directions(count, D)
    return np.pad(found, ((0, 0), (0, 3 - found.shape[1])))


def _of_box(half: tuple[float, ...], apart: float) -> Floats:
    """Points of edges and faces, in 2D of sides, (n, D)."""
    D, sides = len(half), [np.array([-h, h]) for h in half]
    coarse, fine = ([_places(h, most) for h in half] for most in (apart, APART))
    grids = [[*sides[:a], fine[a], *sides[a + 1 :]] for a in range(D)]
    if D == 3:
        grids += [[*coarse[:a], sides[a], *coarse[a + 1 :]] for a in range(D)]
    return np.concatenate([np.stack(np.meshgrid(*g), axis=-1).reshape(-1, D) for g in grids])


def _of_cylinder(shape: RigidShape, apart: float, size: tuple[int, ...]) -> Floats:
    """Points of rings: both edges, the side and the ends; of an endless one of the side."""
    (axis,) = (a for a in range(3) if a not in shape.round_axes)
    r, endless = shape.radius, bool(shape.endless)
    half = size[axis] / 2 if endless else shape.half[axis]
    heights, ends = _places(half, apart), np.array([-half, half])
    rings = [(r, heights if endless else heights[1:-1], apart)]
    if not endless:
        rings += [(r, ends, APART)]
        rings += [(part, ends, apart) for part in np.arange(apart / 2, r, apart)]
    found = []
    for radius, at, most in rings:
        around = directions(max(8, ceil(2 * pi * radius / most)), 2)
        ring = np.zeros((len(at), len(around), 3))
        ring[..., list(shape.round_axes)] = radius * around
        ring[..., axis] = at[:, None]
        found.append(ring.reshape(-1, 3))
    return np.concatenate(found)


def directions(count: int, dimensions: int) -> Floats:
    """Unit vectors at about equal distances, (count, dimensions), for 2 or 3 dimensions."""
    k = np.arange(count) + 0.5
    if dimensions == 2:
        return np.stack([np.cos(2 * pi * k / count), np.sin(2 * pi * k / count)], axis=1)
    z, turn = 1 - 2 * k / count, pi * (3 - sqrt(5)) * k
    across = np.sqrt(1 - z**2)
    return np.stack([across * np.cos(turn), across * np.sin(turn), z], axis=1)


def _places(half: float, most: float) -> Floats:
    """Places from -half to half, at most `most` apart."""
    return np.linspace(-half, half, ceil(2 * half / most) + 1)
