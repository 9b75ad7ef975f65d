"""Half-way walls on faces of the box, for a bulk kernel that applies them by itself."""

from dataclasses import dataclass

import numpy as np

from mpilbm.physics.boundaries import one_face_each

FACES = 6  # x-, x+, row-, row+, plane-, plane+
FAR = 2**62
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


@dataclass(frozen=True)
class BoxWalls:
    """Which faces are such walls, and which boundaries of the case they are.

    table: () of DTYPE. faces: bit k set for face k; later[k]: the faces to which a link that
    crosses them and face k belongs rather than to k; moving: bit k set if it moves; planes: the
    first and last owned plane of the array, where they lie at a wall, else far off; u[k]: the
    wall's velocity (x, y, z).
    owners: places in `one_face_each` of the case's [[boundary]]s.
    """

    table: np.ndarray
    owners: frozenset[int]

    @classmethod
    def of(cls, case, slab, grid) -> "BoxWalls":
        """The walls of a slab that move with a constant velocity, or none."""
        table, owners, rank = np.zeros((), DTYPE), {}, {}
        for place, boundary in enumerate(one_face_each(case.boundaries)):
            velocity = boundary.half_way_velocity
            if velocity is None:
                continue
            owners[place] = boundary
            for face in boundary.where:
                k = _number(face, case.dimensions)
                rank[k] = place, k
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
        return cls(table, frozenset(owners))

    def others(self, lists) -> tuple:
        """Entry lists without the cells that touch nothing but these walls."""
        held = [self._held(each) for each in lists]
        touched = [each.cells[~mine] for each, mine in zip(lists, held, strict=True)]
        touched = np.unique(np.concatenate([*touched, np.empty(0, np.int64)]))
        return tuple(each.only(np.flatnonzero(np.isin(each.cells, touched))) for each in lists)

    def _held(self, entries) -> np.ndarray:
        """Whether each entry belongs to one of these walls."""
        mine = np.isin(entries.owners, list(self.owners))
        return mine[entries.member]


def _number(face: str, dimensions: int) -> int:
    """The number of a face: in 2D y counts planes."""
    axis = {"x": 0, "y": 1 if dimensions == 3 else 2, "z": 2}[face[0]]
    return 2 * axis + (face[1] == "+")
