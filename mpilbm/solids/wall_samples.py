"""Walls of bodies next to cells with links to them, and cells sampled along their normals.

A wall parallel to the faces of the cells is half-way along the links: those of a cell have one
direction along an axis, and are symmetric along the others. The normal of an inclined or curved
wall, and its distance, are those of the surface of the shape where the links cross it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpilbm.model.case import BoundedLattice, Surface
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.boundary_capabilities import CORNER_FALLBACK, INWARD_FALLBACK
from mpilbm.physics.lattices import Lattice
from mpilbm.solids import Flags, Floats, Ints
from mpilbm.solids.link_set import LinkSet
from mpilbm.solids.solid_cells import coordinates
from mpilbm.solids.wall_distance import (
    LINKS,
    FluidPlane,
    fluid_at,
    perpendicular,
    tangent_planes,
)

LEVEL = 1 - 1e-6  # cosine of the angle between an axis and the normal of a wall parallel to cells
MEETS = 0.7  # cosine of the angle between surfaces at an inner edge
NEAREST = 0.25  # least distance of a wall, so that the law is not evaluated at the wall
BESIDE = 2.0  # cells along a wall within which it has to be plane
FLAT = 0.005  # cells by which a plane wall may bend there: those of radius 400 are plane
CLOSER = 1e-9  # difference of distances of the same plane along several links


@dataclass(frozen=True, eq=False)
class WallSamples:
    """The plane walls next to the cells of n entries, and the cells that these sample.

    normal     float64 (n, D), out of the body; along an axis at walls parallel to the faces of the
               cells; 0 where no wall is known, or walls meet
    inclined   bool (n,), whether the wall is that of a surface at an angle to the cells
    curved     bool (n,), whether an inclined wall is curved or ends within BESIDE cells
    distance   float64 (n,), of the cell from the wall
    height     float64 (n,), of the centre of the sampled cell above the wall
    cells      int64 (n,), the sampled cells, numbered as in EntryList, including ghost planes
    fallbacks  {sentence: number of entries for which it applies}
    """

    normal: Floats
    inclined: Flags
    curved: Flags
    distance: Floats
    height: Floats
    cells: Ints
    fallbacks: dict[str, int]

    @property
    def rows(self) -> Floats:
        """Float64 (n + 1, D + 3): normal, height, inclined, curved; the last row is never used."""
        columns = [self.normal, self.height, self.inclined, self.curved]
        return np.pad(np.column_stack(columns), ((0, 1), (0, 0)))

    def only(self, mine: Any) -> "WallSamples":
        """The data of the entries with the numbers `mine`."""
        normal, inclined, curved = self.normal[mine], self.inclined[mine], self.curved[mine]
        distance, height, cells = self.distance[mine], self.height[mine], self.cells[mine]
        return WallSamples(normal, inclined, curved, distance, height, cells, self.fallbacks)


def wall_samples(
    case: BoundedLattice,
    slab: Slab,
    fluid: FluidPlane,
    cells: Ints,
    links: LinkSet,
    steps: int,
    shapes: Sequence[tuple[Surface, Ints]],
    sheets: Sequence[Surface] = (),
) -> WallSamples:
    """Return the walls at n entries, and the cells `steps` cells away from theirs.

    links: those to the body; shapes: each shape with a surface, and the numbers of its entries. A
    cell that is not fluid, or that lies behind such a cell or behind one of the sheets, is replaced
    by the nearest fluid cell before it. Entries without a wall sample their own cell.
    """
    plane, flat = _plane_walls(case.lattice, links)
    normal, distance = plane.astype(float), np.full(len(cells), 0.5)
    inclined, curved = np.zeros(len(cells), bool), np.zeros(len(cells), bool)
    at = coordinates(case, slab, cells).T
    for shape, mine in shapes:
        n, d, known = _planes_of(case, slab, shape, cells[mine], links[mine])
        known &= np.abs(n).max(axis=1) < LEVEL
        other = mine[known]
        inclined[other] = True
        foot = at[other] + 0.5 - d[known, None] * n[known]
        curved[other] = ~_plane_around(case, shape, foot.T, n[known].T)
        normal[other], distance[other] = n[known], np.maximum(d[known], NEAREST)
    normal[~(flat | inclined)] = 0
    usable = flat | inclined
    walls = int(np.count_nonzero(usable))
    free = free_steps(case, slab, fluid, at, normal, steps, sheets) * usable
    step = np.rint(free[:, None] * normal).astype(np.int64)
    sampled = np.where(free > 0, _cells_at(case, slab, fluid, at + step)[0], cells)
    height = distance + (step * normal).sum(axis=1)
    usable &= free == steps
    nearer = walls - int(np.count_nonzero(usable))
    fallbacks = {INWARD_FALLBACK: nearer} if steps else {}
    fallbacks[CORNER_FALLBACK] = int(np.count_nonzero(~normal.any(axis=1) & _beside(case, links)))
    return WallSamples(normal, inclined, curved, distance, height, sampled, fallbacks)


def free_steps(
    case: BoundedLattice,
    slab: Slab,
    fluid: FluidPlane,
    at: Ints,
    normal: Floats,
    steps: int,
    sheets: Sequence[Surface] = (),
) -> Ints:
    """How many of so many steps along normals lead from cells at (n, D) through fluid, (n,).

    The k-th step leads to the cell closest to k n. Cells behind one that is not fluid, or behind
    one of the sheets, do not count.
    """
    free, open_ahead = np.zeros(len(at), np.int64), np.ones(len(at), bool)
    for k in range(1, steps + 1):
        step = np.rint(k * normal).astype(np.int64)
        open_ahead &= _cells_at(case, slab, fluid, at + step)[1]
        for sheet in sheets:
            mine = np.flatnonzero(open_ahead)
            along = (at[mine].T + 0.5, step[mine].T.astype(float))
            open_ahead[mine] &= np.isnan(sheet.first(*along))
        free += open_ahead
    return free


def _beside(case: BoundedLattice, links: LinkSet) -> Flags:
    """Whether entries have links along an axis."""
    straight = [i for i, c in enumerate(case.lattice.c) if np.abs(c).sum() == 1]
    return np.logical_or.reduce([links.has(i) for i in straight])


def _planes_of(
    case: BoundedLattice, slab: Slab, shape: Surface, cells: Ints, links: LinkSet
) -> tuple[Floats, Floats, Flags]:
    """Normal (n, D) and distance (n,) of the nearest tangent plane; False where surfaces meet.

    Links that meet an outer edge have no plane. Links that leave the box through a face that is not
    periodic are left out.
    """
    size, periodic = np.array(case.domain.size), np.array(case.domain.periodic)
    at = coordinates(case, slab, cells).T
    normal, nearest = np.zeros((len(cells), len(size))), np.full(len(cells), np.inf)
    found: list[tuple[Ints, Floats]] = []
    for i in range(1, case.lattice.Q):
        c = np.array(case.lattice.c[i])
        inside = (((at - c >= 0) & (at - c < size)) | periodic).all(axis=1)
        for mine in _blocks(np.flatnonzero(links.has(i) & inside)):
            along = np.broadcast_to(c.astype(float)[:, None], (len(c), len(mine)))
            n, distance, sharp = tangent_planes(shape, at[mine].T + 0.5, along)
            distance[sharp] = np.inf
            nearer = distance < nearest[mine] - CLOSER
            normal[mine[nearer]], nearest[mine[nearer]] = n.T[nearer], distance[nearer]
            found.append((mine, n.T))
    known = np.isfinite(nearest)
    for mine, n in found:
        known[mine] &= (n * normal[mine]).sum(axis=1) > MEETS
    return normal, nearest, known


def _plane_around(case: BoundedLattice, shape: Surface, foot: Floats, normal: Floats) -> Flags:
    """Whether the surface is plane within BESIDE cells of points on it; both (D, n).

    Points BESIDE cells away along the wall and FLAT cells outwards are fluid, FLAT inwards solid.
    Those beyond faces that are not periodic are left out. Sheets, which have no inside, count as
    curved.
    """
    size, periodic = np.array(case.domain.size)[:, None], np.array(case.domain.periodic)[:, None]
    plane = np.ones(foot.shape[1], bool)
    for mine in _blocks(np.arange(foot.shape[1])):
        n = normal[:, mine]
        for along in perpendicular(n):
            for there in (foot[:, mine] + BESIDE * along, foot[:, mine] - BESIDE * along):
                beyond = (((there < 0) | (there > size)) & ~periodic).any(axis=0)
                bent = ~shape.inside(*(there - FLAT * n)) | shape.inside(*(there + FLAT * n))
                plane[mine] &= beyond | ~bent
    return plane


def _blocks(numbers: Ints) -> Iterator[Ints]:
    """Parts of some numbers, at most LINKS each."""
    for begin in range(0, numbers.size, LINKS):
        yield numbers[begin : begin + LINKS]


def _plane_walls(lattice: Lattice, links: LinkSet) -> tuple[Ints, Flags]:
    """The normals along axes, (n, D), and whether these are those of plane walls that may slip.

    Their links have one direction along an axis, and are symmetric along another axis.
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
    return normal, (straight == 1) & slips.any(axis=1)


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
