"""The values of fields in a part of a slab, on their way to a file."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import numpy as np

from mpilbm.outputs import Context
from mpilbm.outputs.images.means import Group, plane_sums
from mpilbm.outputs.images.part import Part
from mpilbm.outputs.images.staggered_fill import filled
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
        """The sums over blocks of these planes."""
        return _groups(self, arrays, begin, end)

    def solid(self, begin: int, end: int) -> np.ndarray:
        """True in solid cells of the part, (n, rows, nx)."""
        return at_nodes(self.context, SOLID, {}, begin, end)[self.cut]


class SingleCells:
    """Fields of the cells of the part only."""

    def __init__(self, context: Context, part: Part, names: Sequence[str]):
        self.context, self.part, self.names = context, part, tuple(names)
        self.begin, self.end = part.own_planes(context.slab)
        rows, x = (np.arange(each.begin, each.end) for each in (part.rows, part.x))
        self.shape = rows.size, x.size
        planes = np.arange(self.begin, self.end)
        nodes = np.stack(np.meshgrid(planes, rows, x, indexing="ij"), axis=-1).reshape(-1, 3)
        self.source = PointSource(context.solver.diagnostics, self.names, nodes)
        whole = WholePlanes(context, part, names)
        self._solid = np.concatenate(
            [np.empty((0, *self.shape), bool)]
            + [whole.solid(k, k + 1) for k in range(self.begin, self.end)]
        )

    def prepare(self) -> None:
        """As in WholePlanes."""
        self.source.prepare()

    def blocks(self, begin: int, end: int) -> list[tuple[int, int]]:
        """As in WholePlanes."""
        step = max(1, self.context.copies.staging.planes(self.source) // self._cells)
        return [(k, min(k + step, end)) for k in range(begin, end, step)]

    @property
    def _cells(self) -> int:
        return self.shape[0] * self.shape[1]

    def _nodes(self, begin: int, end: int) -> tuple[int, int]:
        return (begin - self.begin) * self._cells, (end - self.begin) * self._cells

    def start(self, begin: int, end: int) -> AbstractContextManager[Fields]:
        """As in WholePlanes."""
        return Copies(self.context.copies.staging, self.source).start(*self._nodes(begin, end))

    def values(self, arrays: Fields, begin: int, end: int) -> Fields:
        """As in WholePlanes."""
        return {
            name: arrays[name].reshape(end - begin, *self.shape, *arrays[name].shape[1:])
            for name in self.names
        }

    def groups(self, arrays: Fields, begin: int, end: int) -> list[Group]:
        """As in WholePlanes."""
        return _groups(self, arrays, begin, end)

    def solid(self, begin: int, end: int) -> np.ndarray:
        """As in WholePlanes."""
        return self._solid[begin - self.begin : end - self.begin]


def _groups(of: WholePlanes | SingleCells, arrays: Fields, begin: int, end: int) -> list[Group]:
    """The sums over blocks of each plane."""
    values, solid = of.values(arrays, begin, end), of.solid(begin, end)
    first = of.context.slab.begin + begin - of.part.planes.begin
    return [
        Group(first + k, 1, plane_sums({name: values[name][k] for name in of.names}, solid[k],
                                       of.part.stride[1:]))
        for k in range(end - begin)
    ]  # fmt: skip
