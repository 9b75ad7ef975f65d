"""Half-way walls and mirrors on faces of the box, for bulk kernels that need no lists for them.

With layouts that keep populations beyond the ends of rows, the step does so for x- and x+ too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.layouts.cells import Planes
from mpilbm.model.case import BoundedLattice
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.boundaries import Condition
from mpilbm.solids import Ints
from mpilbm.solids.entry_list import EntryList
from mpilbm.solids.link_set import LinkSet
from mpilbm.solids.owners import owners_of

FACES = 6  # x-, x+, row-, row+, plane-, plane+
FAR = 2**62  # a plane that no slab has: there is no wall
DTYPE = np.dtype(
    [
        ("faces", "i4"),
        ("later", "i4", FACES),
        ("moving", "i4"),
        ("planes", "i8", 2),
        ("u", "f8", (FACES, 3)),
    ],
    align=True,
)
ENDS = {"x-", "x+"}


@dataclass(frozen=True, eq=False)
class BoxWalls:
    """The faces that are half-way walls or mirrors, and the owners of their links.

    table   () of DTYPE, as the kernel reads it, with the fields
            faces   bit k is set if face k is such a wall or a mirror
            later   later[k]: bits of the faces that own the links which also cross face k
            moving  bit k is set if face k moves
            planes  first and last owned plane of the array if they lie at such a face, else -FAR,
                    FAR
            u       u[k]: velocity of face k (x, y, z)
    owners  the places of the owners of these faces
    """

    table: NDArray[Any]
    owners: frozenset[int]

    @classmethod
    def of(cls, case: BoundedLattice, slab: Slab, grid: Planes) -> "BoxWalls":
        """Find the mirrors of a slab, and the walls at rest or with a constant velocity."""
        table = np.zeros((), DTYPE)
        places: set[int] = set()
        rank: dict[int, tuple[int, int]] = {}
        for owner in owners_of(case):
            if owner.body is not None or not applied(owner.boundary):
                continue
            velocity = constant_velocity(owner.boundary)
            places.add(owner.place)
            for face in owner.boundary.where:
                k = _number(face, case.dimensions)
                rank[k] = owner.place, k
                table["u"][k][: case.dimensions] = velocity or 0
                table["moving"] |= bool(velocity) << k
        first, end = grid.interior
        table["planes"] = (
            first if 4 in rank and slab.lower is None else -FAR,
            end - 1 if 5 in rank and slab.upper is None else FAR,
        )
        for k in rank:
            table["faces"] |= 1 << k
            table["later"][k] = sum(1 << other for other in rank if rank[other] > rank[k])
        return cls(table, frozenset(places))


def without(lists: Sequence[EntryList], applied: frozenset[int]) -> tuple[EntryList, ...]:
    """The entry lists without cells whose links all belong to the owners `applied`.

    applied: the places of the owners whose walls a bulk kernel applies. Cells beside mirrors remain
    if another entry reads what arrives there: mirror images are staged.
    """
    touched, mirrored = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    inward = [np.empty(0, np.int64)]
    for each in lists:
        free = np.array([owner.place not in applied for owner in each.owners], bool)[each.member]
        slips = np.array([owner.boundary.mirrors for owner in each.owners], bool)[each.member]
        touched.append(each.cells[free])
        mirrored.append(each.cells[slips])
        inward += [there[free] for there in each.looked_at[1:]]
    touched.append(np.intersect1d(np.concatenate(inward), np.concatenate(mirrored)))
    cells = np.unique(np.concatenate(touched))
    return tuple(each.only(np.flatnonzero(np.isin(each.cells, cells))) for each in lists)


def constant_velocity(boundary: Condition) -> tuple[float, ...] | None:
    """The constant velocity of a half-way wall, () at rest; None for all other boundaries."""
    if boundary.reflects:
        return ()
    u = boundary.wall_velocity
    if not boundary.capabilities.returns or not isinstance(u, tuple):
        return None
    numbers = tuple(value for value in u if isinstance(value, int | float))
    return numbers if len(numbers) == len(u) else None


def applied(boundary: Condition) -> bool:
    """Whether the moment sweep applies the boundary of a face without boundary lists."""
    return boundary.mirrors or constant_velocity(boundary) is not None


def mirrored_faces(case: BoundedLattice) -> list[int]:
    """The numbers of the faces at which the fluid is mirrored, see FACES; ascending."""
    D, mirrors = case.dimensions, (each for each in case.boundaries if each.mirrors)
    return sorted(_number(face, D) for each in mirrors for face in each.where)


def _number(face: str, dimensions: int) -> int:
    """The number of a face, see FACES; in 2D y is the axis of the planes."""
    axis = {"x": 0, "y": 1 if dimensions == 3 else 2, "z": 2}[face[0]]
    return 2 * axis + (face[1] == "+")


def rows_end_in_walls(case: BoundedLattice) -> bool:
    """Whether the step reads populations from beyond x- and x+ in the cell, see Layout.returning.

    For a wall at rest the step then reads the outgoing population, and no boundary list is needed.
    Any other boundary writes the incoming population to that place. True if at least one end is a
    wall at rest: a boundary list would load a separate cache sector for each of these values,
    which the step loads in any case.
    """
    if case.domain.periodic[0] or not case.layout.returning(case.lattice):
        return False
    return any(boundary.reflects and ENDS & {*boundary.where} for boundary in case.boundaries)


def beyond(case: BoundedLattice, slab: Slab, cells: Ints) -> LinkSet:
    """The links of cells that come from beyond the ends of rows."""
    x, steps = cells % slab.shape[2], [case.lattice.offset(i)[2] for i in range(case.lattice.Q)]
    ends = {1: x == 0, -1: x == slab.shape[2] - 1}
    return LinkSet.collect(cells.size, {i: ends[step] for i, step in enumerate(steps) if step})
