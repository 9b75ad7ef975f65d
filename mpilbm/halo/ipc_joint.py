"""An exchange between GPUs of one node as a part of the kernel of a time step: one launch per step.

```
          this GPU                                      a neighbour
step t    | edge blocks  | await: planes of t - 1 <----- flag set in its step t - 1
          |              | compute, store
          |              | store again ===============> its ghost planes of step t + 1
          |              | the last one: set flag ----> awaited by its edge blocks of step t + 1
          | other blocks .............................. |
```

Only the blocks of the edge planes wait, for a flag that the neighbour sets early in its previous
step.

**No deadlock.** Blocks of step t wait only for kernels of step t - 1 of other GPUs, which do not
wait for a kernel of step t. By induction over t all kernels end, in whatever order a GPU runs the
blocks of a kernel; the blocks of edge planes come first because this is faster. This requires that
each rank has a GPU of its own, and that all ranks enqueue the same steps.

**What is overwritten.** Step t of this GPU writes ghost planes of the array that the neighbour
reads in step t + 1. It has read them last in step t - 1, because two arrays are written in turn
(Plan.alternating), in edge blocks or in earlier work of the bulk stream. It sets its flag of step
t - 1 after these reads, and each block that stores into its memory has awaited this flag. The flags
count the joint steps of all exchanges of a rank. Between a joint step and an exchange by the kernel
of ipc_kernel.py, `arrive` has awaited the last joint step, so the same holds.

**Other work** in the bulk stream after a step, such as outputs, does not use these flags. A kernel
of one thread, `arrive`, awaits them, unless the next work is the next step (see solver.passes).

**Where it is used.** If on all ranks the kernel is all work of a step (no boundary lists, no
coupled fluids), and if no slab moves more than MOST_BYTES in a step. Longer steps hide the exchange
behind their bulk planes and gain nothing; with boundary lists, steps of larger slabs became 10 %
longer. Measured on two H200 with NVLink, see "Joint steps" in the chapter "performance".
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mpilbm.backends.gpu.launch import GRID_LIMIT
from mpilbm.backends.interfaces import Launch
from mpilbm.halo.ipc_kernel import LOWER, UPPER
from mpilbm.halo.plan import Message, Plan, outgoing
from mpilbm.layouts.grid import Grid
from mpilbm.parallel.slabs import Slab

MOST_BYTES = 256e6  # that a slab reads and writes in a joint step: 60 us on an H200
FACE_WORDS = 8  # of struct Face in prelude_flags.h
Address = Callable[[Message], int]  # of a message in the neighbour's memory


class JointStep:
    """The kernel of a step that could exchange the pieces of a plan, and the table for it."""

    def __init__(self, slab: Slab, plan: Plan, launch: Launch, grid: Grid, item_bytes: int):
        self.launch, self._grid, self._item_bytes = launch, grid, item_bytes
        messages = outgoing(plan, slab)
        self._by_side = {
            side: [message for message in messages if message.upwards == (side == UPPER)]
            for side in (LOWER, UPPER)
        }
        self._alternating = plan.alternating

    @property
    def bytes_moved(self) -> int:
        """Bytes that the slab reads from one array and writes to the other in a step."""
        grid = self._grid
        return 2 * len(grid.slots) * grid.planes * grid.rows * grid.nx * self._item_bytes

    @property
    def possible(self) -> bool:
        """Whether this rank's kernel can do it and gains: all ranks join, or none does."""
        return (
            self._alternating
            and self.launch.joint is not None
            and all(self._grid.width(value) == 1 for value in range(len(self._grid.slots)))
            and 2 <= self._grid.planes <= GRID_LIMIT
            and self.bytes_moved <= MOST_BYTES
            and all(len(messages) == 1 for messages in self._by_side.values())
        )

    def table(
        self,
        address: Address,
        flags: Mapping[int, Sequence[int]],
        failure: int,
        patience: int,
    ) -> np.ndarray:
        """`struct Faces` as words.

        `flags`: by side, the addresses of the neighbour's flag, of the own one, of the numbers of
        steps and of blocks, and what is reported if the neighbour does not come.
        """
        table = np.zeros(2 + 2 * FACE_WORDS, np.uint64)
        table[:2] = patience, failure
        for k, (side, (message,)) in enumerate(self._by_side.items()):
            begin = message.elements.start
            to = address(message) - begin * self._item_bytes
            slots = (message.elements.stop - begin) // self._grid.slot_stride
            face = to % 2**64, begin, slots, *flags[side]
            table[2 + k * FACE_WORDS : 2 + (k + 1) * FACE_WORDS] = face
        return table
