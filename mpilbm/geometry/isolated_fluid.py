"""Isolated fluid: connected pieces of fluid cells, found in slabs and joined for the box.

Consecutive fluid cells of a row form a run. Runs of neighbouring rows and planes are connected if a
link leads from one to the other. On lattices whose links reach only every second cell of a
neighbouring row (D3Q13, D3Q15), runs also count as connected if they lie between such cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.geometry.cell_counts import NO_CELLS, CellCount

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Pair = tuple[Ints, Ints]  # labels of pieces that are connected
Step = tuple[int, int, int]


@dataclass(frozen=True)
class Runs:
    """The runs of a plane: begin, end and label of each; a row has nx + 2 places."""

    begin: Ints
    end: Ints
    label: Ints


@dataclass(frozen=True)
class Part:
    """The n pieces of fluid of a slab.

    first, last  the runs of the outermost planes, whose pieces continue in other slabs
    cells        int64 (n,), the number of cells of each piece
    place        int64 (n,), the first cell, (plane * rows + row) * nx + x in the whole box
    marks        {name: bool (n,)}, whether a piece contains a marked cell; "periodic": whether it
                 lies at a periodic face
    """

    first: Runs
    last: Runs
    cells: Ints
    place: Ints
    marks: dict[str, Flags]


def labelled(case, slab, solid: NDArray[Any], marked: dict[str, Ints]) -> Part:
    """Return the pieces of a slab.

    solid: (planes, rows, nx); marked: {name: cells of the slab, ascending}. Pieces are not joined
    across periodic faces.
    """
    steps, nx = _steps(case.lattice), slab.shape[2]
    planes: list[Runs] = []
    joins: list[Pair] = []
    count = 0
    for local, here in enumerate(solid):
        runs = _runs(here == 0)
        inside = [_connected(runs, runs, nx, step) for step in steps if step[0] == 0]
        root = _components(runs.begin.size, _stacked(inside))
        once, own = np.unique(root, return_inverse=True)
        runs = Runs(runs.begin, runs.end, own + count)
        count += once.size
        if local:
            joins += _between(planes[-1], runs, nx, steps)
        planes.append(runs)
    once, label = np.unique(_components(count, _stacked(joins)), return_inverse=True)
    planes = [Runs(runs.begin, runs.end, label[runs.label]) for runs in planes]
    cells, place = np.zeros(once.size, np.int64), np.full(once.size, np.iinfo(np.int64).max)
    marks = {name: np.zeros(once.size, bool) for name in (*marked, "periodic")}
    stride = solid[0].size
    for local, runs in enumerate(planes):
        np.add.at(cells, runs.label, runs.end - runs.begin)
        at = _flat(runs.begin, nx) + (slab.begin + local) * stride
        np.minimum.at(place, runs.label, at)
        for name, those in marked.items():
            first, last = np.searchsorted(those, (local * stride, (local + 1) * stride))
            here = _places(those[first:last] - local * stride, nx)
            marks[name][runs.label[np.searchsorted(runs.begin, here, side="right") - 1]] = True
        marks["periodic"][runs.label[_at_periodic(case, slab, runs, slab.begin + local)]] = True
    return Part(planes[0], planes[-1], cells, place, marks)


@dataclass(frozen=True)
class Pieces:
    """The pieces of the whole box, with the fields of Part; independent of the partition."""

    cells: Ints
    place: Ints
    marks: dict[str, Flags]

    def count(self, which: Flags) -> tuple[int, CellCount]:
        """Return the number of pieces where `which` is True, and the count of their cells."""
        if not which.any():
            return 0, NO_CELLS
        cells = CellCount(int(self.cells[which].sum()), int(self.place[which].min()))
        return int(which.sum()), cells


def joined(case, parts: Sequence[Part]) -> Pieces:
    """Return the pieces of the box from the pieces of all slabs, in order."""
    steps, count = _steps(case.lattice), 0
    joins: list[Pair] = []
    before = None
    for part in parts:
        first, last = (Runs(r.begin, r.end, r.label + count) for r in (part.first, part.last))
        if before is not None:
            joins += _between(before, first, case.shape[2], steps)
        count, before = count + part.cells.size, last
    once, label = np.unique(_components(count, _stacked(joins)), return_inverse=True)
    cells, place = np.zeros(once.size, np.int64), np.full(once.size, np.iinfo(np.int64).max)
    np.add.at(cells, label, np.concatenate([part.cells for part in parts]))
    np.minimum.at(place, label, np.concatenate([part.place for part in parts]))
    marks = {name: np.zeros(once.size, bool) for name in parts[0].marks}
    for name, found in marks.items():
        np.logical_or.at(found, label, np.concatenate([part.marks[name] for part in parts]))
    return Pieces(cells, place, marks)


def isolated(pieces: Pieces) -> tuple[int, CellCount]:
    """Count the pieces that nothing drives and that touch no periodic face, except the largest."""
    driven = pieces.marks["driven"] | pieces.marks["periodic"]
    return pieces.count(~driven & (pieces.cells < pieces.cells.max(initial=0)))


def blocked(pieces: Pieces) -> tuple[int, CellCount]:
    """Count the pieces at a face with a given velocity that reach no face with a free velocity."""
    marks = pieces.marks
    return pieces.count(marks["given"] & ~marks["free"] & ~marks["periodic"])


def _steps(lattice) -> list[Step]:
    """(planes, rows, largest |x|) of the links from a row to later rows."""
    found: dict[tuple[int, int], int] = {}
    for plane, row, x in map(lattice.offset, range(1, lattice.Q)):
        if (plane, row) > (0, 0):
            found[plane, row] = max(found.get((plane, row), 0), abs(x))
    return [(*step, reach) for step, reach in found.items()]


def _runs(fluid: Flags) -> Runs:
    """Return the runs of a plane (rows, nx); each row is padded by a solid place on both sides."""
    places = np.pad(fluid, ((0, 0), (1, 1))).reshape(-1)
    change = np.flatnonzero(places[1:] != places[:-1]) + 1
    return Runs(change[::2], change[1::2], np.arange(change.size // 2))


def _connected(a: Runs, b: Runs, nx: int, step: Step) -> Pair:
    """Return pairs of labels: runs of `a`, and runs of `b` to which a link leads."""
    _, row, reach = step
    shift = row * (nx + 2)
    first = np.searchsorted(b.end, a.begin + shift - reach, side="right")
    last = np.searchsorted(b.begin, a.end + shift + reach, side="left")
    counts = np.maximum(last - first, 0)
    starts = np.cumsum(counts) - counts
    met = np.arange(counts.sum()) + np.repeat(first - starts, counts)
    return np.repeat(a.label, counts), b.label[met]


def _between(below: Runs, above: Runs, nx: int, steps: list[Step]) -> list[Pair]:
    """Return the pairs of `_connected` for two successive planes and all links between them."""
    return [_connected(below, above, nx, step) for step in steps if step[0]]


def _stacked(pairs: list[Pair]) -> Pair:
    none = np.empty(0, np.int64)
    first, second = zip(*pairs, (none, none), strict=True)
    return np.concatenate(first), np.concatenate(second)


def _components(count: int, pairs: Pair) -> Ints:
    """Return, for each of `count` numbers, the least number to which `pairs` connect it."""
    root, (a, b) = np.arange(count), pairs
    while a.size:
        low, high = np.minimum(root[a], root[b]), np.maximum(root[a], root[b])
        apart = low < high
        a, b = a[apart], b[apart]
        np.minimum.at(root, high[apart], low[apart])
        while (root[root] != root).any():
            root = root[root]
    return root


def _places(cells: Ints, nx: int) -> Ints:
    """Convert cells row * nx + x of a plane to places in rows of nx + 2."""
    return cells + 2 * (cells // nx) + 1


def _flat(places: Ints, nx: int) -> Ints:
    """Convert places in rows of nx + 2 to cells row * nx + x."""
    return places - 2 * (places // (nx + 2)) - 1


def _at_periodic(case, slab, runs: Runs, plane: int) -> Flags:
    """Bool array: whether each run of a plane touches a periodic face."""
    (planes, rows, nx), closed = slab.shape, case.domain.periodic
    row, x = np.divmod(runs.begin, nx + 2)
    found = np.full(row.size, closed[-1] and plane in (0, planes - 1))
    if case.dimensions == 3 and closed[1]:
        found |= (row == 0) | (row == rows - 1)
    if closed[0]:
        found |= (x == 1) | (runs.end % (nx + 2) == nx + 1)
    return found
