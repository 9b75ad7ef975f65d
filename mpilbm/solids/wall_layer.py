"""Fluid cells above the curved walls of bodies, in which the friction of a wall law acts.

A wall cell, one with links to the body, is next to the area a of the wall, with the normal n and
the distance d of the plane that touches the wall there. The area is divided among the cells at r
from the foot of the wall cell, in proportion to

    k(r) = max(0, 1 - |r . n - MIDDLE| / HALF_WIDTH) max(0, 1 - |r - (r . n) n|^2 / ASIDE^2)^2

over the cells of the box that are fluid, not next to a wall or face with missing links, and not
beyond another solid. The areas of these cells add up to that of the wall, also next to a plane of
symmetry (`free_slip`) and between bodies; the friction at a wall cell without such cells is lost.
A cell that gets parts of several wall cells has the sum of the areas, and the means of n and r . n.
It has the friction of one body, that with the largest sum of a k(r) there.
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
    def none(cls, D: int) -> "CurvedWalls":
        """No walls."""
        none, places = np.zeros(0, np.int64), np.zeros((0, D))
        return cls(places.astype(np.int64), none, places, places[:, 0], places[:, 0], none)

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


def beyond(slab: Slab, reach: int) -> Iterator[tuple[int, Slab]]:
    """Yield (local number of its first plane, slab) for the planes within `reach` of a slab."""
    for first in (-reach, slab.planes):
        local = [k for k in range(first, first + reach) if slab.global_plane(k) is not None]
        while local:
            begin = slab.global_plane(local[0])
            assert begin is not None, "these planes are in the box"
            count = min(len(local), slab.shape[0] - begin)
            yield local[0], replace(slab, begin=begin, end=begin + count)
            local = local[count:]


def needed(bodies: int) -> int:
    """Planes beyond a slab whose walls and missing links decide on the friction in the slab.

    A wall REACH planes away gives friction to the slab, and to cells REACH planes further on; with
    several bodies the walls REACH planes beyond those decide to which body these cells belong.
    """
    return (2 if bodies < 2 else 3) * REACH


def layer_of(
    case: BoundedLattice, slab: Slab, fluid: FluidPlane, taken: Ints, walls: CurvedWalls
) -> tuple[Ints, Ints, WallLayer, Flags]:
    """Return the cells above walls, int64 (n,), ascending, their bodies, and the walls below them.

    Also returned: for each wall, whether any cell has its friction; not known for walls more than
    REACH planes away from the slab.

    taken: cells with missing links, ascending. walls: as taken, those in the slab and as many
    planes beyond it as `needed`; cells there have numbers beyond those of the slab.
    """
    cell, step, wall, k = _usable(case, slab, fluid, taken, walls)
    order = np.lexsort((step, walls.body[wall], cell))
    weight = (walls.area[wall] * k)[order]
    order = order[_of_largest_body(cell[order], walls.body[wall[order]], weight)]
    cell, step, wall, k = cell[order], step[order], wall[order], k[order]
    total = np.bincount(wall, k, walls.body.size)
    own = np.flatnonzero((cell >= 0) & (cell < slab.planes * slab.shape[1] * slab.shape[2]))
    cell, step, wall, k = cell[own], step[own], wall[own], k[own]
    part = walls.area[wall] * k / total[wall]
    own = np.flatnonzero(part)
    cell, step, wall, part = cell[own], step[own], wall[own], part[own]
    group, first = _groups(cell)
    area: Floats = np.bincount(group, part, first.size).astype(float)
    above = part * _above(walls, wall, _offsets(case)[step])
    normals = _one_side(walls.normal[wall], group, part, first)
    normal = [np.bincount(group, part * n, first.size) for n in normals.T]
    length = np.sqrt(sum(n * n for n in normal))
    unit = (
        np.stack(normal, axis=1).reshape(-1, case.dimensions) / np.maximum(length, 1e-300)[:, None]
    )
    layer = WallLayer(unit, np.bincount(group, above, first.size) / area, area)
    return cell[first], walls.body[wall[first]], layer, total > 0


def _groups(*keys: Ints) -> tuple[Ints, Ints]:
    """The number of the group of each entry, and the first entries, of groups with equal keys.

    Entries of a group are one after another.
    """
    new = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    begins = np.append(True, new)[: keys[0].size]
    return np.cumsum(begins) - 1, np.flatnonzero(begins)


def _of_largest_body(cell: Ints, body: Ints, weight: Floats) -> Ints:
    """The entries whose body has the largest sum of weights in their cell, ascending.

    Entries are in the order of cells and bodies; of equal sums that of the first body counts.
    """
    group, first = _groups(cell, body)
    sums, cells = np.bincount(group, weight, first.size), cell[first]
    best = np.lexsort((body[first], -sums, cells))
    largest = np.zeros(first.size, bool)
    largest[best[_groups(cells[best])[1]]] = True
    return np.flatnonzero(largest[group])


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


def _usable(
    case: BoundedLattice, slab: Slab, fluid: FluidPlane, taken: Ints, walls: CurvedWalls
) -> tuple[Ints, Ints, Ints, Floats]:
    """The cells above each wall that can have its friction.

    Cells, numbers of the offsets, numbers of the walls, and k(r).
    """
    each = np.arange(walls.body.size)
    found: list[tuple[Ints, Ints, Floats]] = []
    for offset in _offsets(case):
        along = np.broadcast_to(offset, (each.size, offset.size))
        above = _above(walls, each, along)
        aside = np.maximum(0, (offset * offset).sum() - (above - walls.distance) ** 2)
        level = np.maximum(0, 1 - np.abs(above - MIDDLE) / HALF_WIDTH)
        k = level * np.maximum(0, 1 - aside / ASIDE**2) ** 2
        mine = np.flatnonzero((k > 0) & (above < walls.distance + walls.free + 0.5))
        cells, inside = _cells_in(case, slab, walls.at[mine] + offset)
        mine = mine[inside]
        found.append((cells[inside], mine, k[mine]))
    step = np.repeat(np.arange(len(found)), [cells.size for cells, *_ in found])
    cell, wall = (np.concatenate([each[n] for each in found]) for n in (0, 1))
    k = np.concatenate([each[2] for each in found])
    plane = slab.shape[1] * slab.shape[2]
    blocked = taken[np.minimum(np.searchsorted(taken, cell), taken.size - 1)] == cell
    free = np.flatnonzero(fluid_at(fluid, cell // plane, cell % plane) & ~blocked)
    return cell[free], step[free], wall[free], k[free]


def _cells_in(case: BoundedLattice, slab: Slab, there: Ints) -> tuple[Ints, Flags]:
    """Numbers of cells at local coordinates (n, D), and whether they are within 2 REACH of it."""
    size, periodic = np.array(case.domain.size), np.array(case.domain.periodic)
    box = there.copy()
    box[:, -1] += slab.begin
    within = (((box >= 0) & (box < size)) | periodic).all(axis=1)
    local, far = there[:, -1], 2 * REACH
    within &= (local >= -far) & (local < slab.planes + far)
    row = there[:, 1] % slab.shape[1] if case.dimensions == 3 else 0
    number = (local * slab.shape[1] + row) * slab.shape[2] + there[:, 0] % slab.shape[2]
    return number, within
