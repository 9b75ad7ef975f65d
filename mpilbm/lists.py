"""The boundary lists of a slab: all of a step's entries are computed, then all are taken in.

No entry sees what another one writes, so neither their order nor the layout can be seen in the
result. Populations that enter are written to where the step will read them; where the layout
stores moments, the listed cells are computed anew, right after the planes they lie in.
"""

import numpy as np

from mpilbm import codegen


class Lists:
    """Entries of all boundaries, one after another in the arrays, and the kernels over them.

    `start` is where the links of an entry begin in the staging array. `bind(name, **arguments)`
    makes a launch of a kernel, `grid` tells where in the populations the cells are.
    """

    def __init__(self, case, geometry, device, bind, grid):
        entries = geometry.lists
        cells = np.concatenate([e.cells for e in entries] or [np.empty(0, np.int64)])
        missing = np.concatenate([e.missing for e in entries] or [np.empty(0, np.uint32)])
        bits = np.unpackbits(missing.view(np.uint8)).reshape(-1, 32)
        links = bits.sum(axis=1, dtype=np.int64)
        self.stream, self.count = device.stream("bulk"), cells.size
        self.populations = case.layout.populations
        self._bind, self._first = bind, grid.ghost
        self._launches: dict[int, list] = {}
        self._again: dict[int, object] = {}
        if not self.count:
            return
        self._ranges: list[tuple] = []
        begin = 0
        for e in entries:
            name = codegen.list_name(case, e.boundary)
            values = device.upload(e.values.astype(case.precision.compute))
            self._ranges.append((name, begin, begin + e.cells.size, values))
            begin += e.cells.size
        precision = case.precision
        staged = precision.storage if self.populations else precision.compute
        self._arrays = {
            "missing": device.upload(missing),
            "value": device.upload(np.concatenate([e.value for e in entries])),
            "start": device.upload(np.cumsum(links) - links),
            "staging": device.allocate(int(links.sum()), staged),
        }
        self._cells = device.upload(grid.packed(cells, geometry))
        if not self.populations:
            self._chain(cells, geometry, device, grid)

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
        self._once = device.upload(grid.packed(once, geometry))

    def prepare(self, key: int, parity: int, **arrays) -> None:
        """Bind the kernels for steps of this parity to the arrays that they read and write."""
        self._launches[key] = []
        if not self.count:
            return
        arrays |= self._arrays
        for name, begin, end, values in self._ranges:
            launch = self._bind(f"{name}_{parity}", cells=self._cells, values=values, **arrays)
            self._launches[key].append((launch, begin, end))
        if self.populations:
            enter = self._bind(f"enter_{parity}", cells=self._cells, **arrays)
            self._launches[key].append((enter, 0, self.count))
        else:
            self._again[key] = self._bind(f"again_{parity}", cells=self._once, **arrays)

    def run(self, key: int) -> None:
        """Enqueue the lists of a step, before its collide-stream kernels."""
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
