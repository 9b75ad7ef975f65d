"""The surface of a shape in the frame of the body, by formulas, for kernels of moving bodies."""

from dataclasses import dataclass, replace
from itertools import product
from math import hypot, inf, isfinite, pi, prod, sqrt

import numpy as np

from mpilbm.solids import Floats

NONE = (inf, inf, inf)
DEPTHS = (1.0, 0.6, 0.2)  # of points within a body, as a part of their distance to the surface
FLAT = 1e-4  # component of a direction below which it is across an axis
SLOPE = 1e-4  # cells, of differences of distances
RAYS, ALONG = 200, 9  # points of a surface, and places along an endless axis


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

    def beside(self, q: Floats) -> tuple[Floats, Floats]:
        """Distances of points from the surface, (n,), and their gradients, (n, 3); q: (n, 3)."""
        steps = SLOPE * np.concatenate([np.zeros((1, 3)), np.eye(3), -np.eye(3)])
        values = self.distance(q[:, None] + steps)
        slope = values[:, 1:4] - values[:, 4:]
        length = np.sqrt((slope**2).sum(axis=1, keepdims=True))
        return values[:, 0], slope / np.where(length > 0, length, 1)

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
        k = np.arange(RAYS) + 0.5
        z = 1 - 2 * k / RAYS if len(finite) == 3 else np.zeros(RAYS)
        turn = pi * (3 - sqrt(5)) * k if len(finite) == 3 else 2 * pi * k / RAYS
        across = np.sqrt(1 - z**2)
        d[:, finite] = np.stack([across * np.cos(turn), across * np.sin(turn), z])[: len(finite)].T
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
        """Points of the surface by which gaps to other shapes are found, (n, 3), as `points`."""
        return self.points(size)

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
