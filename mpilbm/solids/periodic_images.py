"""Shapes in a box with periodic axes: a shape and its images, moved by whole boxes.

A shape that reaches through a periodic face continues at the opposite face, so that the solid is
periodic as the flow is. A shape itself has no periodic faces: only this module moves points.

A shape that is infinite along a periodic axis, or longer than LONGEST boxes, has no images along
this axis. It fills the box as it is and ends at the faces, even where both ends do not match.
Shapes made of others are made of the images of their parts: in a difference, a box that is larger
than the domain still leaves the hole free.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import ceil, floor
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from mpilbm.solids import Flags, Floats

Corners = tuple[tuple[float, ...], tuple[float, ...]]  # lower and upper (x, y[, z])

LONGEST = 4  # boxes
JUST = 1e-9  # a distance in links at which a point is before a surface
BISECTIONS = 52  # halvings of a step, down to rounding errors


class Solid(Protocol):
    """The methods of a shape that are used here, see solids/shapes."""

    @property
    def cuts(self) -> bool:
        """Whether it has sheets."""

    def bounds(self) -> Corners:
        """The corners of a box around it."""

    def inside(self, x: Any, y: Any, z: Any = None) -> Any:
        """Whether points are inside."""

    def distance(self, points: NDArray[Any], step: NDArray[Any]) -> Floats:
        """The distance of the surface."""

    def share(self, points: NDArray[Any]) -> Floats:
        """The shares of cells."""

    def first(self, points: NDArray[Any], step: NDArray[Any]) -> Floats:
        """Where links meet a sheet."""


@dataclass(frozen=True)
class Image:
    """A shape moved by `shift`."""

    shape: Solid
    shift: tuple[float, ...]

    def inside(self, *points: Any) -> Any:
        """Whether points are in the image, see Shape.inside."""
        return self.shape.inside(*self._in_shape(points))

    def distance(self, points: Floats, step: Floats) -> Floats:
        """The distance of the surface of the image, see Shape.distance."""
        return self.shape.distance(np.stack(self._in_shape(points)), step)

    def share(self, points: Floats) -> Floats:
        """The shares of cells in the image, see Shape.share."""
        return self.shape.share(np.stack(self._in_shape(points)))

    def first(self, points: Floats, step: Floats) -> Floats:
        """Where links meet a sheet of the image, see Shape.first."""
        return self.shape.first(np.stack(self._in_shape(points)), step)

    def bounds(self) -> Corners:
        """The corners of a box around the image."""
        lower, upper = (np.add(corner, self.shift).tolist() for corner in self.shape.bounds())
        return tuple(lower), tuple(upper)

    def _in_shape(self, points: Iterable[Any]) -> list[Any]:
        return [x - s if s else x for x, s in zip(points, self.shift, strict=True)]


@dataclass(frozen=True)
class Cut:
    """An image of a shape without the points of other shapes in the box."""

    image: "Image | Cut"
    others: "Sequence[ShapeInBox]"

    def inside(self, *points: Any) -> Any:
        """Whether points are in the image and in none of the others."""
        found = self.image.inside(*points)
        for other in self.others:
            found = found & ~other.inside(*points)
        return found

    def distance(self, points: Floats, step: Floats) -> Floats:
        """The distance of the surface, see Shape.distance.

        Of the surface of the image, if a link starts outside it, and those of the others in which
        it starts, the last one on the link counts.
        """
        end, q = points + step, np.zeros(points.shape[1])
        mine = np.flatnonzero(~self.image.inside(*points))
        q[mine] = self.image.distance(points[:, mine], step[:, mine])
        for other in self.others:
            mine = np.flatnonzero(other.wrapped(*points))
            back = other.distance(end[:, mine], -step[:, mine])
            q[mine] = np.maximum(q[mine], 1 - back)
        return q

    def share(self, points: Floats) -> Floats:
        """The shares of cells in the image less those in the others, at least 0."""
        found = self.image.share(points)
        for other in self.others:
            found = found - other.share(points)
        return np.maximum(found, 0)

    def bounds(self) -> Corners:
        """The corners of a box around the image."""
        return self.image.bounds()


class ShapeInBox:
    """The points of the box that are in a shape or in one of its images.

    images     those that reach into the box
    continues  for each axis, whether the shape has images along it
    sheets     the images that cut links between fluid cells, see Shape.cuts
    """

    def __init__(
        self,
        images: Iterable[Image | Cut],
        continues: Iterable[bool],
        domain: Any,
        sheets: Iterable[Image] = (),
    ):
        self.images, self.continues = tuple(images), tuple(continues)
        self.sheets = tuple(sheets)
        self._size = np.array(domain.size, np.float64)[:, None]
        self._periodic = np.array(domain.periodic)[:, None]

    @classmethod
    def of(cls, shape: Solid, domain: Any) -> Self:
        """A shape with its images."""
        sides = zip(*shape.bounds(), domain.size, domain.periodic, strict=True)
        shifts = [_shifts(*side) for side in sides]
        images = [Image(shape, shift) for shift in product(*(s or (0,) for s in shifts))]
        continues = (each is not None for each in shifts)
        return cls(images, continues, domain, images if shape.cuts else ())

    @classmethod
    def union(cls, parts: Sequence[Self], domain: Any) -> Self:
        """The images of all parts."""
        images = (image for part in parts for image in part.images)
        sheets = (image for part in parts for image in part.sheets)
        return cls(images, _all_continue(parts), domain, sheets)

    @classmethod
    def difference(cls, first: Self, others: Sequence[Self], domain: Any) -> Self:
        """The images of the first without all images of the others."""
        images = (Cut(image, others) for image in first.images)
        return cls(images, _all_continue([first, *others]), domain)

    def inside(self, *points: Any) -> Any:
        """Bool array: whether points of the box are solid; see Shape.inside."""
        return reduce(np.logical_or, (image.inside(*points) for image in self.images))

    def share(self, points: Floats) -> Floats:
        """The sum of the shares of cells of the box in the images, at most 1; see Shape.share."""
        return np.minimum(sum(image.share(points) for image in self.images), 1)

    def bounds(self) -> Corners:
        """The corners of a box around the images; these may lie outside the domain."""
        lower, upper = zip(*(image.bounds() for image in self.images), strict=True)
        return tuple(map(min, zip(*lower, strict=True))), tuple(map(max, zip(*upper, strict=True)))

    def distance(self, points: Floats, step: Floats) -> Floats:
        """Return q, (n,), 0 <= q <= 1, such that points + q * step lies on the surface.

        points, step: (D, n). The points are not solid, the points + step are, after they are moved
        into the box along periodic axes; or a sheet lies between them. Of several images the
        nearest counts.
        """
        q = self._of_solids(points, step)
        return np.fmin(q, self.first(points, step)) if self.sheets else q

    def first(self, points: Floats, step: Floats) -> Floats:
        """Return q, (n,), of the first sheet between points and points + step; nan without one.

        A link through a periodic face is also looked for at the opposite face.
        """
        size = np.broadcast_to(self._size, points.shape)
        moved = np.where(self._periodic, np.floor((points + step) / size) * size, 0)
        found = np.full(points.shape[1], np.nan)
        for axes in product((False, True), repeat=len(points)):
            there = moved * np.array(axes)[:, None]
            mine = np.flatnonzero((moved[list(axes)] != 0).all(axis=0))
            for image in self.sheets if mine.size else ():
                q = image.first((points - there)[:, mine], step[:, mine])
                found[mine] = np.fmin(found[mine], q)
        return found

    def _of_solids(self, points: Floats, step: Floats) -> Floats:
        """The distances of links to solid bodies; sheets do not count."""
        end, q = points + step, np.ones(points.shape[1])
        ends = self._periodic[:, 0] & ~np.array(self.continues)
        beyond = self._periodic & ((end < 0) | (end >= self._size))
        cut = beyond[ends].any(axis=0)
        moved = np.where(self._periodic, np.floor(end / self._size) * self._size, 0)
        for image in self.images:
            mine = np.flatnonzero(~cut & _within(image.bounds(), end - moved))
            mine = mine[image.inside(*(end - moved)[:, mine])]
            if mine.size:
                found = image.distance((points - moved)[:, mine], step[:, mine])
                q[mine] = np.minimum(q[mine], found)
        crosses = np.flatnonzero(beyond.any(axis=0))
        before = (points + (q - JUST) * step)[:, crosses]
        again = crosses[cut[crosses] | self.wrapped(*before)]  # solid also before the face
        if again.size:
            q[again] = bisected(self.wrapped, points[:, again], step[:, again])
        return q

    def wrapped(self, *points: Any) -> Any:
        """Whether points are solid that may lie beyond periodic faces."""
        sides = zip(points, self._size[:, 0], self._periodic[:, 0], strict=True)
        return self.inside(*(x % n if periodic else x for x, n, periodic in sides))


def counted(bounds: Corners, domain: Any) -> Corners:
    """The corners of the part of a shape that counts once in the box.

    Along a periodic axis this is the whole shape if it is not longer than the box: it continues at
    the opposite face. Otherwise it is the part in the box.
    """
    sides = [
        (a, b) if periodic and b - a <= n else (min(max(a, 0.0), n), min(max(b, 0.0), n))
        for a, b, n, periodic in zip(*bounds, domain.size, domain.periodic, strict=True)
    ]
    return tuple(float(a) for a, _ in sides), tuple(float(b) for _, b in sides)


def _all_continue(parts: "Sequence[ShapeInBox]") -> Iterable[bool]:
    """For each axis, whether all parts have images along it."""
    return (all(each) for each in zip(*(part.continues for part in parts), strict=True))


def _within(bounds: Corners, points: Floats) -> Flags:
    """Whether points lie in a box, or beside it by a rounding error."""
    lower, upper = (np.array(corner)[:, None] for corner in bounds)
    return np.all((points >= lower - JUST) & (points <= upper + JUST), axis=0)


def bisected(inside: Callable[..., Any], points: Floats, step: Floats) -> Floats:
    """Return q as Shape.distance, by bisection; inside: as Shape.inside."""
    outer, inner = np.zeros(points.shape[1]), np.ones(points.shape[1])
    for _ in range(BISECTIONS):
        middle = (outer + inner) / 2
        within = inside(*(points + middle * step))
        inner = np.where(within, middle, inner)
        outer = np.where(within, outer, middle)
    return inner


def _shifts(lower: float, upper: float, n: int, periodic: bool) -> tuple[float, ...] | None:
    """The shifts along an axis of the images that reach into 0..n; None: there are no images."""
    if not periodic or not upper - lower <= LONGEST * n:
        return None
    first, last = floor(-upper / n) + 1, ceil((n - lower) / n) - 1
    return tuple(float(k * n) for k in range(first, last + 1)) or (0.0,)
