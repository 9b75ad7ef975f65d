"""The boundary lists of a slab: kernels that compute and write the incoming populations.

No entry reads what another entry of the same step writes, so the result depends neither on the
order of entries nor on the layout. Incoming populations are written to the places from which the
step reads them. An entry writes them directly if no other entry reads or writes these places (see
links/direct_writes.py; not in layouts with tables of neighbours); all others are staged in an
array first and written after all entries are computed. Where the layout stores moments, the listed
cells are computed a second time, right after the planes that contain them. Lists for the forces on
bodies are not written at all.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpilbm import codegen
from mpilbm.backends import Device
from mpilbm.backends.interfaces import Launch
from mpilbm.geometry.build import Geometry
from mpilbm.layouts.nodes import NodeGrid
from mpilbm.layouts.packed_cells import PackedCells
from mpilbm.links.boundary_links import EntryList, Writes
from mpilbm.links.direct_writes import split_by_writes
from mpilbm.links.link_set import LinkSet, joined
from mpilbm.links.mirrors import MirroredLinks
from mpilbm.links.moving_walls import MovingLinks, WallMotion
from mpilbm.links.wall_distance import LinkData, MirrorSource
from mpilbm.physics.boundary_capabilities import Behind
from mpilbm.solver.populations import Populations
from mpilbm.solver.timed_values import TimedArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Arrays = dict[str, Any]  # arrays and numbers that kernels take, by name
Bind = Callable[..., Launch]  # of a kernel's name and arguments
Launched = tuple[Launch, int, int]  # a launch for entries begin..end
INWARD = ("", "_in1", "_in2")  # suffixes of arrays of the listed cells, and of cells inwards
HALF_WAY = 0.5  # the distance to a half-way wall, in links


@dataclass(frozen=True)
class EntryState:
    """The values that the entries of a list keep from step to step: (entries, names) on the device.

    `cells`: int64 (entries,), their cells in the whole box, (plane * rows + row) * nx + x,
    ascending, the entries of a cell in the order of the file. The states of all slabs, one after
    another, are therefore that of a single slab.
    """

    label: str
    names: tuple[str, ...]
    cells: Ints
    values: Any
    device: Device

    def read(self) -> NDArray[Any]:
        """The values, (entries, names)."""
        return self.device.download(self.values).reshape(-1, len(self.names))

    def write(self, values: NDArray[Any]) -> None:
        """The inverse of `read`, after Solver.resume; in any precision."""
        self.device.copy(self.values, self.device.upload(values.astype(self.values.dtype)))


@dataclass(frozen=True)
class NearCells:
    """The cells next to those of a list along its own links, and the array of their velocities."""

    kernel: str
    cells: Any
    velocities: Any
    count: int


class ListRange(NamedTuple):
    """The entries begin..end of a list, its kernel, and the arrays of this list alone."""

    kernel: str
    writes: Writes
    begin: int
    end: int
    own: Arrays


class BoundaryLists:
    """Entries of all boundaries of a fluid, one after another in the arrays, and their kernels.

    Array `start` holds the place of the first link of each entry in the staging array. Arrays of a
    single list have entry k at place k - own_first.

    chained   prepare kernels over each listed cell once, even if the step needs none
    staged    stage all incoming populations that are written, for kernels that read them there
    """

    def __init__(
        self,
        fluid: Populations,
        geometry: Geometry,
        chained: bool = False,
        staged: bool = False,
    ):
        self._fluid, self._geometry = fluid, geometry
        case, device, entries = fluid.case, fluid.device, list(geometry.lists)
        if case.layout.dense and not staged:
            entries = split_by_writes(case, fluid.slab, entries)
        cells = np.concatenate([e.cells for e in entries] or [np.empty(0, np.int64)])
        links = joined([e.links for e in entries])
        in_staging = [e for e in entries if e.writes is Writes.STAGED]
        self.stream, self.count = device.stream("bulk"), cells.size
        self._staged = sum(e.cells.size for e in in_staging)
        self._entering = sum(e.cells.size for e in entries if e.overruled), self._staged
        self._stores_populations = case.layout.populations
        self._first = fluid.grid.ghost
        self._timed: list[tuple[TimedArray, float]] = []  # (array, its time minus that of the step)
        self._launches: dict[int, list] = {}
        self._begins: dict[int, list] = {}
        self._again: dict[int, Callable] = {}
        states = [[*self._state(e)] for e in entries]
        self.states = [state for of_list in states for state in of_list]
        if not self.count:
            return
        staged_links = links[: self._staged]
        start = staged_links.starts()
        precision = case.precision
        stored = precision.storage if self._stores_populations else precision.compute
        self._arrays: Arrays = {
            "missing": device.upload(links.bits),
            "value": device.upload(np.concatenate([e.given.row for e in entries])),
            "start": device.upload(start),
            "staging": device.allocate(staged_links.total(), stored),
        }
        self._cells = self._upload_cells(cells)
        self._motions: Any = None  # the array of `motions`, once a list takes it
        more = [e for e in entries if e.writes is Writes.MEASURED]
        self._mirrored_links = MirroredLinks.find(in_staging, start, fluid.lattice.Q, more)
        if "slip" in codegen.wall_effects(case):
            self._arrays["mirrors"] = device.upload(self._mirrored_links.places)
        self._ranges: list[ListRange] = []
        self._nears: list[NearCells] = []
        begin = 0
        for e, kept in zip(entries, states, strict=True):
            name = codegen.list_name(case, e.boundary)
            first_link = int(start[begin]) if begin < start.size else 0
            own: Arrays = {"own_first": begin, "own_link": first_link}
            own |= {"state": kept[0].values} if kept else {}
            end = begin + e.cells.size
            own |= self._own(name, e)
            self._ranges.append(ListRange(name + e.writes.value, e.writes, begin, end, own))
            begin = end
        if chained or not (staged or self._stores_populations):
            self._chain(cells[: self._staged], geometry)

    def _own(self, name: str, entries: EntryList) -> Arrays:
        """The arrays of one list, those that its kernels take."""
        fluid, upload = self._fluid, self._fluid.device.upload
        kernel = fluid.program.kernels[f"{name}{entries.writes.value}_0"]
        wanted = {a.name for a in kernel.arguments}
        arrays: Arrays = {"values": upload(entries.given.rows.astype(fluid.program.compute))}
        size = fluid.case.domain.size
        if any(value.timed for boundary in entries.boundaries for value in boundary.given()):
            ahead = 0.5 if entries.boundary.wall_at == "half" else 1
            self._follow(arrays["values"], lambda t: entries.rows(size, t), ahead)
        if entries.writes is Writes.MEASURED and "start" in wanted:
            arrays["start"] = upload(entries.links.starts())
        if "link" in wanted and entries.per_link:
            arrays["link"] = upload(encoded_links(entries.per_link).astype(fluid.program.compute))
        if "blocked" in wanted:
            arrays["blocked"] = upload(encoded_blocked(entries))
        if "motions" in wanted and entries.motion:
            arrays |= self._moving(entries.motion)
        for end, there in zip(INWARD, entries.looked_at, strict=False):
            if f"slipped{end}" in wanted:
                arrays[f"slipped{end}"] = self.slipped(there)
        if entries.per_link:
            arrays |= self._along_links(name, entries, entries.per_link, wanted)
        for end, inward in zip(INWARD[1:], entries.inward, strict=False):
            if f"cells{end}" in wanted:
                arrays[f"cells{end}"] = self._upload_cells(inward.cells)
                arrays[f"blocked{end}"] = upload(inward.blocked.bits)
        return arrays

    def _along_links(
        self, name: str, entries: EntryList, data: LinkData, wanted: set[str]
    ) -> Arrays:
        """The arrays of cells along the links of a list."""
        found: Arrays = {}
        if entries.boundary.capabilities.behind is Behind.VELOCITY:
            found |= self._near(name, entries, data.behind[0])
        for k, there in enumerate(data.behind, 1):
            if f"cells_behind{k}" in wanted:
                found[f"cells_behind{k}"] = self._upload_cells(there)
        return found | (self._mirror_sources(data.mirror) if data.mirror else {})

    def _packed(self, cells: Ints) -> PackedCells:
        return self._fluid.grid.packed(cells, self._geometry)

    def _upload_cells(self, cells: Ints) -> Any:
        """The array of packed cells."""
        return self._fluid.device.upload(self._packed(cells).words)

    def slipped(self, cells: Ints) -> Any:
        """The array of rows of cells in the table of mirrored links."""
        return self._fluid.device.upload(self._mirrored_links.rows_of(cells))

    def _moving(self, motion: WallMotion) -> Arrays:
        """The array `motions`, which all lists share, and the rows of one list in it."""
        if self._motions is None:
            self._motions = self._motions_of(motion.table)
        upload = self._fluid.device.upload
        rows = {f"moved{end}": upload(rows) for end, rows in zip(INWARD, motion.rows, strict=False)}
        return {"motions": self._motions, **rows}

    def _motions_of(self, moving: MovingLinks) -> Any:
        """The array `motions`, kept up to date."""
        fluid = self._fluid
        of = fluid.collision, fluid.lattice, fluid.case.domain.size
        array = fluid.device.upload(moving.motions(*of, 0).astype(fluid.program.compute))
        if moving.timed:
            self._follow(array, lambda t: moving.motions(*of, t), 0.5)
        return array

    def _mirror_sources(self, mirror: MirrorSource) -> Arrays:
        """The places of the mirrored populations in the array `f`, for steps of each parity."""
        fluid, grid = self._fluid, self._fluid.grid
        assert isinstance(grid, NodeGrid)  # the only one whose kernels take these arrays
        packed = self._packed(mirror.cells)
        following: Any = fluid.context.tables["node_next"]

        def part(begin: int, end: int) -> NDArray[np.int32]:
            return fluid.device.download(following[begin:end])

        found = {}
        for parity in range(fluid.layout.parities):
            there = np.zeros(mirror.cells.size + 1, np.int64)  # one more, as of `link`
            for j in np.unique(mirror.direction):
                place = fluid.layout.f_out(fluid.lattice, j, parity)
                mine = np.flatnonzero(mirror.direction == j)
                there[mine] = grid.places_of(packed[mine], *place, part)
            found[f"from_{parity}"] = fluid.device.upload(there)
        return found

    def _near(self, name: str, entries: EntryList, next_cells: Ints) -> Arrays:
        """Set up the cells behind the links of a list that cross its walls; returns its arrays."""
        fluid, walls = self._fluid, entries.own_walls
        cells = next_cells[walls.contains(*entries.links.unpack())]
        size = (cells.size + 1) * fluid.lattice.D
        near = fluid.device.allocate(size, fluid.program.compute)
        self._nears.append(NearCells(f"{name}_near", self._upload_cells(cells), near, cells.size))
        return {"near": near, "near_start": fluid.device.upload(walls.starts())}

    def _state(self, entries: EntryList) -> Iterator[EntryState]:
        """The state of one list, if it keeps any."""
        fluid, names = self._fluid, entries.boundary.state(self._fluid.lattice)
        if names:
            values = fluid.device.allocate(entries.cells.size * len(names), fluid.program.compute)
            below = fluid.slab.begin * int(np.prod(fluid.slab.shape[1:]))
            label = codegen.list_name(fluid.case, entries.boundary) + fluid.suffix
            yield EntryState(label, names, entries.cells + below, values, fluid.device)

    def _chain(self, cells: Ints, geometry: Geometry) -> None:
        """Each listed cell once, in order of planes, with a chain of its entries."""
        device = self._fluid.device
        # fast, because each list is in order
        order = np.argsort(cells, kind="stable").astype(np.int32)
        ordered = cells[order]
        same = ordered[1:] == ordered[:-1]
        first = np.append(True, ~same)
        once = ordered[first]
        following = np.full(cells.size, -1, np.int32)  # the kernel stops at a negative number
        following[order[:-1][same]] = order[1:][same]
        box = geometry.solid.shape
        self._plane_ends = np.searchsorted(once, np.arange(box[0] + 1) * (box[1] * box[2]))
        self._arrays["head"] = device.upload(order[first])
        self._arrays["following"] = device.upload(following)
        self.once = once.size
        self._once = self._upload_cells(once)

    def prepare(self, key: int, parity: int, **arrays: Any) -> None:
        """Bind the kernels for steps of this parity to the arrays that they read and write."""
        self._launches[key], self._begins[key] = [], []
        if not self.count:
            return
        bind = self._fluid.bind_step
        self._launches[key] = self.supplying(bind, parity, **arrays)
        arrays |= self._arrays
        for one in (each for each in self._ranges if "state" in each.own and each.begin < each.end):
            launch = bind(f"{one.kernel}_begin_{parity}", cells=self._cells, **one.own, **arrays)
            self._begins[key].append((launch, one.begin, one.end))
        if self._stores_populations and self._staged:
            enter = bind(f"enter_{parity}", cells=self._cells, **arrays)
            self._launches[key].append((enter, *self._entering))
        if not self._stores_populations:
            self._again[key] = bind(f"again_{parity}", cells=self._once, **arrays)

    def _follow(self, array: Any, values: Callable[[float], Floats], ahead: float) -> None:
        """Update an array to values(t) in each step, with t = step + ahead."""
        if array.size:  # a list with values for each cell may have none here
            self._timed.append((TimedArray(self._fluid.device, self.stream, array, values), ahead))

    def update(self) -> None:
        """Update given values to the time at which the incoming populations cross the wall.

        A population crosses a half-way wall half a step before it arrives. Before step 0, t = 0.
        """
        steps = self._fluid.steps
        for array, ahead in self._timed:
            array.update(steps + ahead if steps >= 0 else 0)

    def begin(self, key: int) -> None:
        """Set the state of all entries before the first step; call it after the fluid is set."""
        for launch, begin, end in self._begins[key]:
            launch(self.stream, begin, end)

    def supplying(self, bind: Bind, parity: int, **arrays: Any) -> list[Launched]:
        """The kernels that compute the incoming populations of steps of this parity.

        They read `f` and the cells behind links. `update` comes first.
        """
        arrays |= self._arrays
        written = [each for each in self._ranges if each.writes is not Writes.MEASURED]
        found = [(bind(f"{near.kernel}_{parity}", **(arrays | _arguments(near))), 0, near.count)
                 for near in self._nears]  # fmt: skip
        bound = self._bound(bind, parity, written, arrays)
        return found + [(launch, one.begin, one.end) for one, launch in bound]

    def measuring(
        self, bind: Bind, parity: int, chunks: Sequence[tuple[int, int]], **arrays: Any
    ) -> list[Launched]:
        """The kernels that add what the measured lists give to bodies; chunks: (begin, end) each.

        The kernels of `supplying` come first.
        """
        arrays |= self._arrays
        measured = [each for each in self._ranges if each.writes is Writes.MEASURED]
        bound = self._bound(bind, parity, measured, arrays)
        return [(launch, *ends) for (_, launch), ends in zip(bound, chunks, strict=True)]

    def _bound(
        self, bind: Bind, parity: int, ranges: list[ListRange], arrays: Arrays
    ) -> Iterator[tuple[ListRange, Launch]]:
        arrays = arrays | {"cells": self._cells}
        for one in (each for each in ranges if each.begin < each.end):
            yield one, bind(f"{one.kernel}_{parity}", **(arrays | one.own))

    def over_cells(self, bind: Bind, name: str, **arrays: Any) -> Launched:
        """A kernel over each listed cell once, which reads what has been staged."""
        return bind(name, **(arrays | self._arrays | {"cells": self._once})), 0, self.once

    def run(self, key: int) -> None:
        """Enqueue the lists of a step, before its collide-stream kernels."""
        self.update()
        for launch, begin, end in self._launches[key]:
            launch(self.stream, begin, end)

    def followed(self, launch: Callable, key: int) -> Callable:
        """A launch over planes that also computes the listed cells in these planes again."""
        if key not in self._again:
            return launch
        again, ends, first = self._again[key], self._plane_ends, self._first

        def both(stream: Any, begin: int, end: int, stride: int = 1) -> None:
            launch(stream, begin, end, stride)
            alone = [(plane, plane + 1) for plane in range(begin, end, stride)]
            for lower, upper in [(begin, end)] if stride == 1 else alone:
                again(stream, ends[lower - first], ends[upper - first])

        return both


def _arguments(near: NearCells) -> Arrays:
    """The arrays that the kernel over near cells takes."""
    return {"cells": near.cells, "near": near.velocities}


def encoded_links(data: LinkData) -> Floats:
    """The value of each link in the form that kernels read (`cell.link`), float64 (links + 1,).

    A distance is negative where the interpolation is linear instead of quadratic; mirrored axes are
    the sum of 2^axis. The additional value is never used, but a kernel may read it: for a direction
    that is not listed it reads the place of the next link.
    """
    if data.mirrored_axes is not None:
        axes = np.exp2(np.arange(data.mirrored_axes.shape[1]))
        found: Floats = data.mirrored_axes.astype(float) @ axes
    elif data.distance is None:
        raise ValueError("the boundary declares per_link, but its links have no value")
    elif data.linear is not None:
        found = np.where(data.linear, -data.distance, data.distance)
    else:
        found = data.distance
    return np.append(found, HALF_WAY)


def encoded_blocked(entries: EntryList) -> NDArray[np.uint32]:
    """The blocked links in the form that kernels read, with `meeting` in bit 0.

    Bit 0 is free, because the rest population has no link.
    """
    meeting = LinkSet.collect(len(entries.blocked), {0: entries.meeting})
    return (entries.blocked | meeting).bits
