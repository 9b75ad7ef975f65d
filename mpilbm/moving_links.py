"""Links of half-way walls that move, for the other boundaries in the cells beside them."""

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class MovingLinks:
    """Which links of which cells cross a wall whose `half_way_velocity` is not that of rest.

    cells: int64 (n,), ascending; row: int32 (n,), of `u`; u: float64 (m, Q, D), the velocity of the
    wall along each link of a cell, zeros where there is none, all zeros in row 0.
    """

    cells: np.ndarray
    row: np.ndarray
    u: np.ndarray

    @classmethod
    def find(cls, lattice, owners, wanted, cells, owner, missing) -> "MovingLinks":
        """Those of the cells that are `wanted`; owners, cells, owner, missing: see entry_lists."""
        u = np.zeros((1 + len(owners), lattice.D))
        for place, boundary in enumerate(owners):
            u[1 + place] = boundary.half_way_velocity or 0
        mine = np.flatnonzero(u.any(axis=1)[1 + owner])
        mine = mine[np.isin(cells[mine], wanted)]
        found, at = np.unique(cells[mine], return_inverse=True)
        walls = np.zeros((1 + found.size, lattice.Q), np.int32)  # 1 + the place of the wall
        for i in range(lattice.Q):
            crosses = np.flatnonzero(missing[mine] >> np.uint32(i) & 1)
            walls[1 + at[crosses], i] = 1 + owner[mine[crosses]]
        kinds, row = np.unique(walls, axis=0, return_inverse=True)
        return cls(found, row.reshape(-1)[1:].astype(np.int32), u[kinds])

    def of(self, cells) -> np.ndarray:
        """The rows of any cells, int32 (n,)."""
        if not self.cells.size:
            return np.zeros(cells.size, np.int32)
        place = np.minimum(np.searchsorted(self.cells, cells), self.cells.size - 1)
        return np.where(self.cells[place] == cells, self.row[place], np.int32(0))


def with_moving(lattice, owners, lists, cells, owner, missing) -> tuple:
    """The EntryLists with what moves beside their cells; the others as entry_lists has them."""
    if not any(each.half_way_velocity for each in owners):
        return tuple(lists)
    looked_at = [
        () if each.boundary.half_way_velocity else (each.cells, *(at for at, _ in each.inward))
        for each in lists
    ]
    wanted = np.concatenate([np.empty(0, np.int64), *(at for each in looked_at for at in each)])
    moving = MovingLinks.find(lattice, owners, wanted, cells, owner, missing)
    return tuple(
        replace(each, moved=tuple(moving.of(at) for at in there), wall_u=moving.u)
        for each, there in zip(lists, looked_at, strict=True)
    )


def motions(u, lattice, collision) -> np.ndarray:
    """feq_i(rho_0, u_i) - feq_opp(i)(rho_0, u_i), rho_0 = 1, of velocities (m, Q, D): (m, Q)."""
    each, at = np.unique(u.reshape(-1, lattice.D), axis=0, return_inverse=True)
    feq = np.array([collision.feq(lattice, 0, 1, u_wall) for u_wall in each.tolist()], np.float64)
    odd = feq - feq[:, list(lattice.opp)]
    return odd[at.reshape(u.shape[:2]), np.arange(lattice.Q)]
