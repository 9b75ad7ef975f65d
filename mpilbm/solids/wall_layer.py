"""Fluid cells above the curved walls of bodies, in which the friction of a wall law acts.

A wall cell, one with links to the body, is next to the area a of the wall, with the normal n and
the distance d of the plane that touches the wall there. The area is divided among the cells at r
from the foot of the wall cell, in proportion to

    k(r) = max(0, 1 - |r . n - MIDDLE| / HALF_WIDTH) max(0, 1 - |r - (r . n) n|^2 / ASIDE^2)^2

over all cells of the lattice. Those that are not fluid, or next to any wall, or beyond another
solid, get none, and their part of the friction is lost. A cell that gets parts of several wall
cells has the sum of the areas, and the means of n and r . n.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from mpilbm.model.case import BoundedLattice
from mpilbm.parallel.slabs import Slab
from mpilbm.solids import Flags, Floats, Ints
from mpilbm.solids.wall_distance import FluidPlane, fluid_at

MIDDLE, HALF_WIDTH = 2.5, 1.0  # cells from the wall: between wall cells and the outer flow
ASIDE = 1.5  # cells along the wall, so that a few cells share the friction at each wall cell
FACING = 0.7  # cosine of the angle between the normal of a wall and that of one that faces it
REACH = 3  # cells from a wall cell, at least NEAREST from the wall, to those above it


@dataclass(frozen=True, eq=False)
class WallLayer:
    """The wall below n cells.

    normal  float64 (n, D), out of the body, unit vectors
    height  float64 (n,), distance of the cell from the wall
    area    float64 (n,), of the wall whose friction acts in the cell
    """

    normal: Floats
    height: Floats
    area: Floats

    @property
    def rows(self) -> Floats:
        """Float64 (n + 1, D + 2): normal, height, area; the last row is never used."""
        columns = [self.normal, self.height, self.area]
        return np.pad(np.column_stack(columns), ((0, 1), (0, 0)))

    def only(self, mine: Any) -> "WallLayer":
        """The data of the cells with the numbers `mine`."""
        return WallLayer(self.normal[mine], self.height[mine], self.area[mine])


@dataclass(frozen=True, eq=False)
class CurvedWalls:
    """n wall cells at curved walls of bodies.

    at        int64 (n, D), x, y[, z]; along the axis of the slabs counted from its first plane
    body      int64 (n,), the number of the body
    normal    float64 (n, D), out of the body
    distance  float64 (n,), of the tangent plane
    area      float64 (n,), of the wall
    free      int64 (n,), how many steps along the normal lead through fluid, at most REACH
    """

    at: Ints
    body: Ints
    normal: Floats
    distance: Floats
    area: Floats
    free: Ints

    @classmethod
    def joined(cls, parts: Sequence["CurvedWalls"]) -> "CurvedWalls":
        """The walls of all parts, one after another."""
        names = cls.__dataclass_fields__
        return cls(*(np.concatenate([getattr(each, name) for each in parts]) for name in names))

    def moved(self, planes: int) -> "CurvedWalls":
        """The same walls, so many planes away."""
        at = self.at.copy()
        at[:, -1] += planes
        return replace(self, at=at)


def beyond(slab: Slab) -> Iterator[tuple[int, Slab]]:
    """Yield (local number of its first plane, slab) for the planes within REACH of a slab."""
    for first in (-REACH, slab.planes):
        local = [k for k in range(first, first + REACH) if slab.global_plane(k) is not None]
        while local:
            begin = slab.global_plane(local[0])
            assert begin is not None, "these planes are in the box"
            count = min(len(local), slab.shape[0] - begin)
            yield local[0], replace(slab, begin=begin, end=begin + count)
            local = local[count:]


def layer_of(
    case: BoundedLattice, slab: Slab, fluid: FluidPlane, taken: Ints, walls: CurvedWalls
) -> tuple[Ints, Ints, WallLayer]:
    """Return the cells above walls, int64 (n,), ascending, their bodies, and the walls below them.

    taken: cells with missing links, ascending. walls: those in the slab and within REACH of it. A
    cell above the walls of several bodies belongs to the one with the largest area there.
    """
    cell, step, wall, part = _parts(case, slab, fluid, taken, walls)
    order = np.lexsort((step, walls.body[wall], cell))
    cell, step, wall, part = cell[order], step[order], wall[order], part[order]
    body = walls.body[wall]
    begins = np.append(True, (cell[1:] != cell[:-1]) | (body[1:] != body[:-1]))[: cell.size]
    group, first = np.cumsum(begins) - 1, np.flatnonzero(begins)
    area: Floats = np.bincount(group, part, first.size).astype(float)
    above = part * _above(walls, wall, _offsets(case)[step])
    normals = _one_side(walls.normal[wall], group, part, first)
    normal = [np.bincount(group, part * n, first.size) for n in normals.T]
    length = np.sqrt(sum(n * n for n in normal))
    unit = (
        np.stack(normal, axis=1).reshape(-1, case.dimensions) / np.maximum(length, 1e-300)[:, None]
    )
    found = WallLayer(unit, np.bincount(group, above, first.size) / area, area)
    cell, body = cell[first], body[first]
    mine = np.lexsort((body, -area, cell))
    mine = mine[np.append(True, np.diff(cell[mine]) > 0)[: mine.size]]
    return cell[mine], body[mine], found.only(mine)


def _one_side(normals: Floats, group: Ints, part: Floats, first: Ints) -> Floats:
    """Normals (n, D), reversed at walls that face that of the largest part of their group.

    So those on both sides of a gap do not cancel; friction is the same for n and -n.
    """
    largest = np.lexsort((-part, group))[first]  # groups are in order and begin at `first`
    facing = (normals * normals[largest][group]).sum(axis=1)
    return np.where(facing[:, None] < -FACING, -normals, normals)


@cache
def _cube(D: int) -> Ints:
    return np.array(list(product(range(-REACH, REACH + 1), repeat=D)), np.int64)


def _offsets(case: BoundedLattice) -> Ints:
    """The offsets (m, D) from a wall cell within REACH."""
    return _cube(case.dimensions)


def _above(walls: CurvedWalls, wall: Ints, offset: Ints) -> Floats:
    """Distances r . n of cells at offsets from wall cells."""
    along = sum(o * n for o, n in zip(offset.T, walls.normal[wall].T, strict=True))
    found: Floats = along + walls.distance[wall]
    return found


def _parts(
    case: BoundedLattice, slab: Slab, fluid: FluidPlane, taken: Ints, walls: CurvedWalls
) -> tuple[Ints, Ints, Ints, Floats]:
    """The parts of the areas: cells, numbers of the offsets, numbers of the walls, areas."""
    each, total = np.arange(walls.body.size), np.zeros(walls.body.size)
    found: list[tuple[Ints, Ints, Floats]] = []
    for offset in _offsets(case):
        along = np.broadcast_to(offset, (each.size, offset.size))
        above = _above(walls, each, along)
        aside = np.maximum(0, (offset * offset).sum() - (above - walls.distance) ** 2)
        level = np.maximum(0, 1 - np.abs(above - MIDDLE) / HALF_WIDTH)
        k = level * np.maximum(0, 1 - aside / ASIDE**2) ** 2
        total += k
        mine = np.flatnonzero((k > 0) & (above < walls.distance + walls.free + 0.5))
        cells, inside = _cells_in(case, slab, walls.at[mine] + offset)
        mine = mine[inside]
        found.append((cells[inside], mine, k[mine]))
    step = np.repeat(np.arange(len(found)), [cells.size for cells, *_ in found])
    cell, wall = (np.concatenate([each[n] for each in found]) for n in (0, 1))
    k = np.concatenate([each[2] for each in found])
    plane = slab.shape[1] * slab.shape[2]
    blocked = np.append(taken, -1)[np.searchsorted(taken, cell)] == cell
    free = np.flatnonzero(fluid_at(fluid, cell // plane, cell % plane) & ~blocked)
    cell, step, wall, k = cell[free], step[free], wall[free], k[free]
    return cell, step, wall, walls.area[wall] * k / total[wall]


def _cells_in(case: BoundedLattice, slab: Slab, there: Ints) -> tuple[Ints, Flags]:
    """Numbers of cells at local coordinates (n, D), and whether these lie in the slab."""
    size, periodic = np.array(case.domain.size), np.array(case.domain.periodic)
    within = (((there >= 0) & (there < size)) | periodic)[:, :-1].all(axis=1)
    within &= (there[:, -1] >= 0) & (there[:, -1] < slab.planes)
    row = there[:, 1] % slab.shape[1] if case.dimensions == 3 else 0
    number = (there[:, -1] * slab.shape[1] + row) * slab.shape[2] + there[:, 0] % slab.shape[2]
    return number, within
