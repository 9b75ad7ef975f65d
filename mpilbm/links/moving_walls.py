"""Links of half-way walls that move, for the other boundaries in the cells beside them."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod

import numpy as np

from mpilbm.formulas.parser import numeric
from mpilbm.formulas.values import CellValue, Plane, of_cells
from mpilbm.physics.lattices import AXES


@dataclass(frozen=True)
class MovingLinks:
    """Which links of which cells cross a half-way wall that moves, and how it moves there.

    cells: int64 (n,), ascending; row: int32 (n,), of the table that `motions` makes, whose row 0 is
    of all other cells; one row serves all cells beside walls that move alike. first: int64 (rows,),
    the first cell of each row. Of each link of a row: link: int (k, 2), the row and i; wall: int
    (k,), of `walls`; place: float64 (k, D), half a link out of the cell; given: a dict for each
    wall, of components that come from a Plane their values (k,).
    """

    cells: np.ndarray
    row: np.ndarray
    first: np.ndarray
    link: np.ndarray
    wall: np.ndarray
    place: np.ndarray
    walls: tuple
    given: tuple[dict, ...]

    @classmethod
    def find(cls, case, slab, owners, wanted, cells, owner, missing) -> "MovingLinks":
        """Those of the cells that are `wanted`; owners, cells, owner, missing: see entry_lists."""
        lattice = case.lattice
        mine = np.flatnonzero(np.array([each.moves_half_way for each in owners], bool)[owner])
        mine = mine[np.isin(cells[mine], wanted)]
        found, at = np.unique(cells[mine], return_inverse=True)
        crossed = np.zeros((1 + found.size, lattice.Q + 1), np.int64)  # 1 + the place of the wall
        for i in range(lattice.Q):
            crosses = np.flatnonzero(missing[mine] >> np.uint32(i) & 1)
            crossed[1 + at[crosses], i] = 1 + owner[mine[crosses]]
        varies = np.array([False, *map(_varies, owners)])[crossed[1:, :-1]].any(axis=1)
        crossed[1:, -1] = np.where(varies, 1 + found, 0)  # each such cell has a row of its own
        rows, first, row = np.unique(crossed, axis=0, return_index=True, return_inverse=True)
        first = np.append(0, found)[first]
        link = np.argwhere(rows[:, :-1])
        wall, cell = rows[tuple(link.T)] - 1, first[link[:, 0]]
        plane, line, k = np.unravel_index(cell, (slab.planes, *slab.shape[1:]))
        at = lattice.x(plane + slab.begin, line, k), line, plane + slab.begin
        node = np.stack(at if lattice.D == 3 else at[::2], 1)
        place = node + 0.5 - np.array(lattice.c, np.float64)[link[:, 1]] / 2
        given = tuple(
            {n: of_cells(value, each.where[0], case, slab, cell)
             for n, value in each.values().items() if isinstance(value, Plane)}
            for each in owners
        )  # fmt: skip
        row = row.reshape(-1)[1:].astype(np.int32)
        return cls(found, row, first, link, wall, place, tuple(owners), given)

    def of(self, cells) -> np.ndarray:
        """The rows of any cells, int32 (n,)."""
        if not self.cells.size:
            return np.zeros(cells.size, np.int32)
        place = np.minimum(np.searchsorted(self.cells, cells), self.cells.size - 1)
        return np.where(self.cells[place] == cells, self.row[place], np.int32(0))

    @cached_property
    def _values(self) -> dict[int, tuple[CellValue, ...]]:
        """The components of the velocity of each wall that is crossed."""
        return {int(wall): _components(self.walls[wall]) for wall in np.unique(self.wall)}

    @property
    def timed(self) -> bool:
        """Whether a wall's velocity changes with time."""
        return any(value.timed for values in self._values.values() for value in values)

    def velocity(self, size, t: float) -> np.ndarray:
        """That of the wall at each link, (k, D), in a box of `size` cells."""
        u = np.zeros_like(self.place)
        for wall, values in self._values.items():
            mine = self.wall == wall
            at = dict(zip(AXES, self.place[mine].T, strict=False))
            for k, value in enumerate(values):
                u[mine, k] = numeric(value.tree, value.evaluate(size, t) | at)
                if value.name in self.given[wall]:
                    u[mine, k] = self.given[wall][value.name][mine]
        return u

    def motions(self, collision, lattice, size, t: float) -> np.ndarray:
        """feq_i(rho_0, u_wall) - feq_opp(i)(rho_0, u_wall), rho_0 = 1, (rows, Q)."""
        found, (row, i) = np.zeros((self.first.size, lattice.Q)), self.link.T
        u = [column.view(_Column) for column in self.velocity(size, t).T.copy()]
        feq = collision.feq(lattice, 0, 1, u)
        for k in range(1, lattice.Q):
            mine = np.flatnonzero(i == k)
            found[row[mine], k] = (feq[k] - feq[lattice.opp[k]])[mine]
        return found


class _Column(np.ndarray):
    """Numbers that equations take for one: none is left out as zero, fractions become floats."""

    def __ne__(self, other):
        return True

    def __pow__(self, n):
        return prod([self] * (n - 1), start=self)


def _with_fractions(operate):
    def of_floats(self, other):
        return operate(self, float(other) if type(other) is Fraction else other)

    return of_floats


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv"):
    setattr(_Column, f"__{_name}__", _with_fractions(getattr(np.ndarray, f"__{_name}__")))


def _components(boundary) -> tuple[CellValue, ...]:
    return tuple(CellValue(name, value, 3) for name, value in boundary.values().items())


def _varies(boundary) -> bool:
    """Whether a half-way wall moves differently at each cell."""
    values = boundary.values() if boundary.moves_half_way else {}
    planes = any(isinstance(value, Plane) for value in values.values())
    return planes or any(CellValue(n, value, 3).coordinates for n, value in values.items())


def with_moving(case, slab, owners, lists, cells, owner, missing) -> tuple:
    """The EntryLists with what moves beside their cells; the others as entry_lists has them."""
    if not any(each.moves_half_way for each in owners):
        return tuple(lists)
    looked_at = [
        () if each.boundary.plain else (each.cells, *(at for at, _ in each.inward))
        for each in lists
    ]
    shared = cells[1:][cells[1:] == cells[:-1]]  # of its own links a wall knows the motion
    wanted = np.concatenate([shared, *(at for each in looked_at for at in each[1:])])
    moving = MovingLinks.find(case, slab, owners, wanted, cells, owner, missing)
    return tuple(
        replace(each, moved=tuple(moving.of(at) for at in there), moving=moving if there else None)
        for each, there in zip(lists, looked_at, strict=True)
    )
