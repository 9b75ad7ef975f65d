"""Plane walls of bodies next to cells with links to them, and cells sampled along their normals.

The wall of a body is half-way along the links. Where it is parallel to the faces of the cells, the
links of a cell to it have one direction along an axis, and are symmetric along the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpilbm.model.case import BoundedLattice, Surface
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.boundary_capabilities import INWARD_FALLBACK, SLOPE_FALLBACK
from mpilbm.physics.lattices import Lattice
from mpilbm.solids import Flags, Floats, Ints
from mpilbm.solids.link_set import LinkSet
from mpilbm.solids.solid_cells import coordinates
from mpilbm.solids.wall_distance import FluidPlane, fluid_at


@dataclass(frozen=True, eq=False)
class WallSamples:
    """The plane walls next to the cells of n entries, and the cells that these sample.

    normal     int64 (n, D), out of the body: one component is 1 or -1; 0 without a plane wall
    height     float64 (n,), of the centre of the sampled cell above the half-way wall
    cells      int64 (n,), the sampled cells, numbered as in EntryList, including ghost planes
    fallbacks  {sentence: number of entries for which it applies}
    """

    normal: Ints
    height: Floats
    cells: Ints
    fallbacks: dict[str, int]

    @property
    def rows(self) -> Floats:
        """Float64 (n + 1, D + 1): normal and height of each entry; the last row is never used."""
        return np.pad(np.column_stack([self.normal, self.height]), ((0, 1), (0, 0)))

    def only(self, mine: Any) -> "WallSamples":
        """The data of the entries with the numbers `mine`."""
        normal, height, cells = self.normal[mine], self.height[mine], self.cells[mine]
        return WallSamples(normal, height, cells, self.fallbacks)


def wall_samples(
    case: BoundedLattice,
    slab: Slab,
    fluid: FluidPlane,
    cells: Ints,
    links: LinkSet,
    steps: int,
    sheets: Sequence[Surface] = (),
) -> WallSamples:
    """Return the plane walls at n entries, and the cells `steps` cells away from theirs.

    links: those to the body. A cell that is not fluid, or that lies behind such a cell or behind
    one of the sheets, is replaced by the nearest fluid cell before it. Entries without a plane wall
    sample their own cell.
    """
    normal, sloped = _plane_walls(case.lattice, links)
    at = coordinates(case, slab, cells).T
    sampled, height = cells, np.full(len(cells), 0.5)
    usable = normal.any(axis=1)
    walls = int(np.count_nonzero(usable))
    for k in range(1, steps + 1):
        there, found = _cells_at(case, slab, fluid, at + k * normal)
        usable &= found
        for sheet in sheets:
            mine = np.flatnonzero(usable)
            along = (at[mine].T + 0.5, k * normal[mine].T.astype(float))
            usable[mine] &= np.isnan(sheet.first(*along))
        sampled = np.where(usable, there, sampled)
        height += usable
    nearer = walls - int(np.count_nonzero(usable))
    fallbacks = {INWARD_FALLBACK: nearer} if steps else {}
    return WallSamples(normal, height, sampled, fallbacks | {SLOPE_FALLBACK: sloped})


def _plane_walls(lattice: Lattice, links: LinkSet) -> tuple[Ints, int]:
    """The normals, (n, D), and the number of entries that face a wall without a slip along it.

    Their links have several directions along axes, or are not symmetric along any other axis.
    """
    normal, straight = np.zeros((len(links), lattice.D), np.int64), np.zeros(len(links), np.int64)
    odd = np.zeros((len(links), lattice.D))
    for i in range(1, lattice.Q):
        there, c = links.has(i), np.array(lattice.c[i])
        odd += float(lattice.w[i]) * np.outer(there, c)
        if np.abs(c).sum() == 1:
            straight += there
            normal += np.outer(there, c)
    normal[straight != 1] = 0
    least = 0.5 * min(float(w) for w in lattice.w)
    slips = (np.abs(odd) < least) & (normal == 0)
    plane = (straight == 1) & slips.any(axis=1)
    return normal, int(np.count_nonzero((straight > 0) & ~plane))


def _cells_at(
    case: BoundedLattice, slab: Slab, fluid: FluidPlane, there: Ints
) -> tuple[Ints, Flags]:
    """The numbers of cells at coordinates (n, D), and whether these are fluid cells."""
    size, periodic = np.array(case.domain.size), np.array(case.domain.periodic)
    found = (((there >= 0) & (there < size)) | periodic).all(axis=1)
    planes = there[:, -1] - slab.begin
    row = there[:, 1] % slab.shape[1] if case.dimensions == 3 else 0 * planes
    number = row * slab.shape[2] + there[:, 0] % slab.shape[2]
    found[found] = fluid_at(fluid, planes[found], number[found])
    return planes * slab.shape[1] * slab.shape[2] + number, found
