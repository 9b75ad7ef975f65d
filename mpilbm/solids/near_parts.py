"""The parts of a surface that are near another one: where a body touches at several places.

A gap is known at points of a surface. Its lowest points are found from below: a part begins at each
local minimum of the gap, and two parts join where the gap between them is a saddle. Parts with a
saddle higher than FLAT above both of their lowest points are contacts of their own, those with one
below FLAT / 2 are one contact; between these the shares of both views change linearly. So the
contacts, which all ranks compute alike, change continuously as bodies move.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from mpilbm.solids import Floats

Ints = NDArray[np.int64]
FLAT = 0.25  # cells
AROUND = np.array([way for way in product((-1, 0, 1), repeat=3) if any(way)])


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a surface that touches.

    share    of this part in the force, 0 to 1
    gap      the least one
    points   (n,), those of the surface that are less than FLAT higher
    weights  (n,), of these in the place and the normal of the contact; their sum is 1. A weight
             falls linearly with the gap.
    """

    share: float
    gap: float
    points: Ints
    weights: Floats

    def mean(self, values: Floats) -> Floats:
        """The mean of values at all points of the surface, (m, k), over this part, (k,)."""
        found: Floats = self.weights @ values[self.points]
        return found


class Basin:
    """Cells of points around minima of the gap, up to a level.

    lowest  the least gap
    cells   all cells
    parts   share and cells of each contact; that of `cells` itself, if any, grows with them
    """

    def __init__(self, lowest: float):
        self.lowest = lowest
        self.cells: list[int] = []
        self.parts: list[tuple[float, list[int]]] = [(1.0, self.cells)]

    def join(self, other: "Basin", saddle: float, within: float) -> "Basin":
        """The basin of both, where the gap is at most `saddle` on the way between them."""
        deep, high = (self, other) if self.lowest <= other.lowest else (other, self)
        flat = min(FLAT, within - high.lowest)
        share = min(1.0, max(0.0, 2 * (saddle - high.lowest) / flat - 1))
        grows = sum(each for each, of in deep.parts if of is deep.cells)
        deep.parts = [part for part in deep.parts if part[1] is not deep.cells]
        deep.parts.append((share * grows, deep.cells.copy()))
        deep.cells.extend(high.cells)
        deep.parts.append(((1 - share) * grows, deep.cells))
        deep.parts += [(share * each, of) for each, of in high.parts]
        deep.parts = [part for part in deep.parts if part[0] > 0]
        return deep


def near_parts(gaps: Floats, points: Floats, spacing: float, within: float) -> list[Part]:
    """The parts of a surface whose gap to another one is below `within`.

    gaps: (n,), of points (n, 3) that are at most `spacing` from their neighbours, in the frame of
    the body.
    """
    near = np.flatnonzero(gaps < within)
    if not near.size:
        return []
    where = np.floor(points[near] / (2 * spacing)).astype(np.int64)
    where -= where.min(axis=0)
    if where.max() <= 1:  # all of them are neighbours
        return [_part(1.0, gaps, near)]
    strides = np.cumprod([1, *(where.max(axis=0)[:2] + 2)])  # a free cell between rows and planes
    numbers, cell = np.unique(where @ strides, return_inverse=True)
    lowest = np.full(numbers.size, np.inf)
    np.minimum.at(lowest, cell, gaps[near])
    order = np.argsort(lowest, kind="stable")
    rank = np.argsort(order)[cell]
    ends = np.cumsum(np.bincount(rank))[:-1]
    members = np.split(near[np.argsort(rank, kind="stable")], ends)
    found = []
    for basin in _basins(lowest[order].tolist(), _lower(numbers, order, strides), within):
        for share, cells in basin.parts:
            chosen = np.sort(np.concatenate([members[each] for each in cells]))
            found.append(_part(share, gaps, chosen))
    return found


def _lower(numbers: Ints, order: Ints, strides: Ints) -> list[list[int]]:
    """The neighbours of each cell that are before it in `order`, by their places there.

    numbers: (m,) of the cells, ascending; the way to a neighbour is a sum of `strides`.
    """
    beside = numbers[order][:, None] + AROUND @ strides
    place = np.minimum(np.searchsorted(numbers, beside), numbers.size - 1)
    rank = np.argsort(order)[place]
    before = (numbers[place] == beside) & (rank < np.arange(numbers.size)[:, None])
    ends = np.cumsum(before.sum(axis=1))
    return [each.tolist() for each in np.split(rank[before], ends[:-1])]


def _part(share: float, gaps: Floats, chosen: Ints) -> Part:
    """The part that consists of the chosen points."""
    gap = float(gaps[chosen].min())
    chosen = chosen[gaps[chosen] < gap + FLAT]
    weights = 1 - (gaps[chosen] - gap) / FLAT
    return Part(share, gap, chosen, weights / weights.sum())


def _basins(lowest: list[float], lower: list[list[int]], within: float) -> list[Basin]:
    """The basins of cells in the order of their least gaps, which do not touch each other."""
    found: list[Basin] = []
    basin_of: list[Basin] = []
    for cell, gap in enumerate(lowest):
        basins = list(dict.fromkeys(basin_of[each] for each in lower[cell]))
        if not basins:
            basins = [Basin(gap)]
            found += basins
        basin = basins[0]
        for other in basins[1:]:
            both = basin.join(other, gap, within)
            gone = other if both is basin else basin
            found.remove(gone)
            for each in gone.cells:
                basin_of[each] = both
            basin = both
        basin.cells.append(cell)
        basin_of.append(basin)
    return found
