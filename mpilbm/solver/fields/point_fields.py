"""Fields at listed nodes of a slab, with the bits of the complete fields."""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from math import prod
from typing import NamedTuple

import numpy as np

from mpilbm.backends.interfaces import Array
from mpilbm.case.case import Case
from mpilbm.codegen.program import POINTS
from mpilbm.physics.lattices import Lattice
from mpilbm.solids import Flags, Ints
from mpilbm.solver.fields.diagnostics import DERIVED, Diagnostics
from mpilbm.solver.fields.plane_sums import HostCopies, Read
from mpilbm.solver.fields.staging import Sizes

SCRATCH_BYTES = 16 << 20  # of a field in whole planes, or one plane if that is more


def point_roles(case: Case, names: Iterable[str]) -> tuple[str, ...]:
    """The roles of the optional kernels that PointFields needs, see Output.kernels."""
    own = list(case.own_fields)
    found = [POINTS]
    found += [f"point_output_{own.index(name)}" for name in names if name in own]
    derived = [name for name in names if name in DERIVED]
    return (*found, *derived, *(["point_gather"] if derived else []))


def point_bytes(case: Case, names: Iterable[str], points: int) -> int:
    """Upper bound of the device memory of PointFields for so many nodes."""
    cells = points * FilledNodes.most(case.lattice)
    values, itemsize = 1 + case.dimensions + 4 * len(tuple(names)), 8
    planes = case.shape[1] * case.shape[2] * 3 * itemsize
    derived = DERIVED & set(names)
    return cells * itemsize * (1 + 2 * values) + len(derived) * max(SCRATCH_BYTES, planes)


class FilledNodes:
    """Listed nodes: the stored cells that they need, and their values.

    The values are those of `filled` in outputs/images/__init__.py, which explains them.

    nodes   int (n, 3): plane, row and x; plane 0 is plane `first` of the box
    size    rows and stored cells of a row
    cells   int (m, 3): plane, row and index in the row of the stored cells whose values are needed
    """

    SIDES = 4  # the largest number of cells that a node needs
    _STEPS = ((0, -1), (0, 1), (-1, 0), (1, 0))  # along y and x: before and after along x, then y

    def __init__(
        self,
        lattice: Lattice,
        nodes: np.ndarray,
        first: int,
        size: tuple[int, int],
        wraps: tuple[bool, bool],
    ):
        rows, nx = size
        plane, row, x = nodes.T
        self.stored = lattice.x(first + plane, row, x // 2) == x
        self.count = len(nodes)
        sides, there = [], []
        for dy, dx in self._STEPS:
            y, k = row + dy, x + dx
            inside = ((y >= 0) & (y < rows)) | wraps[1]
            there.append(inside & (((k >= 0) & (k < 2 * nx)) | wraps[0]))
            sides.append(np.stack([plane, y % rows, (k % (2 * nx)) // 2], axis=1))
        self._there = np.array(there).reshape(self.SIDES, -1)[:, ~self.stored]
        own = np.stack([plane, row, x // 2], axis=1)[self.stored]
        around = np.stack(sides)[:, ~self.stored].reshape(-1, 3)
        self.cells = np.concatenate([own, around])

    @classmethod
    def most(cls, lattice: Lattice) -> int:
        """The largest number of stored cells that a node of the box needs."""
        return cls.SIDES if lattice.staggered else 1

    def values(
        self, cells: np.ndarray, solid: np.ndarray, rest: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Values (n[, k]) of the nodes, and which are solid, from those of `cells`, (m[, k])."""
        own, components = int(self.stored.sum()), cells.shape[1:]
        kind = np.result_type(cells, np.float32)
        found = np.full((self.count, *components), rest, kind)
        mask = np.ones(self.count, bool)
        found[self.stored], mask[self.stored] = cells[:own], solid[:own]
        shape = (self.SIDES, self.count - own)
        around = cells[own:].astype(kind).reshape(*shape, -1)
        fluid = (~solid[own:].reshape(shape) & self._there)[..., None]
        count = fluid[0].astype(kind) + fluid[1] + (fluid[2].astype(kind) + fluid[3])
        total = around[0] * fluid[0] + around[1] * fluid[1]
        total = total + (around[2] * fluid[2] + around[3] * fluid[3])
        inside = self._there.sum(axis=0)[:, None].astype(kind)
        mean = total / np.maximum(count, 1)
        known = (count > 0) & (2 * count >= inside)
        for k in (2, 0):  # the mean along x has precedence
            both = fluid[k] & fluid[k + 1]
            mean = np.where(both, (around[k] + around[k + 1]) / 2, mean)
            known = known | both
        mean = np.where(known, mean, np.asarray(rest, kind))
        found[~self.stored] = mean.reshape(-1, *components)
        mask[~self.stored] = ~known[:, 0]
        return found, mask


class _Run(NamedTuple):
    """Neighbouring planes, and the listed cells in them: [begin, end) of both."""

    planes: tuple[int, int]
    cells: tuple[int, int]


class PointFields:
    """rho, u, derived fields and those of the coupling at nodes of this slab.

    names   fields, see Diagnostics
    nodes   int (n, 3): plane, row and x of nodes of the box; planes count from the slab's first

    In solid nodes rho = 1 and the other fields are 0. A node that a staggered lattice does not
    store has the mean of its neighbours. The device computes only the cells that are needed; the
    vorticity and the Q criterion in the planes that contain them. All ranks create it, also those
    without nodes, and call `prepare` at the same steps.
    """

    def __init__(self, diagnostics: Diagnostics, names: Iterable[str], nodes: Ints):
        self.diagnostics, self.context = diagnostics, diagnostics.context
        self.device, self.dtype = diagnostics.device, diagnostics.dtype
        self.wanted = tuple(names)
        self.names = diagnostics.made_for(self.wanted)
        nodes = np.asarray(nodes, np.int64).reshape(-1, 3)
        slab, plane = self.context.slab, (diagnostics.rows, diagnostics.nx)
        self._fill: FilledNodes | None = None
        if diagnostics.lattice.staggered:
            x, y, *_ = self.context.case.domain.periodic
            self._fill = FilledNodes(diagnostics.lattice, nodes, slab.begin, plane, (x, y))
        cells = self._fill.cells if self._fill else nodes
        size = slab.planes, *plane
        flat = np.ravel_multi_index(tuple(cells.T), size).astype(np.int64)
        once, self._back = np.unique(flat, return_inverse=True)
        self._solid = self.context.geometry.solid[np.unravel_index(once, size)] != 0
        self._fluid: Ints = once[~self._solid]
        self._plane = prod(plane)  # cells of a plane

    @property
    def solid(self) -> Flags:
        """Which nodes are solid, (n,)."""
        mask = self._solid[self._back]
        return self._fill.values(mask.astype(float), mask, 0)[1] if self._fill else mask

    @cached_property
    def _cells(self) -> Array:
        """The packed indices of the fluid cells on the device."""
        packed = self.context.grid.packed(self._fluid, self.context.geometry)
        return self.device.upload(packed.words)

    def prepare(self) -> None:
        """Compute what `enqueue` needs; collective."""
        self.diagnostics.prepare(self.wanted)

    def _width(self, name: str) -> int:
        return prod(self.diagnostics.components(name))

    def sizes(self) -> Sizes:
        """The arrays that `enqueue` fills, by name."""
        return {n: (self._fluid.size * self._width(n), self.dtype) for n in self.names}

    def enqueue(self, arrays: dict[str, Array]) -> None:
        """Enqueue filling these arrays with the fields of the fluid cells; after `prepare`."""
        if not self._fluid.size:
            return
        made = {name: arrays[name] for name in self.names}
        if "rho" in made:
            self._at_cells(POINTS, {"rho_out": made["rho"], "u_out": made["u"]})
        for name in sorted(made.keys() & set(self.diagnostics.outputs)):
            number = self.diagnostics.outputs.index(name)
            self._at_cells(f"point_output_{number}", {"derived_out": made[name]})
        for name in sorted(made.keys() & DERIVED):
            self._gather(name, made[name])

    def _at_cells(self, role: str, made: dict[str, Array]) -> None:
        launch = self.diagnostics.state.launch(role, 0, cells=self._cells, **made)
        launch(self.context.bulk, 0, self._fluid.size)

    def _gather(self, name: str, made: Array) -> None:
        """Compute a field in the planes that contain listed cells, and copy its values there."""
        width, scratch = self._width(name), self._scratch[name]
        for run, places in zip(self._runs, self._places[name], strict=True):
            begin, end = run.planes
            values = (end - begin) * self.diagnostics.values(name)
            self.diagnostics.enqueue({name: scratch[:values]}, begin, end)
            first, after = (width * k for k in run.cells)
            given = {"plane_values": scratch, "place": places, "derived_out": made[first:after]}
            self.context.bind("point_gather", **given)(self.context.bulk, 0, after - first)

    @cached_property
    def _runs(self) -> list[_Run]:
        """Runs of planes that contain listed cells, each at most as long as the scratch memory."""
        plane = self._fluid // self._plane
        once, first = np.unique(plane, return_index=True)
        ends = np.append(first[1:], plane.size)
        most = max(1, SCRATCH_BYTES // (3 * self._plane * self.dtype.itemsize))
        found = []
        for part in np.split(np.arange(once.size), np.flatnonzero(np.diff(once) > 1) + 1):
            for begin in range(0, part.size, most):
                a, b = part[begin : begin + most][[0, -1]]
                planes = int(once[a]), int(once[b]) + 1
                found.append(_Run(planes, (int(first[a]), int(ends[b]))))
        return found

    @cached_property
    def _scratch(self) -> dict[str, Array]:
        """Whole planes of the derived fields."""
        planes = max((run.planes[1] - run.planes[0] for run in self._runs), default=0)
        names = [name for name in self.names if name in DERIVED]
        return {
            name: self.device.allocate(planes * self.diagnostics.values(name), self.dtype)
            for name in names
        }

    @cached_property
    def _places(self) -> dict[str, list[Array]]:
        """For each derived field and run, the places of the values in the scratch memory."""
        found: dict[str, list[Array]] = {name: [] for name in self._scratch}
        for name, places in found.items():
            within = np.arange(self._width(name))
            for run in self._runs:
                cells = self._fluid[slice(*run.cells)] - run.planes[0] * self._plane
                at = cells[:, None] * within.size + within
                places.append(self.device.upload(at.reshape(-1)))
        return found

    def shaped(self, flat: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Host copies of the arrays of `enqueue` as fields (n, …) at the nodes."""
        found = {}
        for name in self.wanted:
            components = self.diagnostics.components(name)
            rest = float(name == "rho")
            cells = np.full((self._solid.size, *components), rest, self.dtype)
            cells[~self._solid] = flat[name].reshape(-1, *components)
            values = cells[self._back]
            if self._fill:
                values, _ = self._fill.values(values, self._solid[self._back], rest)
            found[name] = values
        return found

    def start(self) -> Callable[[], dict[str, np.ndarray]]:
        """Enqueue the fields of this step behind the steps, after `prepare`; the result, {name: (n,
        …)}, waits.
        """
        if not self._fluid.size:
            return partial(self.shaped, {n: np.empty(0, self.dtype) for n in self.names})
        array, copies = self._together
        self.enqueue(dict(self._parts(array)))
        return partial(self._complete, copies.start(array))

    def _complete(self, copy: Read) -> dict[str, np.ndarray]:
        return self.shaped(dict(self._parts(copy())))

    def _parts(self, array: Array) -> Iterator[tuple[str, Array]]:
        """The part of each field in an array of all."""
        begin = 0
        for name, (count, _) in self.sizes().items():
            yield name, array[begin : begin + count]
            begin += count

    @cached_property
    def _together(self) -> tuple[Array, HostCopies]:
        """An array of all fields, and its copies."""
        count = sum(count for count, _ in self.sizes().values())
        copies = HostCopies(self.device, (count,), self.dtype)
        return self.device.allocate(count, self.dtype), copies


class PointSource:
    """Fields at many nodes as a Source of a Staging, whose ranges are those of the nodes.

    `PointFields.prepare`, which is collective, comes before each `Staging.start`.
    """

    def __init__(self, diagnostics: Diagnostics, names: Iterable[str], nodes: Ints):
        self.diagnostics, self.names, self.nodes = diagnostics, tuple(names), nodes
        self._parts: dict[tuple[int, int], PointFields] = {}

    def _part(self, begin: int, end: int) -> PointFields:
        if (begin, end) not in self._parts:
            part = PointFields(self.diagnostics, self.names, self.nodes[begin:end])
            self._parts[begin, end] = part
        return self._parts[begin, end]

    def prepare(self) -> None:
        """Compute what `enqueue` needs; collective."""
        self.diagnostics.prepare(self.names)

    def sizes(self, nodes: int) -> Sizes:
        """The arrays that so many nodes need at most, by name."""
        cells = nodes * FilledNodes.most(self.diagnostics.lattice)
        kind, components = self.diagnostics.dtype, self.diagnostics.components
        made = self.diagnostics.made_for(self.names)
        return {name: (cells * prod(components(name)), kind) for name in made}

    def enqueue(self, arrays: dict[str, Array], begin: int, end: int) -> None:
        """Enqueue filling these arrays with the fields of nodes begin..end."""
        part = self._part(begin, end)
        part.enqueue({name: arrays[name][:count] for name, (count, _) in part.sizes().items()})

    def shaped(self, flat: dict[str, np.ndarray], begin: int, end: int) -> dict[str, np.ndarray]:
        """Host copies of these arrays as fields {name: (end - begin, …)}."""
        part = self._part(begin, end)
        return part.shaped({name: flat[name][:count] for name, (count, _) in part.sizes().items()})
