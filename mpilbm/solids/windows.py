"""Windows: cells of a slab next to faces of the box, as a small box of their own.

A pass of two steps applies no boundary lists, so after it the cells at faces with lists and the
cells next to them are wrong. Single steps of a window compute these cells instead:

    the slab along an axis    | 0 1 2 3 | 4 … n - 5 | n - 4 … n - 1 |     faces at both ends
    its window                | 0 1 2 3   4 5 6 7 |                       the cut lies before cell 4

Cells at the cut have wrong neighbours. A wrong value travels one cell per step, so after two steps
the cells are right that are at least REACH cells away from the cut. Along the other axes a window
has all cells of the slab, with their boundary lists.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.layouts.grid import LINE, Grid
from mpilbm.model.case import BoundedLattice, Case
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.boundaries import Condition, in_cells, reflecting
from mpilbm.physics.boundary_capabilities import Behind
from mpilbm.physics.lattices import AXES
from mpilbm.physics.motions import moving
from mpilbm.solids import Flags, Ints
from mpilbm.solids.box_walls import constant_velocity
from mpilbm.solids.build import Geometry
from mpilbm.solids.entry_list import EntryList
from mpilbm.solids.inward_cells import InwardCells

REACH = 2  # cells at a face with lists, and at a cut, that are wrong after two steps
UNCUT = 2**30  # the place of the cut along an axis that has none: beyond all cells

Shape = tuple[int, int, int]


@dataclass(frozen=True)
class Window:
    """The cells at the ends of one axis of a slab.

    axis   0 planes, 1 rows, 2 x
    lower  number of cells from the lower end on, 0 if there are no lists at this face
    upper  number of cells up to the upper end
    count  number of cells of the slab along the axis
    """

    axis: int
    lower: int
    upper: int
    count: int

    @property
    def size(self) -> int:
        """Number of cells along the axis."""
        return self.lower + self.upper

    @property
    def skipped(self) -> int:
        """Number of cells of the slab between the two parts."""
        return self.count - self.size

    def slab(self, slab: Slab) -> Slab:
        """The window as a slab; across the planes it has no neighbours."""
        if self.axis == 0:
            return Slab((self.size, *slab.shape[1:]), 0, 1, 0, self.size, False)
        shape = list(slab.shape)
        shape[self.axis] = self.size
        return replace(slab, shape=(shape[0], shape[1], shape[2]))

    def grid(self, case: Case, slab: Slab, ghost: int) -> Grid:
        """The memory of the populations of the window.

        Rows are as long as tiles of the sweep require: values of 2 bytes need two lines.
        """
        own, storage = self.slab(slab), case.precision.storage
        planes, rows, nx = own.planes, *own.shape[1:]
        row = max(nx, LINE + 1) if case.formats.unit == "float16" else nx
        grid = case.layout.grid(case.lattice, planes, rows, row, None, ghost, storage)
        assert isinstance(grid, Grid)  # of moments
        return replace(grid, nx=nx, wraps=own.wraps)

    @property
    def ends(self) -> list[int]:
        """The places of its cells in the slab along the axis."""
        return [*range(self.lower), *range(self.count - self.upper, self.count)]

    def of(self, values: NDArray[Any]) -> NDArray[Any]:
        """The values of the window from those of the slab, (planes, rows, nx)."""
        return np.ascontiguousarray(values.take(self.ends, self.axis))

    def places(self, cells: Ints, shape: Shape) -> tuple[Flags, Ints]:
        """Whether cells of a slab of this shape are in the window, and their numbers there."""
        at = list(np.unravel_index(cells, shape))
        place = at[self.axis]
        upper = place >= self.count - self.upper
        inside = upper | (place < self.lower)
        there = list(shape)
        there[self.axis] = self.size
        at[self.axis] = np.where(inside, place - self.skipped * upper, 0)
        return inside, np.ravel_multi_index(tuple(at), tuple(there)).astype(np.int64)

    def entries(self, entries: EntryList, shape: Shape) -> EntryList:
        """The entries of a slab of this shape in the window. Cells keep their order."""
        inside, _ = self.places(entries.cells, shape)
        mine = entries.only(np.flatnonzero(inside))
        inward = [InwardCells(self._inside(at.cells, shape), at.blocked) for at in mine.inward]
        return replace(mine, cells=self._inside(mine.cells, shape), inward=tuple(inward))

    def _inside(self, cells: Ints, shape: Shape) -> Ints:
        inside, numbers = self.places(cells, shape)
        assert inside.all(), "the window is as deep as its boundaries read"
        return numbers

    def geometry(self, geometry: Geometry) -> Geometry:
        """The solid cells, boundary lists and solid shares of the window."""
        planes, rows, nx = geometry.solid.shape
        lists = tuple(self.entries(each, (planes, rows, nx)) for each in geometry.lists)
        shares = geometry.shares
        if shares is not None:
            shares = replace(shares, share=self.of(shares.share), body=self.of(shares.body))
        return replace(geometry, solid=self.of(geometry.solid), lists=lists, shares=shares)

    def cut(self, ghost: int) -> dict[str, int]:
        """The arguments of the copies between slab and window: the cut, and the cells skipped.

        `ghost`: ghost planes of both; kernels count planes from the first of them.
        """
        found = {}
        for axis, name in enumerate(("plane", "row", "x")):
            own = axis == self.axis
            found[f"cut_{name}"] = self.lower + ghost * (axis == 0) if own else UNCUT
            found[f"skipped_{name}"] = self.skipped * own
        return found


def with_lists(case: BoundedLattice) -> list[Condition]:
    """The boundaries at faces of the box that the sweep does not apply by itself."""
    return [each for each in case.boundaries if constant_velocity(each) is None]


def allows_windows(case: Case) -> bool:
    """Whether windows can supply the boundary lists of a case; True without lists.

    No body needs lists, and none moves beside faces with lists. No boundary keeps a state of its
    entries. Kernels compute formulas from the place of a cell in the window, so none depends on a
    coordinate along which there is a cut. Faces that are joined across the planes may belong to
    different ranks.
    """
    listed, across = with_lists(case), AXES[case.dimensions - 1]
    if (listed and moving(case)) or len(case.bodies) > len({*in_cells(case), *reflecting(case)}):
        return False
    for each in listed:
        read = each.capabilities.behind
        if each.state(case.lattice) or read is not Behind.NOTHING:
            return False
        if each.joins_faces and any(face[0] == across for face in each.where):
            return False
    cut = {face[0] for each in listed for face in each.where}
    given = [value for each in case.boundaries for value in each.given()]
    return not any(cut & {*value.coordinates} for value in (*case.kernel_values, *given))


def has_windows(case: Case) -> bool:
    """Whether passes of two steps of a case have windows, on devices with a kernel for them."""
    possible = case.single_fluid and case.dimensions == 3 and case.layout.sweeps(case)
    return possible and bool(with_lists(case)) and allows_windows(case)


def copies_of_lists(case: Case) -> int:
    """How many times the boundary lists of a step are stored: for each fluid, and in windows.

    The few entries at edges of the box are in several windows; they are not counted.
    """
    return 2 if has_windows(case) else len(case.fluids)


def windows_of(case: Case, slab: Slab) -> tuple[Window, ...] | None:
    """The windows of a slab, one for each axis with lists; None if one has too few cells."""
    found, ends = [], (slab.lower is None, slab.upper is None)
    for axis, name in enumerate(reversed(AXES)):
        lower, upper = (_depth(case, f"{name}{side}", axis) for side in "-+")
        if axis == 0:
            lower, upper = lower * ends[0], upper * ends[1]
        count = (slab.planes, *slab.shape[1:])[axis]
        if lower + upper > count:
            return None
        if lower or upper:
            found.append(Window(axis, lower, upper, count))
    return tuple(found)


def _depth(case: Case, face: str, axis: int) -> int:
    """Number of cells of a window at a face, 0 without lists there.

    In the second step a boundary reads cells `inward`, and the populations that arrive there from
    the cells next to them. The first step has computed these if they are not at the cut. Along x it
    is even: a thread of the sweep may have two cells.
    """
    inward = [each.capabilities.inward for each in with_lists(case) if face in each.where]
    if not inward:
        return 0
    depth = max(2 * REACH, max(inward) + REACH + 1)
    return depth + depth % 2 * (axis == 2)


def covered(windows: Sequence[Window], lists: Sequence[EntryList], shape: Shape) -> bool:
    """Whether all entries lie at faces that windows have, so that these compute their cells."""
    for each in lists:
        at, found = np.unravel_index(each.cells, shape), np.zeros(each.cells.size, bool)
        for window in windows:
            place = at[window.axis]
            found |= (place == 0) & (window.lower > 0)
            found |= (place == window.count - 1) & (window.upper > 0)
        if not found.all():
            return False
    return True
