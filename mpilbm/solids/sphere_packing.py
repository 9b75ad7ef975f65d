"""Packings of spheres: reads rows of a centre and a radius, and finds the spheres at given points.

A grid of bins lists the spheres near each bin.
"""

from collections.abc import Iterator
from functools import cached_property
from math import isfinite, prod
from os.path import isfile  # False for a name that is too long
from pathlib import Path
from typing import Any

import numpy as np

from mpilbm.core.files import NotATextFile, is_number, read_text
from mpilbm.core.files.input_arrays import RELATIVE
from mpilbm.solids import Flags, Floats, Ints
from mpilbm.solids.periodic_images import Corners

STEP = 1.0  # longest step along an axis for which `distance` is defined
MOST_BINS = 2**21
ROUNDING = 1e-6  # cells by which bounding boxes are enlarged
TOGETHER = 2**18  # points that are examined at a time
MOST_BYTES = 1 << 30  # of a file of spheres


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


def read_spheres(path: Path, dimensions: int) -> Floats:
    """Return the rows (x, y[, z], r) of a CSV file, float64 (n, dimensions + 1).

    Columns are separated by commas, semicolons or spaces; text after # and empty lines are skipped.
    The first row may hold the names of the columns. Raises ValueError, with the number of the line,
    for rows that are not spheres.
    """
    if not isfile(path):
        raise ValueError(f"is missing: there is no file {path}; {RELATIVE}")
    try:
        text = read_text(path, "utf-8-sig", MOST_BYTES)
    except NotATextFile as error:
        raise ValueError(str(error)) from None
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}; name a file of spheres") from None
    names = [*"xyz"[:dimensions], "r"]
    rows = [_sphere(number, row, names) for number, row in _rows(text, names)]
    if not rows:
        raise ValueError(f"holds no sphere; write rows of {', '.join(names)}")
    return np.array(rows, np.float64)


def _rows(text: str, names: list[str]) -> Iterator[tuple[int, list[str]]]:
    """The number and the entries of each row, without the names of columns in the first one."""
    first = True
    for number, line in enumerate(text.splitlines(), 1):
        plain = line.partition("#")[0].strip()
        if not plain:
            continue
        entries = plain.replace(";", ",").split(",") if set(plain) & set(",;") else plain.split()
        entries = [entry.strip().strip('"') for entry in entries]
        if first and not any(map(is_number, entries)):
            _check_names(number, entries, names)
        else:
            yield number, entries
        first = False


def _check_names(number: int, found: list[str], names: list[str]) -> None:
    """Raise ValueError if the first row names the columns in another order."""
    given = [name.lower() for name in found]
    if sorted(given) == sorted(names) and given != names:
        raise ValueError(
            f"line {number}: found the columns {', '.join(found)}; allowed: {', '.join(names)}, in "
            "this order"
        )


def _sphere(number: int, entries: list[str], names: list[str]) -> list[float]:
    if len(entries) != len(names):
        raise ValueError(
            f"line {number}: found {len(entries)} columns; allowed: {len(names)} "
            f"({', '.join(names)}) in {len(names) - 1}D"
        )
    for name, entry in zip(names, entries, strict=True):
        if not is_number(entry) or not isfinite(float(entry)):
            raise ValueError(f"line {number}: {name} = '{entry}' is not a number; correct the row")
    row = list(map(float, entries))
    if row[-1] <= 0:
        raise ValueError(
            f"line {number}: r = {row[-1]:g}; allowed: a radius above 0; correct or remove the row"
        )
    return row
