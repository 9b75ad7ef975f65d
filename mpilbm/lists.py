"""The boundary lists of a slab: all of a step's entries are computed, then all are written.

No entry sees what another one writes, so neither their order nor the layout can be seen in the
result.
"""

import numpy as np

from mpilbm import codegen


class Lists:
    """Entries of all boundaries, one after another in the arrays, and the kernels over them.

    `start` is where the links of an entry begin in the staging array. `bind(name, **arguments)`
    makes a launch of a kernel.
    """

    def __init__(self, case, geometry, device, bind):
        entries = geometry.lists
        cells = np.concatenate([e.cells for e in entries] or [np.empty(0, np.int64)])
        missing = np.concatenate([e.missing for e in entries] or [np.empty(0, np.uint32)])
        bits = np.unpackbits(missing.view(np.uint8)).reshape(-1, 32)
        links = bits.sum(axis=1, dtype=np.int64)
        self.stream, self.count = device.stream("bulk"), cells.size
        self._bind = bind
        self._launches: dict[int, list] = {}
        if not self.count:
            return
        self._ranges: list[tuple] = []
        begin = 0
        for e in entries:
            name = codegen.list_name(case, e.boundary)
            values = device.upload(e.values.astype(case.precision.compute))
            self._ranges.append((name, begin, begin + e.cells.size, values))
            begin += e.cells.size
        self._arrays = {
            "cells": device.upload(packed(cells, *geometry.solid.shape[1:])),
            "missing": device.upload(missing),
            "value": device.upload(np.concatenate([e.value for e in entries])),
            "start": device.upload(np.cumsum(links) - links),
            "staging": device.allocate(int(links.sum()), case.precision.storage),
        }

    def prepare(self, key: int, f, parity: int) -> None:
        """Bind the kernels for steps of this parity that read the array f."""
        self._launches[key] = []
        if not self.count:
            return
        for name, begin, end, values in self._ranges:
            launch = self._bind(f"{name}_{parity}", f=f, values=values, **self._arrays)
            self._launches[key].append((launch, begin, end))
        enter = self._bind(f"enter_{parity}", f=f, **self._arrays)
        self._launches[key].append((enter, 0, self.count))

    def run(self, key: int) -> None:
        """Enqueue the lists of a step, before its collide-stream kernels."""
        for launch, begin, end in self._launches[key]:
            launch(self.stream, begin, end)


def packed(cells, rows: int, nx: int):
    """Cells (plane * rows + row) * nx + x as plane << 42 | row << 21 | x: read without division."""
    planes, within = np.divmod(cells, rows * nx)
    row, x = np.divmod(within, nx)
    return planes << 42 | row << 21 | x
