"""The values of fields in a part of a slab, on their way to a file."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mpilbm.outputs import Context
from mpilbm.outputs.core.fields import filled
from mpilbm.outputs.images.part import Group, Part, plane_sums
from mpilbm.solver.fields.point_fields import PointSource
from mpilbm.solver.fields.staging import Copies

if TYPE_CHECKING:
    from mpilbm.case.case import Case

SOLID = "solid"
SPARSE = 8  # a part with at most 1/8 of the cells of its planes is computed cell by cell

Fields = dict[str, np.ndarray]


def is_sparse(case: "Case", part: Part) -> bool:
    """Whether the part has so few cells of its planes that these are computed one by one."""
    stored = case.shape[1] * case.shape[2]
    cells = part.rows.count * part.x.count * part.rows.stride * part.x.stride
    return cells * SPARSE <= stored


def at_nodes(context: Context, name: str, fields: Fields, begin: int, end: int) -> np.ndarray:
    """A field of local planes at all nodes of the box, (n, rows, nx) and its components.

    `fields` contains its values in the stored cells, unless it is `solid`, which is bool.
    """
    solver, lattice = context.solver, context.case.lattice
    if name == SOLID or lattice.staggered:
        solid = solver.solid(begin, end)
    data = solid if name == SOLID else fields[name]
    if lattice.staggered:
        x, y, *_ = context.case.domain.periodic
        first, rest = context.slab.begin + begin, float(name == "rho")
        data, solid = filled(lattice, data, solid, first, (x, y), rest)
    return solid if name == SOLID else data


class WholePlanes:
    """Fields of whole planes, of which the part is cut on the host."""

    at_once: ClassVar[bool] = False  # whether a field cannot be computed without the others

    def __init__(self, context: Context, part: Part, names: Sequence[str]):
        self.context, self.part, self.names = context, part, tuple(names)
        self.cut = (slice(None), part.rows.cells, part.x.cells)

    def prepare(self) -> None:
        """Compute what `start` needs; collective."""
        self.context.solver.prepare(self.names)

    def blocks(self, begin: int, end: int) -> list[tuple[int, int]]:
        """Ranges of local planes for `start`."""
        copies = self._copies()
        return [(begin + a, begin + b) for a, b in copies.blocks(end - begin)]

    def _copies(self) -> Copies:
        return self.context.copies.fields(self.names)

    def start(self, begin: int, end: int) -> AbstractContextManager[Fields]:
        """Enqueue the fields of local planes; the result gives the arrays for `values`."""
        return self._copies().start(begin, end)

    def values(self, arrays: Fields, begin: int, end: int) -> Fields:
        """The fields of the part in these planes, (n, rows, nx) and their components."""
        return {name: self.field(name, arrays, begin, end) for name in self.names}

    def field(self, name: str, arrays: Fields, begin: int, end: int) -> np.ndarray:
        """One of these fields."""
        return at_nodes(self.context, name, arrays, begin, end)[self.cut]

    def groups(self, arrays: Fields, begin: int, end: int) -> list[Group]:
        """The sums over blocks of each of these planes."""
        values, solid = self.values(arrays, begin, end), self.solid(begin, end)
        first, stride = self.part.passed(self.context.slab, begin), self.part.stride[1:]
        found = []
        for k in range(end - begin):
            plane = {name: values[name][k] for name in self.names}
            found.append(Group(first + k, 1, plane_sums(plane, solid[k], stride)))
        return found

    def solid(self, begin: int, end: int) -> np.ndarray:
        """True in solid cells of the part, (n, rows, nx)."""
        return at_nodes(self.context, SOLID, {}, begin, end)[self.cut]


class SingleCells(WholePlanes):
    """Fields of the cells of the part only, computed at a list of cells."""

    at_once = True

    def __init__(self, context: Context, part: Part, names: Sequence[str]):
        super().__init__(context, part, names)
        self.begin, self.end = part.own_planes(context.slab)
        rows, x = (np.arange(each.begin, each.end) for each in (part.rows, part.x))
        self.shape = rows.size, x.size
        planes = np.arange(self.begin, self.end)
        nodes = np.stack(np.meshgrid(planes, rows, x, indexing="ij"), axis=-1).reshape(-1, 3)
        self.source = PointSource(context.solver.diagnostics, self.names, nodes)
        solid = [super(SingleCells, self).solid(k, k + 1) for k in planes.tolist()]
        self._solid = np.concatenate([np.empty((0, *self.shape), bool), *solid])

    def prepare(self) -> None:
        """Compute what `start` needs; collective."""
        self.source.prepare()

    @property
    def _cells(self) -> int:
        return self.shape[0] * self.shape[1]

    def blocks(self, begin: int, end: int) -> list[tuple[int, int]]:
        """Ranges of local planes for `start`."""
        step = max(1, self.context.copies.staging.planes(self.source) // self._cells)
        return [(k, min(k + step, end)) for k in range(begin, end, step)]

    def start(self, begin: int, end: int) -> AbstractContextManager[Fields]:
        """Enqueue the fields of the cells in local planes."""
        first, after = ((plane - self.begin) * self._cells for plane in (begin, end))
        return Copies(self.context.copies.staging, self.source).start(first, after)

    def field(self, name: str, arrays: Fields, begin: int, end: int) -> np.ndarray:
        """One of these fields."""
        values = arrays[name]
        return values.reshape(end - begin, *self.shape, *values.shape[1:])

    def solid(self, begin: int, end: int) -> np.ndarray:
        """True in solid cells of the part, (n, rows, nx)."""
        return self._solid[begin - self.begin : end - self.begin]
