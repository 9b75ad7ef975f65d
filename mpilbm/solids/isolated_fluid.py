"""Isolated fluid: connected pieces of fluid cells, found in slabs and joined for the box.

Consecutive fluid cells of a row form a run. Runs of neighbouring rows and planes are connected if a
link leads from one to the other. On lattices whose links reach only every second cell of a
neighbouring row (D3Q13, D3Q15), runs also count as connected if they lie between such cells.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.model.case import Case
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.lattices import Lattice
from mpilbm.solids import Flags, Ints
from mpilbm.solids.solid_cells import NO_CELLS, CellCount
from mpilbm.solids.surfaces.triangles import components

Pair = tuple[Ints, Ints]  # labels of pieces that are connected
Step = tuple[int, int, int]
CELLS = 2**20  # labelled together, or one plane


@dataclass(frozen=True)
class Runs:
    """The runs of a block of planes: begin, end and label of each.

    These are places; a row has nx + 2 places, a plane has rows + 1 rows.
    """

    begin: Ints
    end: Ints
    label: Ints


@dataclass(frozen=True)
class Part:
    """The n pieces of fluid of a slab, a block of planes or the box, in order of their first cell.

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

    def count(self, which: Flags) -> tuple[int, CellCount]:
        """Return the number of pieces where `which` is True, and the count of their cells."""
        if not which.any():
            return 0, NO_CELLS
        cells = CellCount(int(self.cells[which].sum()), int(self.place[which].min()))
        return int(which.sum()), cells


def labelled(case: Case, slab: Slab, solid: NDArray[Any], marked: dict[str, Ints]) -> Part:
    """Return the pieces of a slab.

    solid: (planes, rows, nx); marked: {name: cells of the slab, ascending}. Pieces are not joined
    across periodic faces.
    """
    size = solid[0].size

    def blocks() -> Iterator[Part]:
        for begin, end in slab.blocks(CELLS):
            ends = begin * size, end * size
            parts = {n: slice(*np.searchsorted(those, ends)) for n, those in marked.items()}
            cells = {name: those[parts[name]] - ends[0] for name, those in marked.items()}
            yield _labelled(case, slab.begin + begin, solid[begin:end], cells)

    return joined(case, blocks())


def _labelled(case: Case, plane: int, solid: NDArray[Any], marked: dict[str, Ints]) -> Part:
    """Return the pieces of a block of planes that begins with `plane`, as `labelled`."""
    planes, rows, nx = solid.shape
    stride = (rows + 1) * (nx + 2)
    runs = _runs(solid == 0)
    pairs = [_connected(runs, runs, step, nx, stride) for step in _steps(case.lattice)]
    local, row, x = np.unravel_index(runs.begin, (planes, rows + 1, nx + 2))
    first_cells = ((plane + local) * rows + row) * nx + x - 1
    label, cells, place = _pieces(pairs, runs.end - runs.begin, first_cells)
    marks = {name: np.zeros(cells.size, bool) for name in (*marked, "periodic")}
    for name, those in marked.items():
        at = np.unravel_index(those, solid.shape)
        here = at[0] * stride + at[1] * (nx + 2) + at[2] + 1
        marks[name][label[np.searchsorted(runs.begin, here, side="right") - 1]] = True
    marks["periodic"][label[_at_periodic(case, plane + local, row, x, runs)]] = True
    first, last = (
        Runs(*(each[mine] for each in (runs.begin - k * stride, runs.end - k * stride, label)))
        for k, mine in ((k, local == k) for k in (0, planes - 1))
    )
    return Part(first, last, cells, place, marks)


def joined(case: Case, parts: Iterable[Part]) -> Part:
    """Return the pieces of successive slabs or blocks; those of the box do not depend on these."""
    nx, count = case.shape[2], 0
    above = [(0, *step[1:]) for step in _steps(case.lattice) if step[0]]
    joins: list[Pair] = []
    found: list[tuple[Ints, Ints, dict[str, Flags]]] = []
    ends: list[Runs] = []  # of the first part, and of the one before
    for part in parts:
        first, last = (Runs(r.begin, r.end, r.label + count) for r in (part.first, part.last))
        joins += [_once(_connected(below, first, step, nx)) for below in ends[1:] for step in above]
        ends = [ends[0] if ends else first, last]
        found.append((part.cells, part.place, part.marks))
        count += part.cells.size
    known = (np.concatenate([each[k] for each in found]) for k in (0, 1))
    label, cells, place = _pieces(joins, *known)
    marks = {name: np.zeros(cells.size, bool) for name in found[0][2]}
    for name, mark in marks.items():
        np.logical_or.at(mark, label, np.concatenate([each[2][name] for each in found]))
    first, last = (Runs(r.begin, r.end, label[r.label]) for r in ends)
    return Part(first, last, cells, place, marks)


def _once(pair: Pair) -> Pair:
    numbers = max((int(each.max()) for each in pair if each.size), default=0) + 1
    first, second = np.divmod(np.unique(pair[0] * numbers + pair[1]), numbers)
    return first, second


def isolated(pieces: Part) -> tuple[int, CellCount]:
    """Count the pieces that nothing drives and that touch no periodic face, except the largest."""
    driven = pieces.marks["driven"] | pieces.marks["periodic"]
    return pieces.count(~driven & (pieces.cells < pieces.cells.max(initial=0)))


def blocked(pieces: Part) -> tuple[int, CellCount]:
    """Count the pieces at a face with a given velocity that reach no face with a free velocity."""
    marks = pieces.marks
    return pieces.count(marks["given"] & ~marks["free"] & ~marks["periodic"])


def _steps(lattice: Lattice) -> list[Step]:
    """(planes, rows, largest |x|) of the links from a row to later rows."""
    found: dict[tuple[int, int], int] = {}
    for plane, row, x in map(lattice.offset, range(1, lattice.Q)):
        if (plane, row) > (0, 0):
            found[plane, row] = max(found.get((plane, row), 0), abs(x))
    return [(*step, reach) for step, reach in found.items()]


def _runs(fluid: Flags) -> Runs:
    """Return the runs of a block (planes, rows, nx).

    Rows are padded by a solid place on both sides, and planes by a solid row.
    """
    planes, rows, nx = fluid.shape
    places = np.zeros((planes, rows + 1, nx + 2), bool)
    places[:, :rows, 1:-1] = fluid
    places = places.reshape(-1)
    change = np.flatnonzero(places[1:] != places[:-1]) + 1
    return Runs(change[::2], change[1::2], np.arange(change.size // 2))


def _connected(a: Runs, b: Runs, step: Step, nx: int, stride: int = 0) -> Pair:
    """Return pairs of labels: runs of `a`, and runs of `b` to which a link leads.

    stride: the number of places in a plane; 0 if the places of `a` and `b` are counted in planes.
    """
    plane, row, reach = step
    shift = plane * stride + row * (nx + 2)
    first = np.searchsorted(b.end, a.begin + shift - reach, side="right")
    last = np.searchsorted(b.begin, a.end + shift + reach, side="left")
    counts = np.maximum(last - first, 0)
    starts = np.cumsum(counts) - counts
    met = np.arange(counts.sum()) + np.repeat(first - starts, counts)
    return np.repeat(a.label, counts), b.label[met]


def _pieces(pairs: list[Pair], cells: Ints, place: Ints) -> tuple[Ints, Ints, Ints]:
    """The piece of each part, and the cells and first cell of each piece; pairs connect parts."""
    none = np.empty(0, np.int64)
    joined = [np.concatenate(each) for each in zip((none, none), *pairs, strict=True)]
    once, label = np.unique(components(joined, cells.size), return_inverse=True)
    total, first = np.zeros(once.size, np.int64), np.full(once.size, np.iinfo(np.int64).max)
    np.add.at(total, label, cells)
    np.minimum.at(first, label, place)
    return label, total, first


def _at_periodic(case: Case, plane: Ints, row: Ints, x: Ints, runs: Runs) -> Flags:
    """Bool array: whether each run, which begins at a place, touches a periodic face."""
    (planes, rows, nx), closed = case.shape, case.domain.periodic
    found = closed[-1] & ((plane == 0) | (plane == planes - 1))
    if case.dimensions == 3 and closed[1]:
        found |= (row == 0) | (row == rows - 1)
    if closed[0]:
        found |= (x == 1) | (runs.end % (nx + 2) == nx + 1)
    return found
