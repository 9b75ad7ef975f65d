"""Sets of links: for each of n cells a set of directions c_i."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.solids import Flags, Ints

BITS = 32  # bits of a word, at least Q
BLOCK = 2**16  # cells whose flags are unpacked at a time


@dataclass(frozen=True, eq=False)
class LinkSet:
    """A set of links of n cells.

    bits: uint32 (n,), as kernels read it; bit i is set if the link along c_i is in the set. Links
    are ordered by cell, then by direction.
    """

    bits: NDArray[np.uint32]

    @classmethod
    def empty(cls, cells: int) -> "LinkSet":
        """The empty set."""
        return cls(np.zeros(cells, np.uint32))

    @classmethod
    def all_of(cls, Q: int) -> "LinkSet":
        """All directions of a lattice, for one cell; broadcasts to any number of cells."""
        return cls(np.array([2**Q - 1], np.uint32))

    @classmethod
    def rest(cls) -> "LinkSet":
        """Direction 0 only, for one cell; broadcasts to any number of cells."""
        return cls(np.array([1], np.uint32))

    @classmethod
    def collect(cls, cells: int, by_direction: dict[int, Any]) -> "LinkSet":
        """Create a set from {i: numbers or mask of the cells with a link along c_i}."""
        bits = np.zeros(cells, np.uint32)
        for i, mine in by_direction.items():
            bits[mine] |= np.uint32(1 << i)
        return cls(bits)

    @classmethod
    def summed(cls, group: NDArray[Any], direction: NDArray[Any], cells: int) -> "LinkSet":
        """Create a set from distinct pairs (cell number, direction)."""
        # sums of different powers of two, exact below 2^53
        return cls(np.bincount(group, np.exp2(direction), cells).astype(np.uint32))

    def __len__(self) -> int:
        return self.bits.size

    def __getitem__(self, cells: Any) -> "LinkSet":
        return LinkSet(self.bits[cells])

    def __or__(self, other: "LinkSet") -> "LinkSet":
        return LinkSet(self.bits | other.bits)

    def __and__(self, other: "LinkSet") -> "LinkSet":
        return LinkSet(self.bits & other.bits)

    def without(self, other: "LinkSet") -> "LinkSet":
        """The links that are not in `other`."""
        return LinkSet(self.bits & ~other.bits)

    def where(self, mask: Flags) -> "LinkSet":
        """The links of cells where the mask is True; no links elsewhere."""
        return LinkSet(np.where(mask, self.bits, np.uint32(0)))

    def with_more(self, cells: NDArray[Any], links: "LinkSet") -> "LinkSet":
        """A copy with additional links of some cells; each cell must occur once."""
        bits = self.bits.copy()
        bits[cells] |= links.bits
        return LinkSet(bits)

    def with_all_of(self, cells: NDArray[Any], links: "LinkSet") -> "LinkSet":
        """A copy in which some cells have other links; each cell must occur once."""
        bits = self.bits.copy()
        bits[cells] = links.bits
        return LinkSet(bits)

    def united(self, first: NDArray[Any]) -> "LinkSet":
        """The union over each group of consecutive cells; first: index where each group begins."""
        return LinkSet(np.bitwise_or.reduceat(self.bits, first)) if first.size else self[:0]

    def moving(self) -> "LinkSet":
        """The links along which populations move: without direction 0."""
        return self.without(LinkSet.rest())

    def first(self) -> "LinkSet":
        """The first link of each cell; no link for cells without links."""
        return LinkSet(self.bits & (~self.bits + np.uint32(1)))

    def has(self, i: int) -> Flags:
        """Bool (n,): whether the link along c_i is in the set."""
        return (self.bits >> np.uint32(i) & 1).astype(bool)

    def contains(self, cells: NDArray[Any], directions: NDArray[Any]) -> Flags:
        """Bool array: whether each link, given as (cell, direction), is in the set."""
        return (self.bits[cells] >> directions.astype(np.uint32) & 1).astype(bool)

    def any(self) -> Flags:
        """Bool (n,): whether a cell has a link in the set."""
        return self.bits > 0

    def flags(self) -> Flags:
        """Bool (n, 32): whether each link of each cell is in the set."""
        words = self.bits.astype("<u4").view(np.uint8).reshape(-1, BITS // 8)
        return np.unpackbits(words, axis=1, bitorder="little").view(bool)

    def unpack(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Cell and direction of each link, in order."""
        cell, direction = np.empty((2, self.total()), np.intp)
        end = 0
        for first in range(0, len(self), BLOCK):
            found = np.nonzero(self[first : first + BLOCK].flags())
            begin, end = end, end + found[0].size
            np.add(found[0], first, out=cell[begin:end])
            direction[begin:end] = found[1]
        return cell, direction

    def _counts(self) -> NDArray[np.uint8]:
        """The number of links of each cell: sums of 1, then of 2, 4, 8 and 16 neighbouring bits."""
        sums = self.bits - (self.bits >> 1 & np.uint32(0x55555555))
        sums = (sums & np.uint32(0x33333333)) + (sums >> 2 & np.uint32(0x33333333))
        sums = sums + (sums >> 4) & np.uint32(0x0F0F0F0F)
        return (sums * np.uint32(0x01010101) >> 24).astype(np.uint8)

    def counts(self) -> Ints:
        """int64 (n,): the number of links of each cell."""
        return self._counts().astype(np.int64)

    def total(self) -> int:
        """The number of links of all cells."""
        return int(self._counts().sum(dtype=np.int64))

    def starts(self) -> Ints:
        """int64 (n,): the place of each cell's first link in the order of all links."""
        counts = self._counts()
        ends = np.cumsum(counts, dtype=np.int64)
        return np.subtract(ends, counts, out=ends)

    def of_cells(self, cells: NDArray[Any]) -> Flags:
        """Bool, one value per link of the set: whether it belongs to one of these cells."""
        wanted = np.zeros(len(self), bool)
        wanted[cells] = True
        return np.repeat(wanted, self.counts())

    def positions(self) -> tuple[NDArray[np.intp], NDArray[np.intp], Ints]:
        """Cell and direction of each link, and how many links of the cell come before it."""
        cell, direction = self.unpack()
        return cell, direction, np.arange(cell.size) - self.starts()[cell]


def joined(sets: list[LinkSet]) -> LinkSet:
    """Concatenate sets."""
    return LinkSet(np.concatenate([each.bits for each in sets] or [np.empty(0, np.uint32)]))


class LinkBytes:
    """A set of links of n cells under construction, with a byte per cell for 8 directions each.

    Bytes are the type for which NumPy is fastest; `of` returns the set of the few cells with links.
    """

    def __init__(self, cells: int, Q: int):
        self._bytes = np.zeros((-(-Q // 8), cells), np.uint8)

    def add(self, i: int, mask: NDArray[np.uint8]) -> None:
        """Add the links along c_i of the cells where the mask, (n,), is 255 instead of 0."""
        here = self._bytes[i // 8]
        np.bitwise_or(here, mask & np.uint8(1 << i % 8), out=here)

    def any(self) -> Flags:
        """Bool (n,): whether a cell has a link in the set."""
        return np.bitwise_or.reduce(self._bytes, axis=0) != 0

    def of(self, cells: NDArray[Any]) -> LinkSet:
        """The set of the cells with these numbers."""
        bits = np.zeros(cells.size, np.uint32)
        for k, here in enumerate(self._bytes):
            bits |= here[cells].astype(np.uint32) << np.uint32(8 * k)
        return LinkSet(bits)
