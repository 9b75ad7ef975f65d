"""Solid and outside cells next to the fluid, whose values the fields of couplings need."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpilbm.layouts.grid import FieldGrid
from mpilbm.model.case import Case
from mpilbm.parallel.slabs import Slab
from mpilbm.solids import Flags, Floats, Ints
from mpilbm.solids.build import Geometry
from mpilbm.solids.owners import NOBODY, beyond, face_owners, owners_of

Cells = tuple[Ints, Ints, Ints, Ints, Floats]  # at, owner, number of sources, sources, weights


@dataclass(frozen=True)
class WallCells:
    """Solid cells of a slab, and cells beyond faces of the box, that have fluid next to them.

    at      int64 (n,), the indices of the cells in the field (value 0), ordered by plane; cells
            beyond the first or last plane follow or precede it as part of the same group
    ends    int64 (planes + 1,), the end of each plane's group in `at`; the first entry is 0
    owner   int32 (n,), the place of the owner, see solids/owners.py
    start   int64 (n + 1,); the sources of cell k are source[start[k]:start[k + 1]]
    source  int64, the indices of the adjacent fluid cells, in the order of directions, so that
            results do not depend on the partition
    weight  float64, w_i divided by the sum over the sources of the cell
    """

    at: Ints
    ends: Ints
    owner: NDArray[np.int32]
    start: Ints
    source: Ints
    weight: Floats


def wall_cells(case: Case, slab: Slab, geometry: Geometry, grid: FieldGrid) -> WallCells:
    """Return the wall cells of a slab, with indices of a FieldGrid."""
    finder = _Finder(case, slab, geometry, grid)
    found = [[finder.plane(local)] for local in range(slab.planes)]
    found[0].insert(0, finder.plane(-1))
    found[-1].append(finder.plane(slab.planes))
    counts = [sum(part[0].size for part in parts) for parts in found]
    at, owner, around, source, weight = (
        np.concatenate(each)
        for each in zip(*(part for parts in found for part in parts), strict=True)
    )
    ends, start = np.cumsum([0, *counts]), np.cumsum([0, *around])
    return WallCells(at, ends, owner.astype(np.int32), start, source, weight)


class _Finder:
    """Finds the wall cells plane by plane; equal planes without bodies are computed once."""

    def __init__(self, case: Case, slab: Slab, geometry: Geometry, grid: FieldGrid):
        self.case, self.slab, self.geometry, self.grid = case, slab, geometry, grid
        owners = owners_of(case)
        self.faces, self.first_body = face_owners(case, owners), len(owners) - len(case.bodies)
        self.planes, (self.rows, self.nx) = slab.planes, slab.shape[1:]
        self.known: dict[tuple[str, ...], Cells] = {}

    def plane(self, local: int) -> Cells:
        """The cells of a local plane."""
        key = tuple(self._kind(local + step) for step in (-1, 0, 1))
        if "mixed" in key:
            return self._moved(self._plane(local), local)
        if key not in self.known:
            self.known[key] = self._plane(local)
        return self._moved(self.known[key], local)

    def _kind(self, local: int) -> str:
        """Whether a plane is all fluid, contains solids, lies outside a face, or is not needed."""
        if not -1 <= local <= self.planes:
            return "beyond"
        if self.slab.global_plane(local) is None:
            return "above" if local > 0 else "below"
        return "fluid" if self.geometry.fluid(local).all() else "mixed"

    def _moved(self, cells: Cells, local: int) -> Cells:
        """The cells with indices in the field, from indices relative to the plane."""
        at, owner, around, source, weight = cells
        shift = (local + self.grid.ghost) * self.grid.plane_stride
        return at + shift, owner, around, source + shift, weight

    def _fluid(self, local: int) -> Flags:
        """Bool (rows, nx), padded with cells that are not fluid where the box ends in walls."""
        inside = np.zeros((self.rows, self.nx), bool)
        if -1 <= local <= self.planes:
            inside = self.geometry.fluid(local)
        return np.pad(inside, [(int(w), int(w)) for w in self.grid.walled])

    def _plane(self, local: int) -> Cells:
        lattice, here = self.case.lattice, self._fluid(local)
        planes = {step: self._fluid(local + step) for step in (-1, 0, 1)}
        outside = self.slab.global_plane(local) is None
        own = 0 <= local < self.planes or (outside and local in (-1, self.planes))
        mask = np.zeros((lattice.Q, *here.shape), bool)
        for i in range(1, lattice.Q) if own else ():
            plane, *within = lattice.offset(i)
            mask[i] = np.roll(planes[plane], [-step for step in within], (0, 1)) & ~here
        cells: Ints = np.argwhere(mask.any(axis=0))
        beside = mask[:, cells[:, 0], cells[:, 1]].T  # (cells, Q)
        row, x = (cells - np.array(self.grid.walled, int)).T
        entry, direction = np.nonzero(beside)
        offsets = np.array([lattice.offset(k) for k in range(lattice.Q)])[direction]
        there = self.grid.index(
            offsets[:, 0],
            (row[entry] + offsets[:, 1]) % self.rows,
            (x[entry] + offsets[:, 2]) % self.nx,
        )
        weights = np.array(lattice.w, np.float64)[direction]
        total = np.bincount(entry, weights, len(cells))
        at, around = self.grid.index(0, row, x), beside.sum(axis=1, dtype=np.int64)
        return at, self._owners(local, row, x), around, there, weights / total[entry]

    def _owners(self, local: int, row: Ints, x: Ints) -> Ints:
        """Places of owners: the crossed face that is latest in the file, otherwise the body."""
        place = np.full(row.size, self.slab.begin + local), row, x
        sides = zip(place, self.slab.shape, self.faces, strict=True)
        face = np.maximum.reduce([beyond(at, size, pair) for at, size, pair in sides])
        body = np.zeros(row.size, np.int64)
        inside = face == NOBODY
        if 0 <= local < self.planes:
            body[inside] = self.geometry.solid[local][row[inside], x[inside]]
        return np.where(inside, body - 1 + self.first_body, face)
