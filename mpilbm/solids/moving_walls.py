"""Motion of half-way walls, for the other boundaries in the cells next to them."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.formulas.given_functions import PointValue
from mpilbm.core.formulas.trees import numeric
from mpilbm.core.formulas.values import CellValue, Plane
from mpilbm.model.case import BoundedLattice
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.boundaries import Condition
from mpilbm.physics.collisions import Collision
from mpilbm.physics.lattices import AXES, Lattice
from mpilbm.solids import Floats, Ints
from mpilbm.solids.owners import Ownership
from mpilbm.solids.solid_cells import centres, values_from_file

Rows = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class MovingLinks:
    """The links that cross moving half-way walls, and the motion of the walls there.

    `motions` computes a table with one row for all cells whose walls move in the same way; row 0
    belongs to all cells without moving walls. The table has k links.

    cells  int64 (n,), the cells with such links, ascending
    row    int32 (n,), the row of each cell
    first  int64 (rows,), the first cell of each row
    link   int (k, 2), the row and the direction i of each link
    wall   int (k,), the index in `walls`
    place  float64 (k, D), the point on the wall, half a link outside the cell
    walls  the boundaries of all owners
    given  for each wall {component: values (k,)}, the components that are given as a Plane
    """

    cells: Ints
    row: Rows
    first: Ints
    link: Ints
    wall: Ints
    place: Floats
    walls: tuple[Condition, ...]
    given: tuple[dict[str, Floats], ...]

    @classmethod
    def find(
        cls, case: BoundedLattice, slab: Slab, ownership: Ownership, wanted: Ints
    ) -> "MovingLinks":
        """Find the links of the cells `wanted`."""
        lattice, walls = case.lattice, tuple(owner.boundary for owner in ownership.owners)
        mine = np.flatnonzero(
            ownership.owned_by(lambda owner: owner.boundary.wall_velocity is not None)
        )
        mine = mine[np.isin(ownership.cells[mine], wanted)]
        found, at = np.unique(ownership.cells[mine], return_inverse=True)
        crossed = np.zeros((1 + found.size, lattice.Q + 1), np.int64)  # 1 + the place of the wall
        entry, i = ownership.supplied[mine].unpack()
        crossed[1 + at[entry], i] = 1 + ownership.owner[mine[entry]]
        varies = np.array([False, *map(_varies, walls)])[crossed[1:, :-1]].any(axis=1)
        crossed[1:, -1] = np.where(varies, 1 + found, 0)  # one row for each such cell
        rows, first, row = np.unique(crossed, axis=0, return_index=True, return_inverse=True)
        first = np.append(0, found)[first]
        link = np.argwhere(rows[:, :-1])
        wall, cell = rows[tuple(link.T)] - 1, first[link[:, 0]]
        c = np.array(lattice.c, np.float64)[link[:, 1]]
        place = centres(case, slab, cell) - c / 2
        given = tuple(
            {
                name: values_from_file(value, each.where[0], case, slab, cell)
                for name, value in each.values().items()
                if isinstance(value, Plane)
            }
            for each in walls
        )
        row = row.reshape(-1)[1:]
        return cls(found, row.astype(np.int32), first, link, wall, place, walls, given)

    def rows_of(self, cells: Ints) -> Rows:
        """The rows of these cells, int32 (n,)."""
        if not self.cells.size:
            return np.zeros(cells.size, np.int32)
        place = np.minimum(np.searchsorted(self.cells, cells), self.cells.size - 1)
        return np.where(self.cells[place] == cells, self.row[place], np.int32(0))

    @cached_property
    def _values(self) -> dict[int, tuple[CellValue, ...]]:
        """The velocity components of each wall that a link crosses, {wall: components}."""
        return {int(wall): _components(self.walls[wall]) for wall in np.unique(self.wall)}

    @property
    def velocities(self) -> list[CellValue]:
        """The velocity components of all walls that a link crosses."""
        return [value for values in self._values.values() for value in values]

    @property
    def timed(self) -> bool:
        """Whether a wall's velocity changes with time."""
        return any(value.timed for value in self.velocities)

    def velocity(self, size: tuple[int, ...], t: float) -> Floats:
        """The velocity of the wall at each link at time t, (k, D), in a box of `size` cells."""
        u = np.zeros_like(self.place)
        for wall, values in self._values.items():
            mine = self.wall == wall
            at = dict(zip(AXES, self.place[mine].T, strict=False))
            for k, value in enumerate(values):
                u[mine, k] = numeric(value.tree, value.evaluate(size, t) | at)
                if value.name in self.given[wall]:
                    u[mine, k] = self.given[wall][value.name][mine]
                number = value.numbers.get(value.name)
                if isinstance(number, PointValue):
                    u[mine, k] = number.at([*self.place[mine].T], t)
        return u

    def motions(
        self, collision: Collision, lattice: Lattice, size: tuple[int, ...], t: float
    ) -> Floats:
        """The table feq_i(rho_0, u_wall) - feq_opp(i)(rho_0, u_wall) at time t, (rows, Q).

        rho_0 = 1; 0 for directions that cross no moving wall.
        """
        found, (row, i) = np.zeros((self.first.size, lattice.Q)), self.link.T
        known, which = np.unique(self.velocity(size, t), axis=0, return_inverse=True)
        u = [column.view(_Column) for column in known.T.copy()]
        feq = collision.feq(lattice, 0, 1, u)
        motion = np.stack([np.broadcast_to(f, len(known)) for f in feq])
        motion -= motion[list(lattice.opp)]
        found[row, i] = motion[i, which.reshape(-1)]
        return found


@dataclass(frozen=True, eq=False)
class WallMotion:
    """The motion of walls at the cells of an entry list.

    table: shared by all entry lists. rows: int32 (n,) for the cells of the entries and for the
    cells of each step inwards, the row of each cell in the table.
    """

    table: MovingLinks
    rows: tuple[Rows, ...]

    @classmethod
    def of(cls, table: MovingLinks, looked_at: tuple[Ints, ...]) -> "WallMotion":
        """The motion at the cells `looked_at`, int64 (n,) each."""
        return cls(table, tuple(table.rows_of(cells) for cells in looked_at))

    def only(self, mine: Any) -> "WallMotion":
        """The motion at the entries with the numbers `mine`."""
        return WallMotion(self.table, tuple(rows[mine] for rows in self.rows))


class _Column(np.ndarray):
    """An array that the equations of an equilibrium treat as one number.

    `!=` is always True, so no term is omitted as zero, and fractions are converted to floats.
    """

    def __ne__(self, other: Any) -> Any:
        return True

    def __pow__(self, n: Any, modulo: Any = None) -> Any:
        return prod([self] * (n - 1), start=self)


def _with_fractions(operate: Any) -> Any:
    def of_floats(self: Any, other: Any) -> Any:
        return operate(self, float(other) if type(other) is Fraction else other)

    return of_floats


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv"):
    setattr(_Column, f"__{_name}__", _with_fractions(getattr(np.ndarray, f"__{_name}__")))


def _components(boundary: Condition) -> tuple[CellValue, ...]:
    return tuple(CellValue(name, value, 3) for name, value in boundary.values().items())


def _varies(boundary: Condition) -> bool:
    values = boundary.values() if boundary.wall_velocity is not None else {}
    planes = any(isinstance(value, Plane | PointValue) for value in values.values())
    return planes or any(CellValue(n, value, 3).coordinates for n, value in values.items())
