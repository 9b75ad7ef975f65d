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
from mpilbm.solids.box_walls import applied
from mpilbm.solids.build import Geometry
from mpilbm.solids.entry_list import EntryList
from mpilbm.solids.inward_cells import InwardCells

REACH = 2  # cells at a face with lists, and at a cut, that are wrong after two steps
UNIT = 8  # values to which short rows are padded: 16 bytes of the narrowest format
UNCUT = 2**30  # the place of the cut along an axis that has none: beyond all cells

UNCUT_BOX = {f"cut_at_{a}": UNCUT for a in AXES} | {f"cut_from_{a}": 0 for a in AXES}

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

    @property
    def between(self) -> tuple[int, int]:
        """(begin, end) of the places along the axis whose cells the window does not compute."""
        lower, upper = (max(0, depth - REACH) for depth in (self.lower, self.upper))
        return lower, self.count - upper

    def slab(self, slab: Slab) -> Slab:
        """The window as a slab; across the planes it has no neighbours."""
        if self.axis == 0:
            return Slab((self.size, *slab.shape[1:]), 0, 1, 0, self.size, False)
        shape = list(slab.shape)
        shape[self.axis] = self.size
        return replace(slab, shape=(shape[0], shape[1], shape[2]))

    def grid(self, case: Case, slab: Slab, ghost: int) -> Grid:
        """The memory of the populations of the window.

        Rows are as long as tiles of the sweep require: values of 2 bytes need two lines. The few
        cells along x of a window across x are padded to 16 bytes, as copies of rows require.
        """
        own, storage = self.slab(slab), case.precision.storage
        planes, rows, nx = own.planes, *own.shape[1:]
        row = max(nx, LINE + 1) if case.formats.unit == "float16" else nx
        grid = case.layout.grid(case.lattice, planes, rows, row, None, ghost, storage)
        assert isinstance(grid, Grid)  # of moments
        grid = replace(grid, nx=nx, wraps=own.wraps)
        return grid.short_rows(UNIT) if self.axis == 2 and nx < LINE else grid

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

    def place_in_box(self, begin: int) -> dict[str, int]:
        """The arguments of kernels that compute with the number of a cell in the box.

        `begin`: planes of the box below the slab. Where it is not 0, all cells of a window across
        planes are at the upper end.
        """
        axis = AXES[::-1][self.axis]
        skipped = self.skipped + begin * (self.axis == 0)
        return UNCUT_BOX | {f"cut_at_{axis}": self.lower, f"cut_from_{axis}": skipped}

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
    return [each for each in case.boundaries if not applied(each)]


def allows_windows(case: Case) -> bool:
    """Whether windows can supply the boundary lists of a case; True without lists."""
    return not why_no_windows(case)


def why_no_windows(case: Case) -> str:
    """Why windows cannot supply the boundary lists of a case, a clause; "" if they can.

    No body needs lists, and none moves beside faces with lists. No boundary keeps a state of its
    entries, and no force is given for each cell of the slab: a window has no copy of it. Faces that
    are joined across the planes may belong to different ranks.
    """
    listed, across = with_lists(case), AXES[case.dimensions - 1]
    own = {*in_cells(case), *reflecting(case)}
    for number, body in enumerate(case.bodies):
        if number not in own:
            return f"the body '{body.label}' has boundary lists"
        if listed and number in moving(case):
            return f"the body '{body.label}' moves, and '{listed[0].name}' has boundary lists"
    for each in listed:
        if each.state(case.lattice):
            return f"'{each.name}' at {each.where[0]} keeps a state of its cells"
        if each.capabilities.behind is not Behind.NOTHING:
            return f"'{each.name}' at {each.where[0]} reads cells away from the wall"
        if each.joins_faces and any(face[0] == across for face in each.where):
            return f"'{each.name}' acts along {across}, along which ranks divide the box"
    if listed and any(value.field for value in case.kernel_values):
        return f"a force is given for each cell, and '{listed[0].name}' has boundary lists"
    return ""


def has_windows(case: Case) -> bool:
    """Whether passes of two steps of a case have windows, on devices with a kernel for them."""
    possible = case.single_fluid and case.dimensions == 3 and case.layout.sweeps(case)
    return possible and bool(with_lists(case)) and allows_windows(case)


def cut_axes(case: Case) -> str:
    """The axes along which windows of a case have a cut and formulas depend on the coordinate."""
    if not has_windows(case):
        return ""
    given = [value for each in case.boundaries for value in each.given()]
    used = {axis for value in (*case.kernel_values, *given) for axis in value.coordinates}
    cut = {face[0] for each in with_lists(case) for face in each.where}
    return "".join(axis for axis in AXES if axis in cut & used)


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
    the cells next to them. The first step has computed these if they are not at the cut. Where the
    cells inwards are beside mirrors, they are listed too (box_walls.without), so one more cell has
    other bits after a pass. Along x it is even: a thread of the sweep may have two cells.
    """
    inward = [each.capabilities.inward for each in with_lists(case) if face in each.where]
    if not inward:
        return 0
    beside = max(inward) > 0 and any(each.mirrors for each in case.boundaries)
    depth = max(2 * REACH, max(inward) + REACH + 1 + beside)
    return depth + depth % 2 * (axis == 2)


def covered(
    windows: Sequence[Window], lists: Sequence[EntryList], shape: Shape, reflecting: frozenset[int]
) -> bool:
    """Whether all entries lie at faces that windows have, so that these compute their cells.

    Entries of owners that the kernel applies do not count: of mirrors and half-way walls at faces,
    and of bodies, of which `reflecting` has the places. They remain beside entries of others.
    """
    for each in lists:
        listed = [
            not (applied(owner.boundary) if owner.body is None else owner.place in reflecting)
            for owner in each.owners
        ]
        cells = each.cells[np.array(listed, bool)[each.member]]
        at, found = np.unravel_index(cells, shape), np.zeros(cells.size, bool)
        for window in windows:
            place = at[window.axis]
            found |= (place == 0) & (window.lower > 0)
            found |= (place == window.count - 1) & (window.upper > 0)
        if not found.all():
            return False
    return True
