"""What travels between neighbouring slabs: pieces of arrays, as data.

A piece is contiguous, `array[start : start + count]` in elements, because all that leaves a slab
through one face lies side by side in one plane. Neighbour +1 is the slab above, -1 the one below.
"""

from collections.abc import Iterator
from dataclasses import dataclass

# A message of more than 2^31 bytes is beyond the `int` count of MPI 3.
LARGEST_MESSAGE = 2**27
# MPI guarantees tags to 32767; the lower half is left to the writers of files.
FIRST_TAG = 16384


@dataclass(frozen=True)
class Transfer:
    """One contiguous piece of array number `array` that goes to, or comes from, a neighbour."""

    neighbour: int
    array: int
    start: int
    count: int


@dataclass(frozen=True)
class Plan:
    """All that one rank sends and receives in one exchange.

    The k-th send towards +1 is the k-th receive from -1 of the upper neighbour, and the k-th send
    towards -1 is the k-th receive from +1 of the lower one.
    """

    sends: tuple[Transfer, ...]
    receives: tuple[Transfer, ...]


@dataclass(frozen=True)
class Message:
    """A piece on its way: the other rank, the tag that both agree on, the elements of the array."""

    peer: int
    tag: int
    array: int
    elements: slice

    def of(self, arrays):
        """The piece itself, a view."""
        return arrays[self.array][self.elements]


def outgoing(plan: Plan, slab) -> tuple[Message, ...]:
    """The messages that this rank sends; those to a neighbour that does not exist are dropped."""
    return tuple(_messages(plan.sends, slab, 1))


def incoming(plan: Plan, slab) -> tuple[Message, ...]:
    """The messages that this rank receives, with the tags that their senders gave them."""
    return tuple(_messages(plan.receives, slab, -1))


def _messages(transfers, slab, sign: int) -> Iterator[Message]:
    """Number the transfers of each direction of travel: tag = first + 2 number + (upwards).

    The direction is in the tag since two ranks of a periodic box are each other's both neighbours.
    """
    peers = {1: slab.upper, -1: slab.lower}
    numbers = {1: 0, -1: 0}
    for transfer in transfers:
        travel = sign * transfer.neighbour
        end = transfer.start + transfer.count
        for start in range(transfer.start, end, LARGEST_MESSAGE):
            tag = FIRST_TAG + 2 * numbers[travel] + (travel > 0)
            numbers[travel] += 1
            if peers[transfer.neighbour] is not None:
                elements = slice(start, min(start + LARGEST_MESSAGE, end))
                yield Message(peers[transfer.neighbour], tag, transfer.array, elements)
