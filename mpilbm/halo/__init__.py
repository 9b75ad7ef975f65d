"""Halo exchange: how edge planes travel to the ghost layers of the neighbouring ranks.

Imports backends, layouts, parallel and lower layers; MPI only where ranks exchange. Add another way
here: a module with a Halo, an Exchange and, where it needs one, an Exchanger.

A piece is the contiguous slice `array[start : start + count]`: the populations that leave a slab
through a face are adjacent in a plane. Neighbour +1 is the slab above, -1 the slab below.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, ParamSpec, TypeVar

from mpilbm.backends import Device
from mpilbm.backends.interfaces import Event, Launch, Runner, Stream
from mpilbm.core.registry import Parameters
from mpilbm.layouts.grid import Grid
from mpilbm.parallel import Communicator
from mpilbm.parallel.slabs import Slab

# Elements of at most 8 bytes: a message stays below the 2^31 bytes that an `int` of MPI 3 counts.
LARGEST_MESSAGE = 2**27
# MPI guarantees tags up to 32767; messages of the file writers use tags below FIRST_TAG.
FIRST_TAG = 16384


@dataclass(frozen=True)
class Transfer:
    """One contiguous piece of array number `array`, sent to or received from a neighbour."""

    neighbour: int
    array: int
    start: int
    count: int


@dataclass(frozen=True)
class Plan:
    """The pieces that one rank sends and receives in one exchange.

    The k-th send towards +1 is the k-th receive from -1 of the upper neighbour, and the k-th send
    towards -1 is the k-th receive from +1 of the lower one.

    alternating  successive passes exchange two arrays in turn, and only the kernels over the edge
                 planes of a pass and earlier work in the bulk stream access the ghost planes of the
                 array that the pass reads. So these accesses have ended when the neighbour receives
                 the planes of that pass, one pass before it writes to these ghost planes again
    """

    sends: tuple[Transfer, ...]
    receives: tuple[Transfer, ...]
    alternating: bool = False

    def joined(self, other: "Plan") -> "Plan":
        """The pieces of both plans in one exchange."""
        return Plan(self.sends + other.sends, self.receives + other.receives)


@dataclass(frozen=True)
class Message:
    """A piece as a message: the other rank, the tag that both use, the elements of the array."""

    peer: int
    tag: int
    array: int
    elements: slice

    @property
    def upwards(self) -> bool:
        """Whether it travels towards the upper neighbour."""
        return self.tag % 2 == 1

    def of(self, arrays: Sequence[Any]) -> Any:
        """The piece, a view of device memory."""
        return arrays[self.array][self.elements]


def outgoing(plan: Plan, slab: Slab) -> tuple[Message, ...]:
    """The messages that this rank sends; none to a neighbour that does not exist."""
    return tuple(_messages(plan.sends, slab, 1))


def incoming(plan: Plan, slab: Slab) -> tuple[Message, ...]:
    """The messages that this rank receives, with their senders' tags."""
    return tuple(_messages(plan.receives, slab, -1))


def _messages(transfers: Iterable[Transfer], slab: Slab, sign: int) -> Iterator[Message]:
    """Number the transfers of each direction of travel: tag = first + 2 number + (upwards).

    The tag includes the direction because two ranks of a periodic box are each other's neighbours
    on both sides.
    """
    peers = {1: slab.upper, -1: slab.lower}
    numbers = {1: 0, -1: 0}
    for transfer in transfers:
        travel = sign * transfer.neighbour
        end = transfer.start + transfer.count
        for start in range(transfer.start, end, LARGEST_MESSAGE):
            tag = FIRST_TAG + 2 * numbers[travel] + (travel > 0)
            numbers[travel] += 1
            if (peer := peers[transfer.neighbour]) is not None:
                elements = slice(start, min(start + LARGEST_MESSAGE, end))
                yield Message(peer, tag, transfer.array, elements)


P = ParamSpec("P")
T = TypeVar("T")


class Exchange:
    """One plan for one set of arrays: prepared once, run at every step.

    ```
    edge stream  | edge kernels |ready                     arrived| next edge kernels …
    host                        | start()          arrival() |
    messages                    |====== planes travel ======------|
    bulk stream  | bulk kernel ................................|  | next lists, bulk kernel …
    ```

    Between `ready` and `arrived` no kernel writes the planes that are sent or accesses the ghost
    planes that are received. Each kind of exchange decides who waits for these two events: the
    host, where it calls MPI, or streams alone; then the host may be steps ahead of the device.
    """

    in_streams = False  # whether it needs no work of the host, so that it can be recorded
    waited = 0.0  # seconds that the host has waited, in total
    joint: Runner | None = None  # computes all planes and exchanges, in one launch; see join()

    def join(self, launch: Launch, grid: Grid) -> None:
        """Offer the kernel that writes the planes: the exchange may become a part of it.

        Call it before the first start(), where this kernel is all work of a step. It stores values
        of the cell only, in an array that it does not read. The first start() may set `joint`.
        """

    def await_joint(self) -> None:
        """Let the bulk stream wait for the planes of the last joint launch."""

    def start(self, ready: Event | None = None) -> None:
        """Send everything after the event `ready`; None: the planes are ready now.

        With an event, the exchange is part of a time step, and the plan's previous step has been
        exchanged, too.
        """
        raise NotImplementedError

    def arrival(self) -> Event | None:
        """The event after which kernels may read what arrived; None if the host has waited for it.

        Call it once after each start(); the host may do other work between the two calls.
        """
        raise NotImplementedError

    def finish(self) -> None:
        """Wait until everything is sent and received."""
        arrived = self.arrival()
        if arrived is not None:
            self.wait(arrived.synchronize)

    def follow(self, stream: Stream) -> None:
        """Exchange after the work in a stream, whose later work follows what arrives."""
        self.start(stream.record())
        self.wait(stream.flush)
        arrived = self.arrival()
        if arrived is not None:
            stream.wait(arrived)

    def wait(self, blocking: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """The result of `blocking(...)`, whose time is added to `waited`."""
        begin = perf_counter()
        try:
            return blocking(*arguments, **options)
        finally:
            self.waited += perf_counter() - begin

    def free(self) -> None:
        """Release the resources of the exchange."""


class Exchanger:
    """The exchanges of one rank, made by `make(plan, arrays)`; a context manager.

    recordings  steps recorded by the solver. They hold exchanges, so they are dropped first
    allgather   returns the values of all ranks, as Communicator.allgather; of one rank by default
    """

    def __init__(self, make: Callable[[Plan, tuple[Any, ...]], Exchange]):
        self._make = make
        self.allgather: Callable[[Any], list[Any]] = lambda value: [value]
        self.recordings: dict[int, Callable[[], None]] = {}
        self._exchanges: list[Exchange] = []

    def prepare(self, plan: Plan, arrays: Iterable[Any]) -> Exchange:
        """Set up one exchange of 1-D device arrays, which must keep their memory."""
        self._exchanges.append(self._make(plan, tuple(arrays)))
        return self._exchanges[-1]

    def close(self) -> None:
        """Free all exchanges. Not collective, so it is safe when another rank has failed."""
        self.recordings.clear()
        while self._exchanges:
            self._exchanges.pop().free()

    def __enter__(self) -> "Exchanger":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close()


class Halo(Parameters):
    """How planes travel between ranks."""

    def resolve(self, comm: Communicator, device: Device) -> tuple["Halo", str]:
        """The way that is used and the reason; the same on all ranks."""
        return self, "chosen in the case"

    def open(self, slab: Slab, comm: Communicator, device: Device) -> Exchanger:
        """The exchanger of this rank's slab."""
        raise NotImplementedError
