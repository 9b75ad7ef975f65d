"""Devices that hold the arrays of a rank and run its kernels; one kernel text for all.

A `Backend` is the table `[backend]` of a case; its `open` makes the `Device`. A device has streams,
"edge" (with priority if the device has priorities), "bulk" and "copy", whose work runs in the order
of enqueueing:

    kernels = device.compile(program)
    launch = kernels["collide_stream"].bind(f_in=f, f_out=g, nx=64, rows=64)
    launch(device.stream("edge"), 1, 2)
    done = device.stream("edge").record()
    device.stream("bulk").wait(done)
    launch.set(shift=2)  # another number for later calls

Imports codegen, solids and lower layers. To add a kind of device, add a module or folder of its
name with a Backend; `gpu` has what GPUs share.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from mpilbm.backends.interfaces import Array, CompiledKernel, Stream, TwoStepsKernel
from mpilbm.codegen.program import Program
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import Parameters
from mpilbm.layouts.grid import Grid
from mpilbm.solids.body_walls import BodyWalls
from mpilbm.solids.box_walls import BoxWalls


class Backend(Parameters):
    """Parameters of a device; `name` is its kind."""

    if TYPE_CHECKING:

        @property
        def name(self) -> str:
            """Added by `register`."""

    def resolve(self) -> "Backend":
        """The backend that `auto` selects on this machine; other backends return themselves."""
        return self

    def device_kind(self) -> str:
        """The kind of the device that `open` would return; opens no device."""
        return self.name

    def sweeps(self) -> bool:
        """Whether `Device.sweeps` of the device that `open` would return; opens no device."""
        return False

    def room(self) -> int | None:
        """The most bytes of memory that a rank on this machine can have, None if unknown; opens no
        device.
        """
        return None

    def largest_array(self) -> int | None:
        """The bytes of an array the driver guarantees, None without limit; opens no device."""
        return None

    def workers(self) -> int:
        """The number of threads that share the planes of a rank."""
        return 1

    def open(self, local_rank: int = 0, local_ranks: int = 1) -> "Device":
        """The device of this rank, one of `local_ranks` on its machine; raises CaseError."""
        raise NotImplementedError


class Device:
    """The interface of all devices; `Backend.open` returns one.

    identity   the same string for two ranks that share one accelerator; empty on a CPU
    index      number among the accelerators visible to this process; None on a CPU
    sharing    number of ranks of this machine that allocate from the same memory
    share      bytes that were free for each of them when `divide` was called; None for one rank
    records    whether `recording` is implemented
    unified    whether the host can access arrays of the device
    no_ipc     why the devices of two ranks cannot exchange by `cuda_ipc`; empty if they can
    copied_bytes  of a copy that measures the bandwidth, more than all caches hold
    copied_share  such a copy takes at most 1 / copied_share of the free memory of a rank
    prioritizes  whether kernels of the stream "edge" run before those of "bulk" that wait, too
    opaque     whether its arrays have no address: MPI and the functions of NumPy cannot use them
    sweeps     whether it has the special kernel of layouts with `sweep`, and its bits are not those
               of a CPU in any layout, because it fuses multiplications and additions
    warning    what users need to know about this device: slower than it could be, or other bits
    """

    kind: str
    name: str
    description: str
    compiler: str
    identity: str = ""
    index: int | None = None
    sharing: int = 1
    share: int | None = None
    records: bool = False
    unified: bool = False
    no_ipc: str = ""
    copied_bytes: int = 2**31
    copied_share: int = 4
    prioritizes: bool = True
    opaque: bool = False
    sweeps: bool = False
    warning: str = ""
    _streams: Mapping[str, Stream]

    @property
    def kernel_options(self) -> tuple[str, ...]:
        """The options of the compiler of a GPU; with the text they determine the kernels."""
        return ()

    def memory(self) -> tuple[int, int]:
        """Free bytes and bytes in total."""
        raise NotImplementedError

    def stream(self, priority: str) -> Stream:
        """The stream of this name: "edge" (high priority), "bulk" or "copy"."""
        return self._streams[priority]

    def new_stream(self) -> Stream:
        """A stream that `synchronize` does not wait for."""
        raise NotImplementedError

    def synchronize(self) -> None:
        """Wait until all work in the three streams is done."""
        for stream in self._streams.values():
            stream.synchronize()

    def allocate(self, count: int, dtype: DTypeLike) -> Array:
        """A 1-D array of zeros on the device."""
        raise NotImplementedError

    def pinned(self, count: int, dtype: DTypeLike) -> np.ndarray:
        """A 1-D array of zeros in host memory, for asynchronous copies from and to the device."""
        raise NotImplementedError

    def upload(self, array: np.ndarray) -> Array:
        """A 1-D copy of an array on the device."""
        raise NotImplementedError

    def download(self, array: Array) -> np.ndarray:
        """Wait for all enqueued work, then copy an array or slice to the host."""
        raise NotImplementedError

    def copy(self, target: Array, source: Array, stream: Any = None) -> None:
        """Copy a slice in the order of a stream, by default of the bulk stream."""
        raise NotImplementedError

    def submit(self, work: Callable[[], object], stream: Any) -> None:
        """Compute with arrays of the device in the order of a stream: `work()` does so.

        Not for `opaque` devices.
        """
        raise NotImplementedError

    def compile(self, program: Program, roles: Collection[str] = ()) -> dict[str, CompiledKernel]:
        """The kernels of a program by name; raises MpilbmError if they do not compile.

        A device may compile optional kernels with other roles only when they are first used.
        """
        raise NotImplementedError

    def copy_bandwidth(
        self, before: Callable[[], object] = lambda: None, most: int | None = None
    ) -> float:
        """Bytes read and written per second by a copy within the device's memory.

        `before` is called before each copy: a barrier makes all ranks copy at the same time.
        `most`: bytes of a copy instead of `copied_bytes`, for a faster and less exact measurement.
        """
        room = self.memory()[0] // self.sharing // self.copied_share
        count = min(most or self.copied_bytes, room)
        source, target = self.allocate(count, np.uint8), self.allocate(count, np.uint8)
        self.copy(source, target)  # maps the pages of main memory
        bulk, times = self.stream("bulk"), []
        for _ in range(6):
            before()
            start = bulk.record(timed=True)
            self.copy(target, source)
            times.append(bulk.record(timed=True).seconds_since(start))
        return 2 * count / min(times)

    def divide(self, users: int) -> None:
        """Divide the free memory among `users` ranks; call it before any of them allocates."""
        self.sharing = users
        self.share = self.memory()[0] // users if users > 1 else None

    def attach(self) -> None:
        """Make it the current device of the calling thread, where the kind has a current device."""

    def watch(self, check: Callable[[], None] | None = None) -> None:
        """Call `check`, which may raise, at intervals while the host waits for a GPU."""

    def problems(self, shape: tuple[int, int, int]) -> list[str]:
        """Reasons why this device cannot compute a box of (planes, rows, nx); empty if it can."""
        return []

    def apply_walls(
        self,
        kernels: Mapping[str, CompiledKernel],
        walls: BoxWalls,
        bodies: BodyWalls,
        grid: Grid,
    ) -> bool:
        """Whether the collide-stream kernel applies these half-way walls from now on.

        If it applies those of bodies, `clear_solids` must follow each time when the state is set.
        """
        return False

    def clear_solids(self, kernels: Mapping[str, CompiledKernel], f: Array) -> None:
        """Enqueue the values that the collide-stream kernel expects in solid cells of an array."""

    def two_steps(
        self,
        kernels: Mapping[str, CompiledKernel],
        grid: Grid,
        columns: tuple[int, int] | None = None,
    ) -> TwoStepsKernel | None:
        """A kernel for two steps, without boundary lists; None: there is none.

        It takes the arguments of `collide_stream_0`, applies the same walls, and has the bits of
        two of its launches. It updates the cells with begin <= x < end only; `columns`: (begin,
        end), by default all.
        """
        return None

    def sweep_of(
        self,
        kernels: Mapping[str, CompiledKernel],
        walls: BoxWalls,
        bodies: BodyWalls,
        grid: Grid,
    ) -> CompiledKernel | None:
        """The kernel of single steps, with its bits, for another box; None: there is none.

        It takes the arguments of `collide_stream_0`, and applies these walls.
        """
        return None

    def recording(self, work: Callable[[], None]) -> Callable[[], None]:
        """Record what `work()` enqueues without running it; return a function that enqueues it."""
        raise NotImplementedError

    def require(self, count: int, what: str, first: bool = False) -> None:
        """Raise CaseError unless `count` bytes for `what` fit; call it before allocating.

        `first`: this rank has allocated nothing yet. Other ranks on the same device may have, so
        the limit is `share` instead of a part of the memory that is free now.
        """
        free, total = self.memory()
        limit = free // self.sharing
        if first and self.share is not None:
            limit = min(free, self.share)
        if count > limit:
            shared = f", shared by {self.sharing} ranks" if self.sharing > 1 else ""
            raise CaseError(
                f"{what} needs {gibibytes(count)}, but {self.name} has {gibibytes(free)} of "
                f"{gibibytes(total)} free{shared}; choose a smaller domain.size, the in-place "
                'layout "aa", or more ranks on more machines or devices',
                where="domain.size",
            )


def gibibytes(count: int) -> str:
    """A number of bytes as text."""
    return f"{count / 2**30:.3g} GiB" if count >= 2**26 else f"{count / 2**20:.3g} MiB"


def require_alike(chosen: Sequence[str]) -> None:
    """CaseError unless all ranks chose the same kind; `chosen` in the order of ranks."""
    if len(set(chosen)) > 1:
        found = "; ".join(
            f"{kind} on {_ranks([rank for rank, name in enumerate(chosen) if name == kind])}"
            for kind in sorted(set(chosen))
        )
        raise CaseError(
            f'the ranks did not choose one kind of device: {found}; set name = "cpu", or start '
            "ranks only where there is a GPU",
            where="backend.name",
        )


def users(identities: Sequence[str], rank: int) -> int:
    """How many ranks use the accelerator of this rank; 0 on a CPU, which has no identity.

    Not the number of visible devices: a launcher may make one visible to each rank.
    """
    return identities.count(identities[rank]) if identities[rank] else 0


def shared_devices(identities: Sequence[str]) -> list[str]:
    """A warning for each device that several ranks use; `identities` in the order of ranks."""
    users: dict[str, list[int]] = {}
    for rank, identity in enumerate(identities):
        users.setdefault(identity, []).append(rank)
    return [
        f"{_ranks(ranks)} share one device ({identity}) and slow each other down; "
        "start one rank per device"
        for identity, ranks in users.items()
        if identity and len(ranks) > 1
    ]


def _ranks(ranks: list[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    shown = ", ".join(map(str, ranks[:8])) + (", …" if len(ranks) > 8 else "")
    return f"ranks {shown}"


def check_copy(target: Any, source: Any) -> None:
    """Raise TypeError unless two arrays are contiguous and of the same length and format."""
    for array in (target, source):
        if not array.flags.c_contiguous:
            raise TypeError("copy: the arrays must be contiguous")
    if target.dtype != source.dtype or target.size != source.size:
        raise TypeError(
            f"copy: {source.size} of {source.dtype} into {target.size} of {target.dtype}"
        )
