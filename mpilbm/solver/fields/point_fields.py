"""Fields at listed nodes of a slab, with the bits of the complete fields."""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpilbm.backends.interfaces import Array, Launch
from mpilbm.codegen.program import POINTS
from mpilbm.solver.fields.diagnostics import DERIVED, Diagnostics
from mpilbm.solver.fields.filled_nodes import FilledNodes
from mpilbm.solver.fields.host_copies import HostCopies, HostCopy
from mpilbm.solver.fields.staging import Sizes, Staging

if TYPE_CHECKING:
    from mpilbm.case.case import Case

Ints = NDArray[np.int64]
SCRATCH_BYTES = 16 << 20  # of a field in whole planes, or one plane if that is more


def point_roles(case: "Case", names: Iterable[str]) -> tuple[str, ...]:
    """The roles of the optional kernels that PointFields needs, see Output.kernels."""
    own = list(case.own_fields)
    found = [POINTS]
    found += [f"point_output_{own.index(name)}" for name in names if name in own]
    derived = [name for name in names if name in DERIVED]
    return (*found, *derived, *(["point_gather"] if derived else []))


def point_bytes(case: "Case", names: Iterable[str], points: int) -> int:
    """Upper bound of the device memory of PointFields for so many nodes."""
    cells = points * (FilledNodes.SIDES if case.lattice.staggered else 1)
    values, itemsize = 1 + case.dimensions + 4 * len(tuple(names)), 8
    planes = case.shape[1] * case.shape[2] * 3 * itemsize
    derived = DERIVED & set(names)
    return cells * itemsize * (1 + 2 * values) + len(derived) * max(SCRATCH_BYTES, planes)


class _Run(NamedTuple):
    """Neighbouring planes, and the listed cells in them: [begin, end) of both."""

    planes: tuple[int, int]
    cells: tuple[int, int]


class PointFields:
    """rho, u, derived fields and those of the coupling at nodes of this slab.

    names   fields, see Diagnostics
    nodes   int (n, 3): plane, row and x of nodes of the box; planes count from the slab's first

    In solid nodes rho = 1 and the other fields are 0. A node that a staggered lattice does not
    store has the mean of its neighbours, see outputs/core/fields.py. The device computes
    only the cells that are needed; the vorticity and the Q criterion in the planes that contain
    them.

    All ranks create it, also those without nodes, and call `prepare` at the same steps.
    """

    def __init__(self, diagnostics: Diagnostics, names: Iterable[str], nodes: Ints):
        self.diagnostics, self.state = diagnostics, diagnostics.state
        self.context, self.device = diagnostics.context, diagnostics.device
        self.wanted = tuple(names)
        self.names, self.count = diagnostics.made_for(self.wanted), len(nodes)
        nodes = np.asarray(nodes, np.int64).reshape(-1, 3)
        self._fill = self._filled(nodes) if diagnostics.lattice.staggered else None
        cells = self._fill.cells if self._fill else nodes
        size = self.context.slab.planes, diagnostics.rows, diagnostics.nx
        flat = np.ravel_multi_index(tuple(cells.T), size).astype(np.int64)
        once, self._back = np.unique(flat, return_inverse=True)
        self._solid = self.context.geometry.solid[np.unravel_index(once, size)] != 0
        self._fluid: Ints = once[~self._solid]
        self._launches: dict[tuple[str, int], Launch] = {}

    def _filled(self, nodes: Ints) -> FilledNodes:
        """The stored cells that the nodes of a staggered lattice need."""
        x, y, *_ = self.context.case.domain.periodic
        first = self.context.slab.begin
        size = self.diagnostics.rows, self.diagnostics.nx
        return FilledNodes(self.diagnostics.lattice, nodes, first, size, (x, y))

    @property
    def solid(self) -> NDArray[np.bool_]:
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

    def sizes(self) -> Sizes:
        """The arrays that `enqueue` fills, by name."""
        values = {name: prod(self.diagnostics.components(name)) for name in self.names}
        return {n: (self._fluid.size * v, self.diagnostics.dtype) for n, v in values.items()}

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
        launch = self.state.launch(role, 0, cells=self._cells, **made)
        launch(self.context.bulk, 0, self._fluid.size)

    def _gather(self, name: str, made: Array) -> None:
        """Compute a field in the planes that contain listed cells, and copy its values there."""
        width, scratch = prod(self.diagnostics.components(name)), self._scratch[name]
        for number, run in enumerate(self._runs):
            begin, end = run.planes
            values = (end - begin) * self.diagnostics.values(name)
            self.diagnostics.enqueue({name: scratch[:values]}, begin, end)
            first, after = (width * k for k in run.cells)
            launch = self.context.bind(
                "point_gather", plane_values=scratch, place=self._places[name][number],
                derived_out=made[first:after],
            )  # fmt: skip
            launch(self.context.bulk, 0, after - first)

    @cached_property
    def _runs(self) -> list[_Run]:
        """Runs of planes that contain listed cells, each at most as long as the scratch memory."""
        plane = self._fluid // (self.diagnostics.rows * self.diagnostics.nx)
        once, first = np.unique(plane, return_index=True)
        cut = np.flatnonzero(np.diff(once) > 1) + 1
        found = []
        for part in np.split(np.arange(once.size), cut):
            for begin in range(0, part.size, self._scratch_planes):
                mine = part[begin : begin + self._scratch_planes]
                after = mine[-1] + 1
                end = first[after] if after < once.size else plane.size
                planes = int(once[mine[0]]), int(once[mine[-1]]) + 1
                found.append(_Run(planes, (int(first[mine[0]]), int(end))))
        return found

    @property
    def _scratch_planes(self) -> int:
        plane = self.diagnostics.rows * self.diagnostics.nx * 3 * self.diagnostics.dtype.itemsize
        return max(1, SCRATCH_BYTES // plane)

    @cached_property
    def _scratch(self) -> dict[str, Array]:
        """Whole planes of the derived fields."""
        planes = max((run.planes[1] - run.planes[0] for run in self._runs), default=0)
        names = [name for name in self.names if name in DERIVED]
        return {
            name: self.device.allocate(planes * self.diagnostics.values(name), self.dtype)
            for name in names
        }

    @property
    def dtype(self) -> np.dtype:
        """The type of the values."""
        return self.diagnostics.dtype

    @cached_property
    def _places(self) -> dict[str, list[Array]]:
        """For each derived field and run, the places of the values in the scratch memory."""
        size, found = self.diagnostics.rows * self.diagnostics.nx, {}
        for name in self._scratch:
            width = prod(self.diagnostics.components(name))
            found[name] = [
                self.device.upload(
                    ((self._fluid[slice(*run.cells)] - run.planes[0] * size)[:, None] * width
                     + np.arange(width)).reshape(-1)
                ) for run in self._runs
            ]  # fmt: skip
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
        """Enqueue the fields of this step behind the steps; the result completes them.

        `prepare` comes first. The result waits for the device and returns {name: (n, …)}.
        """
        if not self._fluid.size:
            return partial(self.shaped, {n: np.empty(0, self.dtype) for n in self.names})
        self.enqueue(dict(self._parts(self._array)))
        return partial(self._complete, self._copies.start(self._array))

    def _complete(self, copy: HostCopy) -> dict[str, np.ndarray]:
        return self.shaped(dict(self._parts(copy.read())))

    def _parts(self, array: Array) -> Iterator[tuple[str, Array]]:
        """The part of each field in an array of all."""
        begin = 0
        for name, (count, _) in self.sizes().items():
            yield name, array[begin : begin + count]
            begin += count

    @property
    def _values(self) -> int:
        return sum(count for count, _ in self.sizes().values())

    @cached_property
    def _array(self) -> Array:
        return self.device.allocate(self._values, self.dtype)

    @cached_property
    def _copies(self) -> HostCopies:
        return HostCopies(self.device, self._values, self.dtype)


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
        """See Source: the space for so many nodes."""
        cells = nodes * (FilledNodes.SIDES if self.diagnostics.lattice.staggered else 1)
        kind, components = self.diagnostics.dtype, self.diagnostics.components
        made = self.diagnostics.made_for(self.names)
        return {name: (cells * prod(components(name)), kind) for name in made}

    def enqueue(self, arrays: dict[str, Array], begin: int, end: int) -> None:
        """See Source."""
        part = self._part(begin, end)
        sizes = part.sizes()
        part.enqueue({name: array[: sizes[name][0]] for name, array in arrays.items()})

    def shaped(self, flat: dict[str, np.ndarray], begin: int, end: int) -> dict[str, np.ndarray]:
        """See Source: {name: (end - begin, …)}."""
        part = self._part(begin, end)
        sizes = part.sizes()
        return part.shaped({name: array[: sizes[name][0]] for name, array in flat.items()})


def staged_bytes(source: PointSource, nodes: int) -> int:
    """Bytes of a block of a Staging for so many nodes."""
    return Staging.bytes_of(source.sizes(nodes))
