"""Samples of rho and u of each cell, added to the sums of a slab several at a time."""

from mpilbm.backends.interfaces import Array
from mpilbm.solver.fields.diagnostics import Diagnostics
from mpilbm.solver.state import StateLaunch

MOST = 8  # samples that are kept


class KeptSamples:
    """rho and u of the last samples, until they are added to the sums of cells.

    ```
    bulk stream   | steps | keep 1 | steps | keep 2 | … | steps | keep 8 | add 1, 2, … 8 | steps …
    ```

    To read and to write the sums of a cell takes twice as many bytes as its populations in float32.
    With eight samples at a time each sample takes half as long. The samples are added in their
    order, so that their number does not change the sums. Per cell, in float32 and 3D,

        keep   76 B of populations (D3Q19), 16 B of rho and u
        add    16 B for each sample, 16 B of shifts, 160 B of sums

    At most `most` samples are kept, and always one.
    """

    def __init__(self, diagnostics: Diagnostics, sums: Array, shift: Array, most: int):
        self._context, self._shift = diagnostics.context, shift
        self._planes, self._step = diagnostics.planes, shift.size
        self._most, self._count = min(max(1, most), MOST), 0
        self._kept = self._context.device.allocate(self._most * self._step, shift.dtype)
        self._keep = StateLaunch(diagnostics.state, "keep_cells", kept=self._kept)
        self._add = StateLaunch(
            diagnostics.state, "add_kept", kept=self._kept, kept_step=self._step, sums=sums,
            shift=shift, **diagnostics.grid.arguments(),
        )  # fmt: skip

    def keep(self, first: bool) -> None:
        """Enqueue keeping the current flow; the values of the first sample are the shift."""
        self._keep(0, self._planes, kept_first=self._count * self._step)
        if first:
            values = self._kept[: self._step]
            self._context.device.copy(self._shift, values, self._context.bulk)
        self._count += 1
        if self._count == self._most:
            self.settle()

    def settle(self) -> None:
        """Enqueue adding all samples that are kept."""
        if self._count:
            self._add(0, self._planes, samples=self._count)
            self._count = 0
