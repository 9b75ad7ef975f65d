"""The distance from the surface of any shape, at the points of a grid that moves with the body."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.solids import Flags, Floats
from mpilbm.solids.shares import SMALL, share_behind

# Cells between the points. Interpolation overestimates the distance from a curved surface by
# SPACING^2 / 12 times its Laplacian on average, and a plane must be closer by 1/24 of the Laplacian
# to cut the volume of the surface (see shapes/sphere.py): here both are equal.
SPACING = sqrt(0.5)
BAND = 1.5  # cells; larger distances are stored as this one
AROUND = 1.5  # cells between the bounds of a shape and the end of the grid, at least
STEPS = int(BAND / SPACING)  # points from one whose distance is computed to the surface, at most
SOLID_POINTS, POINTS = 2**20, 2**15  # points that are computed together
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
    def surface(self) -> tuple[Floats, Floats]:
        """Points of the surface (3, n), one for each cell that it cuts, and unit normals (3, n)."""
        points, share = self.cells
        points = points[:, share < 1]
        distance, gradient = self.at(points)
        size = np.sqrt((gradient**2).sum(axis=0))
        some = (size > 0.1) & (np.abs(distance) < 1)
        normal = gradient[:, some] / size[some]
        return points[:, some] - distance[some] / size[some] * normal, normal


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
