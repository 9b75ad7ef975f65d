"""Fields of the box, or of a part of it, as VTKHDF ImageData: their names, and their values."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from difflib import get_close_matches
from typing import ClassVar

import numpy as np

from mpilbm.case.case import Case
from mpilbm.outputs import Context
from mpilbm.outputs.images.part import OPEN, Group, Part, counted_cells, plane_sums
from mpilbm.physics.lattices import Lattice
from mpilbm.physics.motions import moving
from mpilbm.solids.moving_bodies import FIELDS_OF_BODIES
from mpilbm.solids.moving_cells import PlacedBodies
from mpilbm.solver.fields.point_fields import PointSource
from mpilbm.solver.fields.staging import Copies

# Components in files: a vector has three there, also in two dimensions.
COMPONENTS = {"rho": 1, "u": 3, "vorticity": 3, "q_criterion": 1}


def field_problems(names: tuple[str, ...], case: Case) -> list[str]:
    """Names that are not fields of a flow, or none."""
    own = case.own_fields
    fields = (*COMPONENTS, *own)
    choice, lines = f"choose from {', '.join(fields)}", []
    for name in names:
        if name not in fields:
            near = get_close_matches(name, fields, 1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            lines.append(f"fields: '{name}' is not a field; {choice}{hint}")
    return lines if names else [f"fields: found none; {choice}"]


def filled(
    lattice: Lattice,
    values: np.ndarray,
    solid: np.ndarray,
    plane: int,
    wraps: tuple[bool, bool],
    rest: float = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Values (n, rows, nx[, k]) of stored cells -> (n, rows, 2 nx[, k]), and a mask of solid nodes.

    `solid`: bool (n, rows, nx); `plane`: number of the first plane in the box; `wraps`: whether x
    and y are periodic. A node that is not stored gets the mean of its neighbours at x - 1 and
    x + 1, which is exact for linear fields. If one of them is solid or beyond a wall, it gets the
    mean of those at y - 1 and y + 1, else the mean of those of the four that are fluid. If fewer
    than half of them are fluid, the node is solid and has the value `rest`; flat faces of bodies
    thus keep their places. All neighbours are in the same plane, so that the result does not depend
    on how the box is split into slabs.
    """
    planes, rows, nx, *components = values.shape
    kind = np.result_type(values, np.float32)
    full = np.full((planes, rows, 2 * nx, *(components or [1])), rest, kind)
    fluid, known = (np.zeros((*full.shape[:3], 1), bool) for _ in "fk")
    p, row, k = np.ogrid[:planes, :rows, :nx]
    stored = p, row, lattice.x(plane + p, row, k)
    full[stored] = values.reshape(planes, rows, nx, -1)
    fluid[stored], known[stored] = ~solid[..., None], True
    axes = list(zip((2, 1), wraps, strict=True))
    sides = [_beside(full, fluid, *along) for along in axes]
    inside = sum(side.astype(kind) for along in axes for side in _there(fluid | True, *along))
    means = [((before + after) / 2, low & high) for before, after, low, high in sides]
    count = sum(low.astype(kind) + high for _, _, low, high in sides)
    total = sum(before * low + after * high for before, after, low, high in sides)
    means.append((total / np.maximum(count, 1), (count > 0) & (2 * count >= inside)))
    for mean, there in means:
        here = there & ~known
        full = np.where(here, mean, full)
        fluid, known = fluid | here, known | here
    return full.reshape(planes, rows, 2 * nx, *components), ~fluid[..., 0]


def _beside(
    full: np.ndarray, fluid: np.ndarray, axis: int, wraps: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The values before and after each node along an axis, and whether these nodes are fluid."""
    low, high = _there(fluid, axis, wraps)
    return np.roll(full, 1, axis), np.roll(full, -1, axis), low, high


def _there(fluid: np.ndarray, axis: int, wraps: bool) -> tuple[np.ndarray, np.ndarray]:
    """Whether the nodes before and after each node along an axis are fluid."""
    low, high = np.roll(fluid, 1, axis), np.roll(fluid, -1, axis)
    if not wraps:
        np.moveaxis(low, axis, 0)[0] = False
        np.moveaxis(high, axis, 0)[-1] = False
    return low, high


def numbers_of(case: Case) -> tuple[str, ...]:
    """Fields that number something: of a block they have the largest value, not the mean."""
    return FIELDS_OF_BODIES[1:] if moving(case) else ()


SOLID = "solid"
SPARSE = 8  # a part with at most 1/8 of the cells of its planes is computed cell by cell

Fields = dict[str, np.ndarray]


def is_sparse(case: Case, part: Part) -> bool:
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

    def groups(self, arrays: Fields, begin: int, end: int, placed: PlacedBodies) -> list[Group]:
        """The sums over blocks of each of these planes, with the moving bodies as `placed`."""
        values, solid = self.values(arrays, begin, end), self.solid(begin, end)
        first, stride = self.part.passed(self.context.slab, begin), self.part.stride[1:]
        numbers, found = numbers_of(self.context.case), []
        opened = self.open_cells(begin, end, placed)
        for k in range(end - begin):
            plane = {name: values[name][k] for name in self.names}
            sums = plane_sums(plane, solid[k], stride, numbers)
            if opened is not None:
                sums[OPEN] = counted_cells(opened[k : k + 1], stride)
            found.append(Group(first + k, 1, sums))
        return found

    def open_cells(self, begin: int, end: int, placed: PlacedBodies) -> np.ndarray | None:
        """True in fluid cells outside of moving bodies; None if the case has no such bodies."""
        return None if not placed.bodies else ~self.covered(begin, end, placed)

    def covered(self, begin: int, end: int, placed: PlacedBodies) -> np.ndarray:
        """True in solid cells of the part, and in those whose centre is in a moving body."""
        first, rows, x = self.context.slab.begin, self.part.rows, self.part.x
        planes = np.arange(first + begin, first + end)
        cells = np.arange(rows.begin, rows.end), np.arange(x.begin, x.end)
        return placed.added(self.solid(begin, end), planes, *cells)

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
