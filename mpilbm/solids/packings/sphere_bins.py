"""Finds the spheres at given points, through a grid of bins that list the spheres near them."""

from collections.abc import Iterator
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.solids.periodic_images import Corners

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

STEP = 1.0  # longest step along an axis for which `distance` is defined
MOST_BINS = 2**21
ROUNDING = 1e-6  # cells by which bounding boxes are enlarged
TOGETHER = 2**18  # points that are examined at a time


class SphereBins:
    """n spheres with centres (D, n) and radii (n,); in 2D discs.

    The bins are cubes. Each lists the spheres whose bounding box, enlarged by STEP, meets it. So
    the bin of a point lists all spheres that a step of at most STEP to this point can meet.
    """

    def __init__(self, centres: Floats, radii: Floats):
        self.centres, self.radii = centres, radii
        self._lower = (centres - radii).min(axis=1)
        self._upper = (centres + radii).max(axis=1)

    @property
    def bounds(self) -> Corners:
        """The corners of a box around the spheres."""
        return tuple(self._lower.tolist()), tuple(self._upper.tolist())

    # ------------------------------------------------------------------------------ cell centres

    def inside_grid(self, axes: list[Floats]) -> Flags:
        """Bool (len(axes[0]), …): whether the points of a grid are in a sphere.

        axes: the coordinates along each axis, ascending. Each sphere is painted into the part of
        the grid that its bounding box covers, many spheres at a time.
        """
        solid = np.zeros([axis.size for axis in axes], bool)
        met = np.arange(self.radii.size)
        for axis, c in zip(axes, self.centres, strict=True):
            reach = self.radii[met] + ROUNDING
            met = met[(c[met] + reach >= axis[0]) & (c[met] - reach <= axis[-1])]
        reach = self.radii[met] + ROUNDING
        places = [
            (np.searchsorted(axis, c[met] - reach), np.searchsorted(axis, c[met] + reach, "right"))
            for axis, c in zip(axes, self.centres, strict=True)
        ]
        first, end = (np.stack(each) for each in zip(*places, strict=True))
        count = end - first
        ordered = np.argsort(count.max(axis=0, initial=0), kind="stable")
        for part in _batches(ordered, count):
            self._paint(solid, axes, met[part], first[:, part], count[:, part].max(axis=1))
        return solid

    def _paint(self, solid: Flags, axes: list[Floats], mine: Ints, first: Ints, most: Ints) -> None:
        """Set the points of a grid that are in the spheres `mine`.

        first: (D, n), the first point of each sphere along each axis; most: (D,), their number.
        """
        D = len(axes)
        place = np.zeros((mine.size,) + (1,) * D, np.int64)
        squares: Any = 0
        valid: Any = True
        for a, axis in enumerate(axes):
            shape = [mine.size] + [1] * D
            shape[1 + a] = most[a]
            k = first[a][:, None] + np.arange(most[a])
            within = k < axis.size
            k = np.minimum(k, axis.size - 1)
            squares = squares + ((axis[k] - self.centres[a, mine][:, None]) ** 2).reshape(shape)
            valid = valid & within.reshape(shape)
            place = place * axis.size + k.reshape(shape)
        radii = self.radii[mine].reshape((-1,) + (1,) * D)
        solid.reshape(-1)[place[valid & (squares <= radii * radii)]] = True

    # ------------------------------------------------------------------------------ other points

    def inside(self, points: Floats) -> Flags:
        """Bool (n,): whether points (D, n) are in a sphere."""
        found = np.zeros(points.shape[1], bool)
        for begin in range(0, found.size, TOGETHER):
            part = slice(begin, begin + TOGETHER)
            for mine, sphere in self._candidates(points[:, part]):
                offset = points[:, part][:, mine] - self.centres[:, sphere]
                found[begin + mine] |= _squared(offset) <= self.radii[sphere] ** 2
        return found

    def distance(self, points: Floats, step: Floats) -> Floats:
        """Return q (n,), 0 <= q <= 1: the first point of a sphere is points + q * step.

        points, step: (D, n), points outside all spheres, no step longer than STEP along an axis.
        The smaller root of |points + q step - centre|^2 = radius^2; 1 without a sphere.
        """
        q = np.ones(points.shape[1])
        for begin in range(0, q.size, TOGETHER):
            part = slice(begin, begin + TOGETHER)
            p, s = points[:, part], step[:, part]
            for mine, sphere in self._candidates(p + s):
                offset, e = p[:, mine] - self.centres[:, sphere], s[:, mine]
                c = _squared(offset) - self.radii[sphere] ** 2
                b, a = -(offset * e).sum(axis=0), _squared(e)
                root = b * b - a * c
                meets = (root >= 0) & (b > 0)
                near = c[meets] / (b[meets] + np.sqrt(root[meets]))
                at = begin + mine[meets]
                q[at] = np.minimum(q[at], np.clip(near, 0, 1))
        return q

    def _candidates(self, points: Floats) -> Iterator[tuple[Ints, Ints]]:
        """Yield (numbers of points, number of a sphere near each) until all pairs are covered."""
        start, spheres, edge, counts = self._bins
        cell = np.floor((points - (self._lower - STEP)[:, None]) / edge).astype(np.int64)
        within = ((cell >= 0) & (cell < counts[:, None])).all(axis=0)
        mine = np.flatnonzero(within)
        number = np.ravel_multi_index(tuple(cell[:, mine]), counts)
        next, end = start[number], start[number + 1]
        while True:
            left = next < end
            mine, next, end = mine[left], next[left], end[left]
            if not mine.size:
                return
            yield mine, spheres[next]
            next = next + 1

    @cached_property
    def _bins(self) -> tuple[Ints, Ints, float, Ints]:
        """Start of the list of each bin, the lists, the edge of a bin, and the number of bins."""
        extent = self._upper - self._lower + 2 * STEP
        smallest = (prod(extent.tolist()) / MOST_BINS) ** (1 / extent.size)
        edge = max(2 * float(np.median(self.radii)), smallest)
        counts = np.floor(extent / edge).astype(np.int64) + 1
        origin, reach = (self._lower - STEP)[:, None], self.radii + STEP
        first, last = (  # a rounding error may lead to the bin before the first or after the last
            np.clip(np.floor((self.centres + side - origin) / edge), 0, counts[:, None] - 1).astype(
                np.int64
            )
            for side in (-reach, reach)
        )
        bins, spheres = [], []
        count = last - first + 1
        for mine in _batches(np.argsort(count.max(axis=0), kind="stable"), count):
            most = count[:, mine].max(axis=1)
            for offset in np.ndindex(*most):
                met = mine[(np.reshape(offset, (-1, 1)) < count[:, mine]).all(axis=0)]
                place = first[:, met] + np.reshape(offset, (-1, 1))
                bins.append(np.ravel_multi_index(tuple(place), counts))
                spheres.append(met)
        number = np.concatenate(bins)
        order = np.lexsort((np.concatenate(spheres), number))
        start = np.zeros(prod(counts.tolist()) + 1, np.int64)
        np.cumsum(np.bincount(number, minlength=start.size - 1), out=start[1:])
        return start, np.concatenate(spheres)[order], edge, counts


def _squared(offset: Floats) -> Floats:
    """|offset|^2 of vectors (D, n), added in the order of the axes."""
    total: Floats = sum(x**2 for x in offset)  # type: ignore[assignment]
    return total


def _batches(ordered: Ints, count: Ints) -> Iterator[Ints]:
    """Split spheres, ordered by their largest count, into batches of at most TOGETHER points.

    count: (D, n), the number of points or bins of each sphere along each axis.
    """
    begin = 0
    while begin < ordered.size:
        sizes = np.maximum.accumulate(count[:, ordered[begin:]], axis=1).prod(axis=0)
        fits = np.flatnonzero(sizes * np.arange(1, sizes.size + 1) <= TOGETHER)
        end = begin + max(1, int(fits[-1]) + 1 if fits.size else 1)
        yield ordered[begin:end]
        begin = end
