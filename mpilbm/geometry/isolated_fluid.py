"""Fluid that nothing can reach: pieces of fluid cells that hang together, found in slabs.

The fluid cells of a row that lie side by side are one run. Runs of neighbouring rows and planes
hang together where a link leads from one to the other; on lattices whose links leave out a cell
between two that they reach (D3Q13, D3Q15), also where one leads past.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Runs:
    """Runs of a plane: begin and end in rows of nx + 2 places, and the label of each."""

    begin: np.ndarray
    end: np.ndarray
    label: np.ndarray


@dataclass(frozen=True)
class Part:
    """The pieces of a slab: cells and first cell of each, and what it touches.

    `first`, `last`: the runs of its outermost planes, whose pieces go on in other slabs. Cells are
    counted through the whole box, (plane * rows + row) * nx + x. marks: by name, the pieces that
    have one of the cells marked; "periodic": those at periodic faces.
    """

    first: Runs
    last: Runs
    cells: np.ndarray
    place: np.ndarray
    marks: dict[str, np.ndarray]


def labelled(case, slab, solid, marked: dict) -> Part:
    """The pieces of a slab; solid (planes, rows, nx), marked: ascending cells of it by name.

    Pieces are not joined across periodic faces.
    """
    steps, nx = _steps(case.lattice), slab.shape[2]
    planes, joins, count = [], [], 0
    for local, here in enumerate(solid):
        runs = _runs(here == 0)
        inside = [_meeting(runs, runs, nx, *step) for step in steps if step[0] == 0]
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
    """The pieces of the whole box, see Part; the same however the box is cut."""

    cells: np.ndarray
    place: np.ndarray
    marks: dict[str, np.ndarray]

    def counted(self, which) -> tuple[int, int, int]:
        """Of some pieces (bool of each) the number, the cells, and the first cell, or -1."""
        first = int(self.place[which].min()) if which.any() else -1
        return int(which.sum()), int(self.cells[which].sum()), first


def joined(case, parts) -> Pieces:
    """The pieces of the box from those of all slabs, in their order."""
    steps, joins, count = _steps(case.lattice), [], 0
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


def isolated(pieces: Pieces) -> tuple[int, int, int]:
    """Pieces but the largest that nothing drives and that touch no periodic face, see `counted`."""
    driven = pieces.marks["driven"] | pieces.marks["periodic"]
    return pieces.counted(~driven & (pieces.cells < pieces.cells.max(initial=0)))


def blocked(pieces: Pieces) -> tuple[int, int, int]:
    """Pieces that a velocity fills or empties through a face, and that no open face is part of."""
    marks = pieces.marks
    return pieces.counted(marks["fed"] & ~marks["open"] & ~marks["periodic"])


def _steps(lattice) -> list[tuple[int, int, int]]:
    """(planes, rows, cells) from a run to those that it meets further on: the latter at most."""
    found = {}
    for plane, row, x in map(lattice.offset, range(1, lattice.Q)):
        if (plane, row) > (0, 0):
            found[plane, row] = max(found.get((plane, row), 0), abs(x))
    return [(*step, reach) for step, reach in found.items()]


def _runs(fluid) -> Runs:
    """The runs of a plane (rows, nx), a place without fluid on either side of each row."""
    places = np.pad(fluid, ((0, 0), (1, 1))).reshape(-1)
    change = np.flatnonzero(places[1:] != places[:-1]) + 1
    return Runs(change[::2], change[1::2], np.arange(change.size // 2))


def _meeting(a: Runs, b: Runs, nx: int, _, row: int, reach: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels of the runs of `a`, and of those of `b` some rows further on that they meet."""
    shift = row * (nx + 2)
    first = np.searchsorted(b.end, a.begin + shift - reach, side="right")
    last = np.searchsorted(b.begin, a.end + shift + reach, side="left")
    counts = np.maximum(last - first, 0)
    starts = np.cumsum(counts) - counts
    met = np.arange(counts.sum()) + np.repeat(first - starts, counts)
    return np.repeat(a.label, counts), b.label[met]


def _between(below: Runs, above: Runs, nx: int, steps) -> list:
    """The same of the runs of a plane and of the next one, for all links that lead there."""
    return [_meeting(below, above, nx, *step) for step in steps if step[0]]


def _stacked(pairs) -> tuple[np.ndarray, np.ndarray]:
    none = np.empty(0, np.int64)
    return tuple(np.concatenate(side) for side in zip(*pairs, (none, none), strict=True))


def _components(count: int, pairs) -> np.ndarray:
    """The least number that each of `count` hangs together with, by pairs of them."""
    root, (a, b) = np.arange(count), pairs
    while a.size:
        low, high = np.minimum(root[a], root[b]), np.maximum(root[a], root[b])
        apart = low < high
        a, b = a[apart], b[apart]
        np.minimum.at(root, high[apart], low[apart])
        while (root[root] != root).any():
            root = root[root]
    return root


def _places(cells, nx: int):
    """Places of a plane's cells, row * nx + x, in rows of nx + 2."""
    return cells + 2 * (cells // nx) + 1


def _flat(places, nx: int):
    """The inverse."""
    return places - 2 * (places // (nx + 2)) - 1


def _at_periodic(case, slab, runs: Runs, plane: int):
    """Which runs of a plane touch a periodic face."""
    (planes, rows, nx), closed = slab.shape, case.domain.periodic
    row, x = np.divmod(runs.begin, nx + 2)
    found = np.full(row.size, closed[-1] and plane in (0, planes - 1))
    if case.dimensions == 3 and closed[1]:
        found |= (row == 0) | (row == rows - 1)
    if closed[0]:
        found |= (x == 1) | (runs.end % (nx + 2) == nx + 1)
    return found
