"""The boundary lists of a slab: kernels that compute and write the incoming populations.

No entry reads what another entry of the same step writes, so the result depends neither on the
order of entries nor on the layout. Incoming populations are written to the places from which the
step reads them: directly if no other entry reads or writes these places (see solids/staging.py; not
in layouts with tables of neighbours), otherwise staged in an array first and written after all
entries are computed. Where the layout stores moments, the listed cells are computed a second time,
right after the planes that contain them. Lists for the forces on bodies are not written.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpilbm.backends import Device
from mpilbm.backends.interfaces import Launch, Runner, Stream
from mpilbm.codegen.structure import list_name, wall_effects
from mpilbm.solids import Ints
from mpilbm.solids.body_links import Numbers
from mpilbm.solids.build import Geometry
from mpilbm.solids.entry_list import EntryList, Writes
from mpilbm.solids.link_set import joined
from mpilbm.solids.staging import MirroredLinks, split_by_writes
from mpilbm.solver.list_arrays import Arrays, ListArrays
from mpilbm.solver.populations import Populations
from mpilbm.solver.timed_values import TimedArray

Bind = Callable[..., Launch]  # of a kernel's name and arguments
Launched = tuple[Launch, int, int]  # a launch for entries begin..end


@dataclass(frozen=True)
class EntryState:
    """The values that the entries of a list keep from step to step: (entries, names) on the device.

    `cells`: int64 (entries,), their cells in the whole box, (plane * rows + row) * nx + x,
    ascending, so the states of all slabs one after another are that of a single slab.
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


class ListRange(NamedTuple):
    """The entries begin..end of a list, its kernel, and the arrays of this list alone.

    read: whether other boundaries read what it stages, see MirroredLinks.
    """

    kernel: str
    writes: Writes
    begin: int
    end: int
    own: Arrays
    read: bool


def by_plane(launch: Launch, ends: Ints, first: int) -> Runner:
    """A launch over planes of a kernel whose entries before plane p end at ends[p - first]."""

    def run(stream: Any, begin: int, end: int, stride: int = 1) -> None:
        alone = [(plane, plane + 1) for plane in range(begin, end, stride)]
        for lower, upper in [(begin, end)] if stride == 1 else alone:
            launch(stream, int(ends[lower - first]), int(ends[upper - first]))

    return run


def in_turn(*launches: Runner) -> Runner:
    """A launch over planes of several launches, one after another."""

    def run(stream: Any, begin: int, end: int, stride: int = 1) -> None:
        for launch in launches:
            launch(stream, begin, end, stride)

    return run


def chained_entries(cells: Ints) -> tuple[Ints, Numbers, Numbers]:
    """Chains of the entries in each cell, from the cells of all entries, int64 (n,).

    Returns the distinct cells, ascending; the first entry in each of them; and the entry that
    follows each entry in its cell, -1 after the last one.
    """
    order = np.argsort(cells, kind="stable").astype(np.int32)  # fast: each list is in order
    ordered = cells[order]
    same = ordered[1:] == ordered[:-1]
    first = np.append(True, ~same)[: cells.size]
    following = np.full(cells.size, -1, np.int32)  # the kernel stops at a negative number
    following[order[:-1][same]] = order[1:][same]
    return ordered[first], order[first], following


class BoundaryLists:
    """Entries of all boundaries of a fluid, one after another in the arrays, and their kernels.

    Array `start` holds the place of the first link of each entry in the staging array. Arrays of a
    single list have entry k at place k - own_first.

    chained   prepare kernels over each listed cell once, even if the step needs none
    staged    stage all incoming populations that are written, for kernels that read them there
    """

    def __init__(
        self, fluid: Populations, geometry: Geometry, chained: bool = False, staged: bool = False
    ):
        self._fluid = fluid
        bounded, device, entries = fluid.bounded, fluid.device, list(geometry.lists)
        if bounded.layout.dense and not staged:
            entries = split_by_writes(bounded, fluid.slab, entries)
        cells = np.concatenate([e.cells for e in entries] or [np.empty(0, np.int64)])
        links = joined([e.links for e in entries])
        in_staging = [e for e in entries if e.writes is Writes.STAGED]
        self.stream, self.count = fluid.context.bulk, cells.size
        self._staged = sum(e.cells.size for e in in_staging)
        self._entering = sum(e.cells.size for e in entries if e.overruled), self._staged
        self._stores_populations = bounded.layout.populations
        self._first = fluid.grid.ghost
        self._launches: dict[int, list[Launched]] = {}
        self._begins: dict[int, list[Launched]] = {}
        self._again: dict[int, Runner] = {}
        kept = [self._state(e) if e.boundary.state(fluid.lattice) else None for e in entries]
        self.states = [state for state in kept if state]
        self._timed: list[tuple[TimedArray, float]] = []  # see ListArrays
        if not self.count:
            return
        staged_links = links[: self._staged]
        start = staged_links.starts()
        precision = bounded.precision
        stored = precision.storage if self._stores_populations else precision.compute
        self._arrays: Arrays = {
            "missing": device.upload(links.bits),
            "value": device.upload(np.concatenate([e.given.row for e in entries])),
            "start": device.upload(start),
            "staging": device.allocate(staged_links.total(), stored),
        }
        more = [e for e in entries if e.writes is Writes.MEASURED]
        mirrored = MirroredLinks.find(in_staging, start, fluid.lattice.Q, more)
        if "slip" in wall_effects(bounded):
            self._arrays["mirrors"] = device.upload(mirrored.places)
        self._of_lists = ListArrays(fluid, geometry, mirrored)
        self._timed = self._of_lists.timed
        self._cells = self._of_lists.packed_cells(cells)
        self._ranges: list[ListRange] = []
        begin = 0
        for e, state in zip(entries, kept, strict=True):
            name = list_name(bounded, e.boundary)
            first_link = int(start[begin]) if begin < start.size else 0
            own: Arrays = {"own_first": begin, "own_link": first_link}
            own |= ({"state": state.values} if state else {}) | self._of_lists.of(name, e)
            end = begin + e.cells.size
            read = e.boundary.read_by_others
            self._ranges.append(ListRange(name + e.writes.value, e.writes, begin, end, own, read))
            begin = end
        if chained or not (staged or self._stores_populations):
            self._chain(cells[: self._staged])

    def _state(self, entries: EntryList) -> EntryState:
        fluid, names = self._fluid, entries.boundary.state(self._fluid.lattice)
        values = fluid.device.allocate(entries.cells.size * len(names), fluid.program.compute)
        below = fluid.slab.begin * int(np.prod(fluid.slab.shape[1:]))
        label = list_name(fluid.bounded, entries.boundary) + fluid.suffix
        return EntryState(label, names, entries.cells + below, values, fluid.device)

    def _chain(self, cells: Ints) -> None:
        """Each listed cell once, in order of planes, with a chain of its entries."""
        device, slab = self._fluid.device, self._fluid.slab
        once, head, following = chained_entries(cells)
        plane = slab.shape[1] * slab.shape[2]
        self._plane_ends = np.searchsorted(once, np.arange(slab.planes + 1) * plane)
        self._arrays["head"] = device.upload(head)
        self._arrays["following"] = device.upload(following)
        self.once = once.size
        self._once = self._of_lists.packed_cells(once)

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
            again = bind(f"again_{parity}", cells=self._once, **arrays)
            self._again[key] = by_plane(again, self._plane_ends, self._first)

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
        """The kernels that compute the incoming populations of steps of this parity; after
        `update`.
        """
        arrays |= self._arrays
        written = [each for each in self._ranges if each.writes is not Writes.MEASURED]
        found: list[Launched] = []
        for near in self._of_lists.nears:
            given = arrays | {"cells": near.cells, "near": near.velocities}
            found.append((bind(f"{near.kernel}_{parity}", **given), 0, near.count))
        bound = self._bound(bind, parity, written, arrays)
        return found + [(launch, one.begin, one.end) for one, launch in bound]

    def measuring(
        self, bind: Bind, parity: int, chunks: Sequence[tuple[int, int]], **arrays: Any
    ) -> list[Launched]:
        """The kernels, after those of `supplying`, that add what the measured lists give to bodies;
        chunks: (begin, end) each.
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

    def staged_arrays(self) -> Arrays:
        """The arrays in which kernels find the staged populations; of one number without lists."""
        if self.count:
            return self._arrays
        allocate, stored = self._fluid.device.allocate, self._fluid.program.storage
        types = {"missing": "uint32", "start": "int64", "staging": stored}
        if not self._stores_populations:
            types["staging"] = self._fluid.program.compute
        return {name: allocate(1, type) for name, type in types.items()}

    def over_cells(self, bind: Bind, name: str, **arrays: Any) -> Launched:
        """A kernel over each listed cell once, which reads what has been staged."""
        return bind(name, **(arrays | self._arrays | {"cells": self._once})), 0, self.once

    def run(self, key: int) -> None:
        """Enqueue the lists of a step, before its collide-stream kernels."""
        self.update()
        self.compute(key)

    def compute(self, key: int) -> None:
        """Enqueue the lists of a step with the given values as they are."""
        for launch, begin, end in self._launches[key]:
            launch(self.stream, begin, end)

    def rounds(self, key: int, parity: int) -> list[list[Launched]]:
        """The lists of a step in rounds, none of which reads what lists of the same round write.

        Velocities away from the wall come first; then lists that read nothing that others stage;
        then those that read mirrors and are read; and then the rest. For layouts of moments.
        """
        if not self.count:
            return []
        launched, first = self._launches[key], len(self._of_lists.nears)
        written = [each for each in self._ranges if each.writes is not Writes.MEASURED]
        ranges = [each for each in written if each.begin < each.end]
        found: list[list[Launched]] = [launched[:first], [], [], []]
        for one, of in zip(launched[first:], ranges, strict=True):
            arguments = self._fluid.program.kernels[f"{of.kernel}_{parity}"].arguments
            reads = any(argument.name == "mirrors" for argument in arguments)
            found[1 + (2 - of.read if reads else 0)].append(one)
        return [each for each in found if each]

    def again(self, key: int, stream: Stream, begin: int, end: int) -> None:
        """Enqueue the computation of the listed cells in planes begin..end, if layouts need it."""
        if key in self._again:
            self._again[key](stream, begin, end)

    def followed(self, launch: Runner, key: int) -> Runner:
        """A launch over planes that also computes the listed cells in these planes again."""
        return in_turn(launch, self._again[key]) if key in self._again else launch
