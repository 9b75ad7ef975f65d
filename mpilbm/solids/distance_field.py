"""The distance from the surface of any shape, at the points of a grid that moves with the body."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, fsum, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.solids import Flags, Floats
from mpilbm.solids.shares import SMALL, share_behind
from mpilbm.solids.surfaces.triangles import rotated

# Cells between the points. Interpolation overestimates the distance from a curved surface by
# SPACING^2 / 12 times its Laplacian on average, and a plane must be closer by 1/24 of the Laplacian
# to cut the volume of the surface (see shapes/sphere.py): here both are equal.
SPACING = sqrt(0.5)
BAND = 1.5  # cells; larger distances are stored as this one
AROUND = 1.5  # cells between the bounds of a shape and the end of the grid, at least
STEPS = int(BAND / SPACING)  # points from one whose distance is computed to the surface, at most
SOLID_POINTS, POINTS = 2**20, 2**15  # points that are computed together
STEPS_ON, ON = 3, 0.02  # steps to the surface, and cells from it of a point that is on it
SMOOTH = 0.3  # of a gradient, whose size is smaller between two sides of a body
HALF = 0.501  # cells from the centre of a cell to a face, and rounding
TURN = 11.0, 13.0, 17.0  # degrees about x, y and z; in 2D about z only
ROUNDED = 2.0**-16  # cells; distances are multiples of it, so that all hosts have the same


@dataclass(frozen=True, eq=False)
class DistanceField:
    """Signed distances from a surface, negative inside, at the points lower + SPACING (i, j, k).

    values  float32 (planes, rows, nx), at most BAND from 0; one plane in 2D
    lower   (3,), the first point; z = 0 in 2D
    """

    values: NDArray[np.float32]
    lower: Floats

    @classmethod
    def of(
        cls,
        inside: Callable[..., Any],
        distance: Callable[[Floats], Floats],
        low: Sequence[float],
        high: Sequence[float],
    ) -> "DistanceField":
        """The field of a shape between two corners, (D,) each.

        inside(x, y[, z]): whether points are in the shape, at all points of the grid.
        distance(points): the signed distance of points (D, n), at those near the surface.
        """
        ends = list(zip(low, high, strict=True))
        counts = [ceil((b - a + 2 * AROUND) / SPACING) + 1 for a, b in ends]
        first = [(a + b - SPACING * (n - 1)) / 2 for (a, b), n in zip(ends, counts, strict=True)]
        axes = [a + SPACING * np.arange(n) for a, n in zip(first, counts, strict=True)]
        solid = np.empty(counts[::-1], bool)
        together = max(1, SOLID_POINTS // int(np.prod(counts[:-1])))
        for begin in range(0, counts[-1], together):
            part = slice(begin, begin + together)
            grid = np.meshgrid(axes[-1][part], *axes[-2::-1], indexing="ij", sparse=True)
            solid[part] = inside(*grid[::-1])
        values = np.where(solid, np.float32(-BAND), np.float32(BAND))
        near = np.flatnonzero(_band(solid))
        for begin in range(0, near.size, POINTS):
            at = near[begin : begin + POINTS]
            places = np.unravel_index(at, solid.shape)
            points = np.stack([x[k] for x, k in zip(axes, places[::-1], strict=True)])
            found = np.round(distance(points) / ROUNDED) * ROUNDED
            values.reshape(-1)[at] = np.clip(found, -BAND, BAND)
        lower = np.append(first, [0.0] * (3 - len(counts)))
        return cls(values.reshape((1,) * (3 - len(counts)) + values.shape), lower)

    @property
    def counts(self) -> tuple[int, int, int]:
        """The number of points along x, y and z."""
        planes, rows, nx = self.values.shape
        return nx, rows, planes

    @property
    def dimensions(self) -> int:
        """2 or 3."""
        return 2 if len(self.values) == 1 else 3

    @property
    def upper(self) -> Floats:
        """The last point, (3,)."""
        return self.lower + SPACING * (np.array(self.counts) - 1)

    def at(self, points: Floats) -> tuple[Floats, Floats]:
        """Distance (n,) and gradient (3, n) at points (3, n), by trilinear interpolation.

        Beyond the grid those at the nearest point of its boundary.
        """
        D, counts = self.dimensions, self.counts
        place = (points - self.lower[:, None]) / SPACING
        first, part = np.zeros(points.shape, np.int64), np.zeros(points.shape)
        for a in range(D):
            at = np.clip(place[a], 0, counts[a] - 1)
            first[a] = np.minimum(at.astype(np.int64), counts[a] - 2)
            part[a] = at - first[a]
        found, gradient = np.zeros(points.shape[1]), np.zeros(points.shape)
        for corner in np.ndindex(*(2,) * D):
            k = np.array([*corner, *[0] * (3 - D)])[:, None]
            x, y, z = first + k
            value = self.values[z, y, x].astype(float)
            weight = np.where(k == 1, part, 1 - part)
            weight[D:] = 1
            found += value * weight.prod(axis=0)
            for a in range(D):
                others = np.delete(weight, a, axis=0).prod(axis=0)
                gradient[a] += (2 * corner[a] - 1) * value * others / SPACING
        return found, gradient

    def share(self, points: Floats) -> Floats:
        """The share of the unit cell around each point (3, n) that is inside, (n,)."""
        distance, gradient = self.at(points)
        size = np.sqrt((gradient**2).sum(axis=0))
        normal = np.where(size > SMALL, gradient / np.maximum(size, SMALL), 0)
        found: Floats = share_behind(distance, normal[: self.dimensions])
        return np.where(self._contains(points), found, 0)

    def _nearest(self, points: Floats) -> NDArray[np.float32]:
        """The value at the nearest point of the grid of each of points (3, n) in it, (n,)."""
        x, y, z = np.rint((points - self.lower[:, None]) / SPACING).astype(np.int64)
        found: NDArray[np.float32] = self.values[z, y, x]
        return found

    def _contains(self, points: Floats) -> Flags:
        place = (points - self.lower[:, None]) / SPACING
        last = np.array(self.counts)[:, None] - 1
        within: Flags = (place >= 0) & (place <= last)
        return np.logical_and.reduce(within[: self.dimensions], axis=0)

    @cached_property
    def cells(self) -> tuple[Floats, Floats]:
        """The unit cells around points at unit distances: their centres (3, n) and shares (n,).

        Those with a share above 0, from one that is at the centre of the grid.
        """
        half = (self.upper - self.lower) / 2
        middle, most = self.lower + half, np.floor(half).astype(int)
        axes = [m + np.arange(-k, k + 1.0) for m, k in zip(middle, most, strict=True)]
        places = [np.round((x - a) / SPACING) for x, a in zip(axes, self.lower, strict=True)]
        x, y, z = (
            np.clip(p.astype(int), 0, n - 1) for p, n in zip(places, self.counts, strict=True)
        )
        nearest = self.values[np.ix_(z, y, x)]
        at = np.nonzero(nearest < BAND)
        points = np.stack([axis[k] for axis, k in zip(axes, at[::-1], strict=True)])
        share = np.ones(points.shape[1])
        near = np.flatnonzero(nearest[at] > -BAND)
        for begin in range(0, near.size, POINTS):
            part = near[begin : begin + POINTS]
            share[part] = self.share(points[:, part])
        some = share > 0
        return points[:, some], share[some]

    @cached_property
    def area(self) -> float:
        """The area of the surface, in 2D its length: the integral of a hat across it.

        The hat is as wide as four points, so that planes have their area wherever points are; of a
        ball the error is 1/3 of the inverse square of its radius.
        """
        wide = 2 * SPACING
        hat = np.maximum(0, 1 - np.abs(self.values.astype(float)) / wide) / wide
        return SPACING**self.dimensions * fsum(hat[hat > 0])

    @cached_property
    def moments(self) -> tuple[float, Floats, Floats]:
        """Volume, centre of mass (3,), and second moments about it, (3, 3).

        Sums over the shares of unit cells, which are turned to the grid by TURN: flat sides cut
        them everywhere, so that the sums are about those over all places and directions of the
        body. Sums are rounded once: they do not depend on the order of the cells.
        """
        points, share = self._turned_cells
        volume = fsum(share)
        centre = np.array([fsum(share * x) for x in points]) / volume
        r = points - centre[:, None]
        second = np.zeros((3, 3))
        for a in range(3):
            for b in range(a, 3):
                second[a, b] = second[b, a] = fsum(share * r[a] * r[b])
        # A share is an average over a cell, which adds its variance 1/12 along each axis.
        axes = range(self.dimensions)
        second[axes, axes] -= volume / 12
        return volume, centre, second

    @property
    def _turned_cells(self) -> tuple[Floats, Floats]:
        """The unit cells of a turned grid: their centres (3, n) and shares (n,)."""
        D, half = self.dimensions, (self.upper - self.lower) / 2
        turn = rotated(np.eye(3), TURN if D == 3 else (0.0, 0.0, TURN[2])).T
        most = np.ceil(np.abs(turn.T) @ half).astype(int)
        x, y, z = (np.arange(-k, k + 1.0) for k in most)
        places, shares = [], []
        for plane in z:
            cells = np.stack([*map(np.ravel, np.meshgrid(x, y)), np.full(x.size * y.size, plane)])
            points = (self.lower + half)[:, None] + _times(turn, cells)
            points = points[:, self._contains(points)]
            nearest = self._nearest(points)
            points, nearest = points[:, nearest < BAND], nearest[nearest < BAND]
            share = np.ones(nearest.size)
            near = nearest > -BAND
            distance, gradient = self.at(points[:, near])
            size = np.sqrt((gradient**2).sum(axis=0))
            normal = np.where(size > SMALL, gradient / np.maximum(size, SMALL), 0)
            share[near] = share_behind(distance, _times(turn.T, normal)[:D])
            places.append(points[:, share > 0])
            shares.append(share[share > 0])
        return np.concatenate(places, axis=1), np.concatenate(shares)

    @cached_property
    def surface(self) -> tuple[Floats, Floats]:
        """Points of the surface (3, n), one for each cell that it cuts, and unit normals (3, n).

        Two where it lies between cells. Found along the gradient; points that do not lie on the
        surface after STEPS_ON steps, such as at sharp edges, are left out.
        """
        points, share = self.cells
        distance, _ = self.at(points)
        points = points[:, ((share < 1) | (distance > -HALF)) & (np.abs(distance) < 1)]
        for _ in range(STEPS_ON):
            distance, gradient = self.at(points)
            size = np.sqrt((gradient**2).sum(axis=0))
            points = points - distance * gradient / np.maximum(size, SMALL)
        distance, gradient = self.at(points)
        size = np.sqrt((gradient**2).sum(axis=0))
        some = (np.abs(distance) < ON) & (size > SMOOTH)
        return points[:, some], gradient[:, some] / size[some]


def _times(matrix: Floats, vectors: Floats) -> Floats:
    """A matrix (3, 3) times vectors (3, n), with the same bits on all processors."""
    return np.stack(
        [row[0] * vectors[0] + row[1] * vectors[1] + row[2] * vectors[2] for row in matrix]
    )


def _band(solid: Flags) -> Flags:
    """The points whose nearest STEPS neighbours along axes and diagonals are not all alike."""
    some, other = solid.copy(), ~solid
    for flags in (some, other):
        for axis in range(flags.ndim):
            _spread(flags, axis)
    return some & other


def _spread(flags: Flags, axis: int) -> None:
    """Set the STEPS flags before and after each one that is set along an axis."""
    moved = np.moveaxis(flags, axis, 0)
    for _ in range(STEPS):
        before = moved.copy()
        moved[1:] |= before[:-1]
        moved[:-1] |= before[1:]
