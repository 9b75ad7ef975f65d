"""The boundary lists of a slab: all of a step's entries are computed, then all are taken in.

No entry sees what another one writes, so neither their order nor the layout can be seen in the
result. Populations that enter are written to where the step will read them, at once where no other
entry could see it (see at_once; not in layouts that keep tables of neighbours); where the layout
stores moments, the listed cells are computed anew, right after the planes they lie in.
"""

from dataclasses import dataclass

import numpy as np

from mpilbm import codegen
from mpilbm.links.direct_writes import parted
from mpilbm.links.mirrors import SlippingLinks
from mpilbm.solver.timed_arrays import Told


@dataclass(frozen=True)
class State:
    """What the entries of a list keep from step to step: (entries, names) values on the device.

    `cells`: int64 (entries,), their cells in the whole box, (plane * rows + row) * nx + x,
    ascending, a cell's entries in the order of the file; so all slabs together hold what one would.
    """

    label: str
    names: tuple[str, ...]
    cells: np.ndarray
    values: object
    device: object

    def read(self) -> np.ndarray:
        """The values, (entries, names)."""
        return self.device.download(self.values).reshape(-1, len(self.names))

    def write(self, values: np.ndarray) -> None:
        """The inverse of `read`, once the solver has resumed; in any precision."""
        self.device.copy(self.values, self.device.upload(values.astype(self.values.dtype)))


class Lists:
    """Entries of all boundaries of a fluid, one after another in the arrays, and their kernels.

    `solver` is the fluid's Populations. `start` is where the links of an entry begin in the staging
    array. Some arrays are of one list: there entry k stands at k - own_first. `chained`: kernels
    over each listed cell once find its entries, also where the step does not need that. `staged`:
    nothing is written at once, for kernels that look at what was staged.
    """

    def __init__(self, solver, geometry, chained=False, staged=False):
        self._solver, self._geometry = solver, geometry
        case, device, entries = solver.case, solver.device, geometry.lists
        if case.layout.dense and not staged:
            entries = parted(case, solver.slab, entries)
        cells = np.concatenate([e.cells for e in entries] or [np.empty(0, np.int64)])
        missing = np.concatenate([e.missing for e in entries] or [np.empty(0, np.uint32)])
        bits = np.unpackbits(missing.view(np.uint8)).reshape(-1, 32)
        links = bits.sum(axis=1, dtype=np.int64)
        self.stream, self.count = device.stream("bulk"), cells.size
        self._staged = sum(e.cells.size for e in entries if not e.ending)
        self._entering = sum(e.cells.size for e in entries if e.overruled), self._staged
        self.populations = case.layout.populations
        self._first = solver.grid.ghost
        self._timed: list[tuple[Told, float]] = []  # what follows the time, and how far ahead
        self._launches: dict[int, list] = {}
        self._begins: dict[int, list] = {}
        self._again: dict[int, object] = {}
        self.states = [state for e in entries for state in self._state(e)]
        if not self.count:
            return
        precision = case.precision
        links = links[: self._staged]
        stored = precision.storage if self.populations else precision.compute
        self._arrays = {
            "missing": device.upload(missing),
            "value": device.upload(np.concatenate([e.value for e in entries])),
            "start": device.upload(start := np.cumsum(links) - links),
            "staging": device.allocate(int(links.sum()), stored),
        }
        self._cells = device.upload(solver.grid.packed(cells, geometry))
        self._motions: tuple = ()  # (array,) once a list takes it
        staged = [e for e in entries if not e.ending]
        self._slipping = SlippingLinks.find(staged, start, solver.lattice.Q)
        if "slip" in codegen.beside(case):
            self._arrays["mirrors"] = device.upload(self._slipping.places)
        self._ranges: list[tuple] = []
        self._nears: dict[str, tuple] = {}  # (cells, their velocities, how many) of a list
        begin = 0
        for e in entries:
            name = codegen.list_name(case, e.boundary) + e.ending
            own = {"own_first": begin, "own_link": int(start[begin]) if begin < start.size else 0}
            end = begin + e.cells.size
            self._ranges.append((name, begin, end, own | self._own(name, e)))
            begin = end
        if chained or not self.populations:
            self._chain(cells, geometry, device, solver.grid)

    def _own(self, name: str, entries) -> dict:
        """The arrays of one list, those that its kernels take."""
        solver, upload = self._solver, self._solver.device.upload
        wanted = {a.name for a in solver.program.kernels[f"{name}_0"].arguments}
        arrays = {"values": upload(entries.values.astype(solver.program.compute))}
        size = solver.case.domain.size
        if any(value.timed for member in entries.members for value in member.given()):
            ahead = 0.5 if entries.boundary.wall_at == "half" else 1
            self._follow(arrays["values"], lambda t: entries.rows(size, t), ahead)
        if "link" in wanted:
            # where a direction is not listed the place after the last may be looked at
            arrays["link"] = upload(np.append(entries.links, 0.5).astype(solver.program.compute))
        if "blocked" in wanted:
            arrays["blocked"] = upload(entries.blocked)
        if "motions" in wanted:
            self._motions = self._motions or self._moving(entries.moving)
            arrays["motions"] = self._motions[0]
            for end, rows in zip(("", "_in1", "_in2"), entries.moved, strict=False):
                arrays[f"moved{end}"] = upload(rows)
        looked_at = entries.cells, *(there for there, _ in entries.inward)
        for end, there in zip(("", "_in1", "_in2"), looked_at, strict=False):
            if f"slipped{end}" in wanted:
                arrays[f"slipped{end}"] = self.slipped(there)
        if entries.boundary.beside:
            arrays |= self._near(name, entries)
        for k, there in enumerate(entries.behind, 1):
            if f"cells_behind{k}" in wanted:
                packed = solver.grid.packed(there, self._geometry)
                arrays[f"cells_behind{k}"] = upload(packed)
        if entries.mirrored:
            arrays |= self._mirrored(*entries.mirrored)
        for k, (there, blocked) in enumerate(entries.inward, 1):
            if f"cells_in{k}" in wanted:
                packed = solver.grid.packed(there, self._geometry)
                arrays |= {f"cells_in{k}": upload(packed), f"blocked_in{k}": upload(blocked)}
        label = name + solver.suffix
        kept = [state.values for state in self.states if state.label == label]
        return arrays | dict(zip(("state",), kept, strict=False))

    def slipped(self, cells):
        """The rows of cells in what is known of links that slip."""
        return self._solver.device.upload(self._slipping.of(cells))

    def _moving(self, moving) -> tuple:
        """The array of how walls move beside cells, one for all lists."""
        solver = self._solver
        of = solver.fluid.collision, solver.lattice, solver.case.domain.size
        array = solver.device.upload(moving.motions(*of, 0).astype(solver.program.compute))
        if moving.timed:
            self._follow(array, lambda t: moving.motions(*of, t), 0.5)
        return (array,)

    def _mirrored(self, cells, r) -> dict:
        """Where in the array lies what left cells along c_r, in steps of each parity."""
        solver = self._solver
        packed = solver.grid.packed(cells, self._geometry)
        following = solver.device.download(solver.solver.tables["node_next"])
        found = {}
        for parity in range(solver.layout.parities):
            there = np.zeros(cells.size + 1, np.int64)  # one more, as of `link`
            for j in np.unique(r):
                place, mine = solver.layout.f_out(solver.lattice, j, parity), np.flatnonzero(r == j)
                there[mine] = solver.grid.places_of(packed[mine], *place, following)
            found[f"from_{parity}"] = solver.device.upload(there)
        return found

    def _near(self, name: str, entries) -> dict:
        """The cells next to those of a list, along the links that are missing."""
        device, grid = self._solver.device, self._solver.grid
        listed, missing = (
            np.unpackbits(bits.view(np.uint8), bitorder="little").reshape(-1, 32).astype(bool)
            for bits in (entries.missing, entries.missing & entries.blocked & ~np.uint32(1))
        )
        cells = entries.behind[0][missing[listed]]
        count = missing.sum(axis=1, dtype=np.int64)
        near = device.allocate(
            (cells.size + 1) * self._solver.lattice.D, self._solver.program.compute
        )
        packed = device.upload(grid.packed(cells, self._geometry))
        self._nears[name] = packed, near, cells.size
        return {"near": near, "near_start": device.upload(np.cumsum(count) - count)}

    def _state(self, entries):
        """The state of one list, if it keeps any."""
        solver, names = self._solver, entries.boundary.state(self._solver.lattice)
        if names:
            values = solver.device.allocate(entries.cells.size * len(names), solver.program.compute)
            below = solver.slab.begin * int(np.prod(solver.slab.shape[1:]))
            label = codegen.list_name(solver.case, entries.boundary) + solver.suffix
            yield State(label, names, entries.cells + below, values, solver.device)

    def _chain(self, cells, geometry, device, grid) -> None:
        """Each listed cell once, in order of planes, with a chain of its entries."""
        order = np.argsort(cells, kind="stable")
        once, first = np.unique(cells[order], return_index=True)
        following = np.full(cells.size, -1, np.int32)
        same = cells[order][1:] == cells[order][:-1]
        following[order[:-1][same]] = order[1:][same]
        box = geometry.solid.shape
        self._plane_ends = np.searchsorted(once, np.arange(box[0] + 1) * (box[1] * box[2]))
        self._arrays["head"] = device.upload(order[first].astype(np.int32))
        self._arrays["following"] = device.upload(following)
        self.once = once.size
        self._once = device.upload(grid.packed(once, geometry))

    def prepare(self, key: int, parity: int, **arrays) -> None:
        """Bind the kernels for steps of this parity to the arrays that they read and write."""
        self._launches[key], self._begins[key] = [], []
        if not self.count:
            return
        arrays |= self._arrays
        bind = self._solver.bind_step
        for name, begin, end, own in (each for each in self._ranges if each[1] < each[2]):
            if name in self._nears:
                cells, near, count = self._nears[name]
                launch = bind(f"{name}_near_{parity}", **(arrays | {"cells": cells, "near": near}))
                self._launches[key].append((launch, 0, count))
            launch = bind(f"{name}_{parity}", cells=self._cells, **own, **arrays)
            self._launches[key].append((launch, begin, end))
            if "state" in own:
                launch = bind(f"{name}_begin_{parity}", cells=self._cells, **own, **arrays)
                self._begins[key].append((launch, begin, end))
        if self.populations and self._staged:
            enter = bind(f"enter_{parity}", cells=self._cells, **arrays)
            self._launches[key].append((enter, *self._entering))
        if not self.populations:
            self._again[key] = bind(f"again_{parity}", cells=self._once, **arrays)

    def _follow(self, array, values, ahead: float) -> None:
        """Have an array hold values(t) in each step."""
        if array.size:  # a list of values of cells may have none here
            self._timed.append((Told(self._solver.device, self.stream, array, values), ahead))

    def _tell_time(self) -> None:
        """What is given at the time of the populations that enter; before the beginning at t = 0.

        They cross a wall half a cell out half a step before they arrive.
        """
        steps = self._solver.steps
        for told, ahead in self._timed:
            told.tell(steps + ahead if steps >= 0 else 0)

    def begin(self, key: int) -> None:
        """The state of all entries before the first step, once that of the fluid is there."""
        for launch, begin, end in self._begins[key]:
            launch(self.stream, begin, end)

    def stage(self) -> dict:
        """Stage now what enters in the next step; the arrays that kernels over all entries take."""
        solver = self._solver
        arrays = self._arrays | solver.current() | {"cells": self._cells}
        self._tell_time()
        for name, begin, end, own in self._ranges:
            parity = solver.steps % solver.layout.parities
            if name in self._nears:
                cells, near, count = self._nears[name]
                more = {"cells": cells, "near": near}
                solver.bind(f"{name}_near_{parity}", **(arrays | more))(self.stream, 0, count)
            solver.bind(f"{name}_{parity}", **(arrays | own))(self.stream, begin, end)
        return arrays

    def over_cells(self, name: str, arrays: dict) -> None:
        """Run a kernel over each listed cell once, given what `stage` returned, and wait."""
        launch = self._solver.bind(name, **(arrays | {"cells": self._once}))
        launch(self.stream, 0, self.once)
        self._solver.device.synchronize()

    def run(self, key: int) -> None:
        """Enqueue the lists of a step, before its collide-stream kernels."""
        self._tell_time()
        for launch, begin, end in self._launches[key]:
            launch(self.stream, begin, end)

    def followed(self, launch, key: int):
        """A launch over planes, and after it that of the listed cells in the same planes."""
        if key not in self._again:
            return launch
        again, ends, first = self._again[key], self._plane_ends, self._first

        def both(stream, begin, end, stride=1):
            launch(stream, begin, end, stride)
            alone = [(plane, plane + 1) for plane in range(begin, end, stride)]
            for lower, upper in [(begin, end)] if stride == 1 else alone:
                again(stream, ends[lower - first], ends[upper - first])

        return both
