"""Devices that hold the arrays of a rank and run its kernels: one text, two compilers.

A `Backend` is the table `[backend]` of a case; its `open` makes the `Device`. A device has streams,
"edge" (high priority), "bulk" and "copy", whose work runs in the order it was enqueued:

    kernels = device.compile(program)
    launch = kernels["collide_stream"].bind(f_in=f, f_out=g, nx=64, rows=64)
    launch(device.stream("edge"), 1, 2)
    done = device.stream("edge").record()
    device.stream("bulk").wait(done)
    launch.set(shift=2)  # another number in the calls to come
"""

from typing import NamedTuple

import numpy as np

from mpilbm.codegen.program import Kernel, Program
from mpilbm.errors import CaseError
from mpilbm.registry import Parameters

NUMBERS = {"int": "int32", "float": "float32", "double": "float64"}


class Backend(Parameters):
    """Parameters of a device; `name` tells the kind."""

    def resolve(self) -> "Backend":
        """The backend that `auto` stands for on this machine; the others stand for themselves."""
        return self

    def room(self) -> int | None:
        """Bytes that a rank on this machine has at most, nothing opened; None: not known here."""
        return None

    def open(self, local_rank: int = 0, local_ranks: int = 1) -> "Device":
        """The device of this rank, one of `local_ranks` on its machine; raises CaseError."""
        raise NotImplementedError


class Resources(NamedTuple):
    """What a kernel takes of a GPU; zeros on a CPU."""

    registers: int = 0
    local_bytes: int = 0
    shared_bytes: int = 0


class Device:
    """What every device can do; `Backend.open` makes one.

    `identity` is the same string for two ranks that share one accelerator, and empty on a CPU;
    `index` is its number among those that this process sees, None on a CPU;
    `sharing` is how many ranks of this machine take their memory from the same place, `share` the
    bytes that were free for each of them when `divide` was called, None for one rank;
    `records` is whether it keeps `recording`s.
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

    def memory(self) -> tuple[int, int]:
        """Bytes free and bytes in all."""
        raise NotImplementedError

    def divide(self, users: int) -> None:
        """Divide the free memory between `users` ranks; call before any of them allocates."""
        self.sharing = users
        self.share = self.memory()[0] // users if users > 1 else None

    def attach(self) -> None:
        """Make it the current device of this thread, where there is such a thing."""

    def watch(self, check=None) -> None:
        """While the host waits for a GPU, call `check`, which may raise, now and then."""

    def problems(self, shape: tuple[int, int, int]) -> list[str]:
        """Why this device cannot run kernels over a box of (planes, rows, nx); empty if it can."""
        return []

    def apply_walls(self, kernels: dict, walls, grid) -> bool:
        """Whether the bulk kernel applies these half-way walls (`BoxWalls`) from now on."""
        return False

    def recording(self, work):
        """What enqueues, call by call, all that `work()` enqueues; nothing runs now."""
        raise NotImplementedError

    def require(self, count: int, what: str, first: bool = False) -> None:
        """Raise CaseError unless `count` bytes for `what` fit; call it before allocating.

        `first`: this rank has allocated nothing yet. Other ranks on the same device may have, so
        that what is free now is no longer divided between all of them.
        """
        free, total = self.memory()
        divided = first and self.share is not None
        most = min(free, self.share) if divided else free // self.sharing
        if count > most:
            shared = f", shared by {self.sharing} ranks" if self.sharing > 1 else ""
            raise CaseError(
                f"{what} needs {gibibytes(count)}, but {self.name} has {gibibytes(free)} of "
                f"{gibibytes(total)} free{shared}; choose a smaller domain.size, the in-place "
                'layout "aa", or more ranks on more machines or devices',
                where="domain.size",
            )


def gibibytes(count: int) -> str:
    """A number of bytes as words."""
    return f"{count / 2**30:.3g} GiB" if count >= 2**26 else f"{count / 2**20:.3g} MiB"


def agreed(comm, backend: Backend) -> Backend:
    """The resolved backend of this rank, if all ranks of `comm` chose the same kind.

    Collective. Raises CaseError on all ranks alike, naming which rank chose what.
    """
    chosen = comm.bcast(comm.gather(backend.name))
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
    return backend


def users(identities: list[str], rank: int) -> int:
    """How many ranks use the accelerator of this rank; 0 on a CPU, which has no identity.

    The number of visible devices says nothing of it: a launcher may show each rank one device.
    """
    return identities.count(identities[rank]) if identities[rank] else 0


def shared_devices(identities: list[str]) -> list[str]:
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


def dtype_of(kind: str, program: Program) -> np.dtype:
    """The number format behind the type of a kernel's argument, pointer or not."""
    base = kind.removesuffix("*")
    formats = {"real": program.compute, "store": program.storage, **NUMBERS}
    return np.dtype(formats.get(base, base))


def checked(kernel: Kernel, program: Program, given: dict) -> list:
    """The values of a kernel's arguments in its order: 1-D arrays, and NumPy scalars.

    Raises TypeError where a name is missing or unknown, or a value is not of the argument's type:
    a pointer to the wrong format would be read as garbage without a word.
    """
    expected = [argument.name for argument in kernel.arguments]
    if set(expected) != set(given):
        missing, unknown = set(expected) - set(given), set(given) - set(expected)
        raise TypeError(
            f"kernel {kernel.name}: missing {sorted(missing)}, unknown {sorted(unknown)}"
        )
    return [
        _checked_value(
            f"kernel {kernel.name}, argument {argument.name} ({argument.type})",
            argument.type.endswith("*"),
            dtype_of(argument.type, program),
            given[argument.name],
        )
        for argument in kernel.arguments
    ]


def _checked_value(where: str, pointer: bool, dtype: np.dtype, value):
    if pointer:
        found = getattr(value, "dtype", type(value).__name__)
        if found != dtype:
            raise TypeError(f"{where}: found {found}, allowed an array of {dtype}")
        if not value.flags.c_contiguous:
            raise TypeError(f"{where}: the array is not contiguous")
        return value
    if dtype.kind == "i" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        raise TypeError(f"{where}: {value} does not fit {dtype}")
    scalar = dtype.type(value)
    if dtype.kind == "i" and scalar != value:
        raise TypeError(f"{where}: {value} is not a whole number")
    return scalar


def changed(kernel: Kernel, values: list, numbers: dict) -> list:
    """The values of `checked` with other numbers."""
    places = {argument.name: k for k, argument in enumerate(kernel.arguments)}
    values = list(values)
    for name, number in numbers.items():
        values[places[name]] = values[places[name]].dtype.type(number)
    return values


def check_copy(target, source) -> None:
    """Raise TypeError unless two arrays are contiguous, of one length and one format."""
    for array in (target, source):
        if not array.flags.c_contiguous:
            raise TypeError("copy: the arrays must be contiguous")
    if target.dtype != source.dtype or target.size != source.size:
        raise TypeError(
            f"copy: {source.size} of {source.dtype} into {target.size} of {target.dtype}"
        )
