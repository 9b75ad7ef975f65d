"""The messages between neighbouring slabs as data: pieces of arrays.

A piece is the contiguous slice `array[start : start + count]`: the populations that leave a slab
through a face are adjacent in a plane. Neighbour +1 is the slab above, -1 the slab below.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

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
