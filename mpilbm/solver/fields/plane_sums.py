"""Sums over each plane of a slab, computed by the device behind the steps."""

from collections.abc import Iterable

import numpy as np

from mpilbm.solver.fields.host_copies import HostCopies, HostCopy
from mpilbm.solver.state import FlowState


class PlaneSums:
    """Sums over the rows of each plane, in their order, of the sums that a kernel computes of rows.

    In double precision. A plane belongs to one slab, so the sums of a plane do not depend on the
    number of ranks. `largest`: the columns that are maxima. `arguments`: the array of the kernel's
    sums, (planes, rows, columns).
    """

    def __init__(self, state: FlowState, columns: int, largest: Iterable[int] = ()):
        device, slab = state.context.device, state.context.slab
        self._bulk, self._shape = state.context.bulk, (slab.planes, columns)
        count, rows = slab.planes * columns, slab.shape[1]
        row_sums = device.allocate(count * rows, "float64")
        self.arguments = {"sums": row_sums}
        self._sums, self._copies = device.allocate(count, "float64"), HostCopies(device, count)
        maxima = device.upload(np.isin(np.arange(columns), list(largest)).astype(np.int32))
        self._add = state.context.bind(
            "plane_sums", row_sums=row_sums, sum=self._sums, rows=rows, columns=columns,
            maxima=maxima,
        )  # fmt: skip

    def start(self) -> HostCopy:
        """Enqueue the sums over the rows, and their copy to the host."""
        self._add(self._bulk, 0, self._shape[0])
        return self._copies.start(self._sums)

    def shaped(self, copy: HostCopy) -> np.ndarray:
        """The sums on the host, (planes, columns)."""
        return copy.read().reshape(self._shape)
