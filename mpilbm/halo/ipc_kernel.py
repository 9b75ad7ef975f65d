"""The kernel by which GPUs of one node write into each other's memory: one launch per exchange.

```
          this GPU                                      a neighbour
edge      | edge kernels |ready                         | edge kernels …      |ready
exchange                 | set: my ghosts are free ---> |
                         | await: its ghosts are free <------------------------ set …
                         | write my pieces ===========> into its planes
                         | set: they have arrived ----> |
                         | await: its pieces <========= … its pieces, its flag
                         |arrived                                         |arrived
bulk      | bulk kernel ...............................................|
```

The flag 'free' is needed: a neighbour may be one step ahead, because it has received all planes
that this GPU sent in the previous step. Boundary lists, sums and outputs of this GPU may then still
read its ghost planes, in the bulk stream or between two steps. These reads have ended at `ready`,
and only the flag 'free' reports this to the neighbour. A neighbour is never more than one exchange
ahead: it waits for this GPU's next 'free' before it writes again.

If steps write two arrays in turn, the ghost planes that an exchange overwrites were last read in
the previous step. These reads ended before this GPU sent the planes of that step, for which the
neighbour has waited. It then need not wait for 'free', too (see `Plan.alternating`). The flag is
set nevertheless, for exchanges outside of time steps.

A flag is a counter of exchanges in the memory of the GPU that awaits it. The number of the exchange
is kept on the device, so that each launch is the same and can be recorded in a CUDA graph.

Every block sets 'free' and loads its first piece. Each block waits for the neighbours' flags only;
the last block to finish sets and awaits 'arrived'. No block waits for another of its own GPU, so
the blocks may run in any order. A wait ends after PATIENCE seconds: the kernel reports what is
missing to the host, and the device stops with an error. PATIENCE is long, because a rank may be
delayed without a fault. A wait also ends when the host reports that a neighbour has ended: while it
waits for the device, the host checks whether the neighbours' processes are still running.

Flags are stored with release and loaded with acquire semantics at the scope of the system; the last
block stores its flags after a fence that orders the writes of all blocks.
[PTX ISA, Memory Consistency Model]

Joint steps
-----------
An exchange between GPUs of one node as a part of the kernel of a time step: one launch per step.

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
above, `arrive` has awaited the last joint step, so the same holds.

**Other work** in the bulk stream after a step, such as outputs, does not use these flags. A kernel
of one thread, `arrive`, awaits them, unless the next work is the next step (see solver.passes).

**Where it is used.** If on all ranks the kernel is all work of a step (no boundary lists, no
coupled fluids), and if no slab moves more than MOST_BYTES in a step. Longer steps hide the exchange
behind their bulk planes and gain nothing; with boundary lists, steps of larger slabs became 10 %
longer. Measured on two H200 with NVLink, see "Joint steps" in the chapter "performance".
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mpilbm.backends.cuda import CudaDevice
from mpilbm.backends.cuda.launch import CudaStream
from mpilbm.backends.gpu.launch import GRID_LIMIT
from mpilbm.backends.interfaces import Array, Launch
from mpilbm.codegen.structure import flags
from mpilbm.halo import Message, Plan, outgoing
from mpilbm.layouts.grid import Grid
from mpilbm.parallel.slabs import Slab

PATIENCE = 3600  # seconds that a kernel waits for a neighbour's flag
# With 40 registers per thread (ptxas, sm_90), a block of 128 threads fits on a multiprocessor
# beside the float32 moment sweep, which leaves 8192 of 65536 registers.
THREADS, MOST_BLOCKS = 128, 128
THREAD_BYTES = 64  # that a thread loads at once: four packets of 16 bytes
FLAG_BYTES, LINE = 8, 16  # bytes of a flag; flags of a line of memory, one of which is used
# Lines: number of the exchange and blocks done; then by side, the flags that neighbours set.
FREE, ARRIVED, LINES = 1, 3, 5
# Lines of joint steps, by side: the flag that the neighbour sets; numbers of steps and blocks done.
JOINT_ARRIVED, JOINT_STEPS = 0, 2
LOWER, UPPER = 0, 1
MISSING = ("did not take", "did not send")  # the neighbour's flag FREE or ARRIVED was not set

TEXT = (
    f"#define INLINE static __device__ __forceinline__\n{flags()}"
    + r"""
/* Flags of the neighbour beyond a face, and those that it sets here; null: nothing is sent. */
struct Side {
  word *peer_free, *peer_arrived, *free, *arrived;
};

struct Piece {
  const char* from;
  char* to;
  word bytes;
};

/* A part of a piece: as many bytes as the threads of a block hold in registers. */
struct Part {
  ulonglong2 packets[4];
  Piece piece;
  word wide; /* packets of 16 bytes */
};

INLINE void load(Part& part, const Piece piece)
{
  part.piece = piece;
  part.wide = (((word)piece.from | (word)piece.to) & 15) == 0 ? piece.bytes / 16 : 0;
#pragma unroll
  for (int j = 0; j < 4; j++) {
    const word k = threadIdx.x + j * blockDim.x;
    if (k < part.wide) part.packets[j] = ((const ulonglong2*)piece.from)[k];
  }
}

INLINE void store(const Part& part)
{
#pragma unroll
  for (int j = 0; j < 4; j++) {
    const word k = threadIdx.x + j * blockDim.x;
    if (k < part.wide) ((ulonglong2*)part.piece.to)[k] = part.packets[j];
  }
  for (word k = 16 * part.wide + threadIdx.x; k < part.piece.bytes; k += blockDim.x)
    part.piece.to[k] = part.piece.from[k];
}

extern "C" __global__ void __launch_bounds__(128)
exchange(word* own, const Side* sides, const Piece* pieces, word count, word* failure,
         word patience, word await_free)
{
  __shared__ word gone; /* whether a neighbour has ended */
  word turn = 0;
  if (threadIdx.x == 0) {
    gone = 0;
    turn = own[0] + 1;
    for (int k = 0; k < 2; k++)
      if (sides[k].peer_free) set_flag(sides[k].peer_free, turn);
  }
  Part part; /* loaded while the neighbours' flags are awaited */
  if (blockIdx.x < count) load(part, pieces[blockIdx.x]);
  if (threadIdx.x == 0)
    for (int k = 0; k < 2 && await_free; k++)
      if (sides[k].peer_arrived && !await(sides[k].free, turn, failure, 1 + k, patience)) gone = 1;
  __syncthreads();
  if (gone) return;
  for (word k = blockIdx.x; k < count; k += gridDim.x) {
    store(part);
    if (k + gridDim.x < count) load(part, pieces[k + gridDim.x]);
  }
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x != 0 || atomicAdd(own + 1, 1ull) != gridDim.x - 1) return;
  own[0] = turn;
  own[1] = 0;
  __threadfence_system();
  for (int k = 0; k < 2; k++)
    if (sides[k].peer_arrived) set_flag(sides[k].peer_arrived, turn);
  for (int k = 0; k < 2; k++)
    if (sides[k].peer_free) await(sides[k].arrived, turn, failure, 3 + k, patience);
}

/* Waits until the planes of the last step of joint kernels have arrived. */
extern "C" __global__ void __launch_bounds__(1) arrive(const Faces* faces)
{
  for (const Face& face : faces->face)
    await(face.arrived, *face.steps, faces->failure, face.failed, faces->patience);
}
"""
)


class ExchangeKernel:
    """The compiled kernel.

    `failure`: two numbers in host memory. The kernel sets the first to 1 + 2 * (index of MISSING) +
    side after a wait of PATIENCE seconds; the host sets the second to 1 to end all waits.
    """

    def __init__(self, device: CudaDevice):
        self.device, self.failure = device, device.pinned(2, np.uint64)
        module = device.module(TEXT, ("--std=c++17",))
        self._function, self._arrive = map(module.get_function, ("exchange", "arrive"))

    def allocate_flags(self) -> Array:
        """The flags of one exchange, all 0."""
        return self.device.allocate(LINES * LINE, np.uint64)

    def bind(self, flags: Array, sides: np.ndarray, pieces: np.ndarray) -> Callable[..., None]:
        """A function of a stream, and of `await_free`, that enqueues the kernel in it.

        `sides`: addresses (2 sides, 4), see `struct Side`; `pieces`: (pieces, 3: from, to, bytes).
        """
        cut = parts(pieces)
        grid, upload = (max(1, min(MOST_BLOCKS, len(cut))),), self.device.upload
        fixed = flags, upload(sides), upload(cut), np.uint64(len(cut))

        def enqueue(stream: CudaStream, await_free: bool = True) -> None:
            numbers = map(np.uint64, (self.failure_address, self.patience, await_free))
            with stream.cupy:
                self._function(grid, (THREADS,), (*fixed, *numbers))

        return enqueue

    def arrive(self, faces: Array, stream: CudaStream) -> None:
        """Let a stream wait for the planes of the last joint step; `faces`: its table."""
        with stream.cupy:
            self._arrive((1,), (1,), (faces,))

    @property
    def patience(self) -> int:
        """Nanoseconds that a kernel waits for a flag."""
        return int(1e9 * PATIENCE)

    @property
    def failure_address(self) -> int:
        """Where kernels report what is missing."""
        return self.failure.ctypes.data

    def stop_waiting(self) -> None:
        """End the waits of kernels that run, and of all later ones."""
        self.failure[1] = 1

    @property
    def failed(self) -> tuple[int, str] | None:
        """The side of the neighbour for which a kernel waited too long, and one of MISSING."""
        if not self.failure[0]:
            return None
        missing, side = divmod(int(self.failure[0]) - 1, 2)
        return side, MISSING[missing]


def parts(pieces: np.ndarray) -> np.ndarray:
    """Pieces (from, to, bytes) cut into parts of at most the bytes that a block loads at once."""
    most = THREADS * THREAD_BYTES
    found = [np.zeros((0, 3), np.uint64)]
    for there, to, size in pieces:
        begin = np.arange(0, int(size), most, dtype=np.uint64)
        count = np.minimum(size - begin, np.uint64(most))
        found.append(np.stack([there + begin, to + begin, count], axis=1))
    return np.concatenate(found)


def flag_place(line: int, side: int) -> int:
    """Bytes from a rank's first flag to the one that the neighbour on a side sets."""
    return FLAG_BYTES * LINE * (line + side)


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
