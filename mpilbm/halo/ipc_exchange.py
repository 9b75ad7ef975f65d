"""GPUs of one node write into each other's memory by a kernel of their own: one launch an exchange.

```
          this GPU                                      a neighbour
edge      | edge kernels |ready                         | edge kernels …      |ready
exchange                 | tell: mine are free -------> |
                         | await: its are free <------------------------------ tell …
                         | write my pieces ===========> into its planes
                         | tell: they are there ------> |
                         | await: its are here <=====> … its pieces, its word
                         |arrived                                         |arrived
bulk      | bulk kernel ...............................................|
```

The word 'mine are free' is needed: a neighbour that is ahead by a step has received what this GPU
sent in the step before, so this GPU's edge was computed; but lists, sums and outputs may still read
the planes that come in, in the bulk stream or between two steps. All that is over at `ready`, of
which nothing but this word tells the neighbour. A neighbour's word and planes are never more than
one exchange ahead: the next ones come after this GPU's next 'mine are free'.

A word is a counter in the memory of whom it is told, and counts exchanges; the number of the
exchange is kept on the device, so that a launch is the same each time and may be recorded in a CUDA
graph; the first start() of any exchange connects all that are prepared, before that.

All blocks tell that the planes are free and load what they write first; each awaits the neighbours'
word alone, and the last that is done tells and awaits the rest: no block waits for another of its
own GPU, in whatever order they come to run. A wait ends after PATIENCE seconds: the host gets to
know what is missing, and the device stops with an error. PATIENCE is long, because a rank may be
delayed without being in trouble. A wait also ends once the host reports that a neighbour is gone:
while it waits for the device, the host looks whether the neighbours' processes are still running.

Words are stored with release and loaded with acquire semantics at the scope of the system, the
last block's behind a fence that counts for all others. [PTX ISA, Memory Consistency Model]
"""

from functools import partial

import numpy as np

from mpilbm.errors import MpilbmError
from mpilbm.halo import Exchange, Exchanger
from mpilbm.halo.neighbours import Neighbours
from mpilbm.halo.plan import Plan, incoming, outgoing
from mpilbm.parallel.agree import together

PATIENCE = 3600  # seconds that a kernel waits for a neighbour's word before it gives up
THREADS, MOST_BLOCKS = 256, 64
THREAD_BYTES = 64  # that a thread holds at once: four packets of 16 bytes
WORD, LINE = 8, 16  # bytes of a word; words of a line of memory, one for each flag
# Lines: number of the exchange and blocks done; by side, what neighbours tell of planes.
FREE, HERE, LINES = 1, 3, 5
LOWER, UPPER = 0, 1

TEXT = r"""
typedef unsigned long long word;
#define INLINE static __device__ __forceinline__

/* All inline PTX; without a GPU tests/emulation/cuda_emulation.h has it in C++. */
#ifndef EMULATED
INLINE void tell(word* flag, word value)
{
  asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(flag), "l"(value) : "memory");
}
INLINE word told(const word* flag)
{
  word value;
  asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(flag) : "memory");
  return value;
}
INLINE word nanoseconds()
{
  word now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
INLINE void give_up() { asm volatile("trap;"); }
#endif

/* What this GPU and the neighbour beyond a face tell each other; null where nothing travels. */
struct Side {
  word *tell_free, *tell_here, *free, *here;
};

struct Piece {
  const char* from;
  char* to;
  word bytes;
};

/* Waits for a word; false if the host has set failure[1], which is in its memory: look rarely. */
INLINE bool await(const word* flag, word turn, word* failure, word what, word patience)
{
  const word begin = nanoseconds();
  word looked = begin;
  while (told(flag) < turn) {
    const word now = nanoseconds();
    if (now - looked > 1000000) {
      if (told(failure + 1)) return false;
      looked = now;
    }
    if (now - begin > patience) {
      tell(failure, what);
      __threadfence_system();
      give_up();
    }
  }
  return true;
}

/* A part of a piece is as much as the threads of a block hold at once. */
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

extern "C" __global__ void __launch_bounds__(256)
exchange(word* own, const Side* sides, const Piece* pieces, word count, word* failure,
         word patience)
{
  __shared__ word gone; /* whether the neighbours are waited for in vain */
  word turn = 0;
  if (threadIdx.x == 0) {
    gone = 0;
    turn = own[0] + 1;
    for (int k = 0; k < 2; k++)
      if (sides[k].tell_free) tell(sides[k].tell_free, turn);
  }
  Part part; /* under way while the word of the neighbours is awaited */
  if (blockIdx.x < count) load(part, pieces[blockIdx.x]);
  if (threadIdx.x == 0)
    for (int k = 0; k < 2; k++)
      if (sides[k].tell_here && !await(sides[k].free, turn, failure, 1 + k, patience)) gone = 1;
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
    if (sides[k].tell_here) tell(sides[k].tell_here, turn);
  for (int k = 0; k < 2; k++)
    if (sides[k].tell_free) await(sides[k].here, turn, failure, 3 + k, patience);
}
"""


class IpcExchange(Exchange):
    """The pieces of a plan, written by a kernel in the edge stream."""

    in_streams = True

    def __init__(self, exchanger: "IpcExchanger", plan: Plan, arrays):
        self._exchanger, self._plan, self._arrays = exchanger, plan, arrays
        self._stream = exchanger.device.stream("edge")
        self._own = exchanger.device.allocate(LINES * LINE, np.uint64)
        self.launch = None  # known once the neighbours' memory is

    def start(self, ready=None) -> None:
        """Enqueue the kernel; before the first time collective, and the host waits."""
        if self.launch is None:
            self._exchanger.connect()
        if ready is not None:
            self._stream.wait(ready)
        self.launch()

    def arrival(self):
        """Behind the kernel."""
        return self._stream.record()

    def connect(self, shown: list[dict]) -> None:
        """Find the neighbours' planes in what all ranks show."""
        sides, pieces = self.found(shown)
        pieces = parts(pieces)
        upload = self._exchanger.device.upload
        blocks = max(1, min(MOST_BLOCKS, len(pieces)))
        tables = upload(sides), upload(pieces), np.uint64(len(pieces))
        self.launch = partial(self._enqueue, (blocks,), *tables)

    def shown(self) -> dict:
        """The words and the arrays that neighbours write, and where in these their pieces go."""
        messages, show = incoming(self._plan, self._exchanger.slab), self._exchanger.windows.show
        arrays = {number: show(self._arrays[number]) for number in {m.array for m in messages}}
        places = {}
        for message in messages:
            size = self._arrays[message.array].itemsize
            begin, end = (size * k for k in (message.elements.start, message.elements.stop))
            places[message.peer, message.tag] = message.array, begin, end - begin
        return {"words": show(self._own), "arrays": arrays, "places": places}

    def found(self, shown: list[dict]) -> tuple[np.ndarray, np.ndarray]:
        """The kernel's tables: addresses (2 sides, 4), and (pieces, 3: from, to, bytes)."""
        slab, windows = self._exchanger.slab, self._exchanger.windows
        goes, comes = outgoing(self._plan, slab), incoming(self._plan, slab)
        sides, own = np.zeros((2, 4), np.uint64), windows.address(self._own)
        for side, peer in ((LOWER, slab.lower), (UPPER, slab.upper)):
            theirs = 0 if peer is None else windows.look(peer, shown[peer]["words"])
            sides[side, 2:] = [own + _word(flag, side) for flag in (FREE, HERE)]
            if any(_side(m, +1) == side for m in comes):
                sides[side, 0] = theirs + _word(FREE, 1 - side)
            if any(_side(m, -1) == side for m in goes):
                sides[side, 1] = theirs + _word(HERE, 1 - side)
        pieces = np.zeros((len(goes), 3), np.uint64)
        for row, message in zip(pieces, goes, strict=True):
            there, piece = shown[message.peer], message.of(self._arrays)
            array, begin, count = there["places"][slab.rank, message.tag]
            if count != piece.nbytes:
                raise RuntimeError(f"{piece.nbytes} bytes for a place of {count}: plans differ")
            to = windows.look(message.peer, there["arrays"][array]) + begin
            row[:] = windows.address(piece), to, count
        return sides, pieces

    def _enqueue(self, grid, sides, pieces, count) -> None:
        failure = np.uint64(self._exchanger.failure.ctypes.data)
        patience = np.uint64(1e9 * PATIENCE)
        with self._stream.cupy:
            self._exchanger.kernel(
                grid, (THREADS,), (self._own, sides, pieces, count, failure, patience)
            )


def parts(pieces: np.ndarray) -> np.ndarray:
    """Pieces (from, to, bytes) cut into what the threads of a block hold at once."""
    most = THREADS * THREAD_BYTES
    found = [np.zeros((0, 3), np.uint64)]
    for there, to, size in pieces:
        begin = np.arange(0, size, most, np.uint64)
        count = np.minimum(size - begin, np.uint64(most))
        found.append(np.stack([there + begin, to + begin, count], axis=1))
    return np.concatenate(found)


def _side(message, sign: int) -> int:
    """The face through which a message comes (+1) or goes (-1); odd tags travel upwards."""
    upwards = message.tag % 2
    return 1 - upwards if sign > 0 else upwards


def _word(line: int, side: int) -> int:
    """Bytes from the first of a rank's words to that which the neighbour on a side tells."""
    return WORD * LINE * (line + side)


class IpcExchanger(Exchanger):
    """Exchanges between GPUs of one node.

    `failure`: what a kernel missed in vain, and whether kernels shall not wait any longer.
    """

    def __init__(self, slab, comm, device, windows, kind=IpcExchange):
        super().__init__(partial(kind, self))
        self.slab, self.comm, self.device, self.windows = slab, comm, device, windows
        self.failure = device.pinned(2, np.uint64)
        self.neighbours = None  # watched from connect() on: no kernel waits before
        self.kernel = device.module(TEXT, ("--std=c++17",)).get_function("exchange")

    def check(self) -> None:
        """MpilbmError if a neighbour's process has ended; no kernel waits for it any longer."""
        try:
            self.neighbours.check()
        except MpilbmError:
            self.failure[1] = 1
            raise

    def connect(self) -> None:
        """Connect all exchanges that are prepared, the same on all ranks; collective."""
        self.neighbours = Neighbours(self.slab, self.comm)
        self.device.watch(self.check)
        new = [each for each in self._exchanges if each.launch is None]
        shown = self.comm.allgather(together(self.comm, lambda: [each.shown() for each in new]))
        together(self.comm, self._connect, new, zip(*shown, strict=True))

    def _connect(self, exchanges, shown) -> None:
        for each, of_all_ranks in zip(exchanges, shown, strict=True):
            each.connect(of_all_ranks)

    def __exit__(self, kind, *error):
        if kind is None:  # nobody frees what a neighbour may still write to, or has open
            self.device.synchronize()
            self.comm.Barrier()
            self.windows.close()
            self.comm.Barrier()
        else:
            self.failure[1] = 1
        self.device.watch(None)
        super().__exit__(kind, *error)
        if kind is not None and self.failure[0]:
            raise MpilbmError(self._silent(int(self.failure[0]) - 1)) from error[0]

    def _silent(self, what: int) -> str:
        side, missing = what % 2, ("did not take", "did not send")[what // 2]
        peer = self.slab.upper if side == UPPER else self.slab.lower
        return (
            f"rank {self.slab.rank}: the GPU of rank {peer} {missing} planes for {PATIENCE} s; "
            "see what that rank says, and nvidia-smi of its GPU"
        )
