"""Sums over each plane of a slab, computed by the device behind the steps."""

from collections.abc import Iterable

import numpy as np

from mpilbm.backends.interfaces import Array, Launch
from mpilbm.layouts.grid import Grid
from mpilbm.solver.fields.host_copies import HostCopies, HostCopy
from mpilbm.solver.state import FlowState


class PlaneSums:
    """The sums of a kernel over rows, added over the rows of each plane in their order.

    In double precision. A plane belongs to one slab, so the sums of a plane do not depend on the
    number of ranks. `grid` and `arrays`: the memory of the velocity that the kernel reads or
    writes, and these arrays; `largest`: the columns that are maxima.
    """

    def __init__(
        self, state: FlowState, grid: Grid, name: str, columns: int, largest: Iterable[int] = (),
        **arrays: Array,
    ):  # fmt: skip
        self.state, self.name, self.columns, self.planes = state, name, columns, grid.planes
        device, count = state.context.device, self.planes * columns
        row_sums = device.allocate(count * grid.rows, "float64")
        self.sums, self.copies = device.allocate(count, "float64"), HostCopies(device, count)
        self._arguments = {"sums": row_sums, **arrays, **grid.arguments()}
        self._launches: dict[int, Launch] = {}  # by the step within a period
        self._add = state.context.bind(
            "plane_sums", row_sums=row_sums, sum=self.sums, rows=grid.rows, columns=columns,
            maxima=sum(1 << column for column in largest),
        )  # fmt: skip

    def start(self) -> HostCopy:
        """Enqueue the kernels, and the copy of the sums to the host."""
        context = self.state.context
        k = context.clock.steps % self.state.period
        if k not in self._launches or context.forces.timed:
            self._launches[k] = self.state.launch(self.name, 0, **self._arguments)
        context.over_planes(self._launches[k], 0, self.planes)
        self._add(context.bulk, 0, self.sums.size)
        return self.copies.start(self.sums)

    def shaped(self, copy: HostCopy) -> np.ndarray:
        """The sums on the host, (planes, columns)."""
        return copy.read().reshape(self.planes, self.columns)
