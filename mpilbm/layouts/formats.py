"""Number formats of the values that a layout stores in a cell.

Memory is counted in units. A unit has the size of the narrowest format; a value in a wider format
takes several adjacent units of a plane. With one format for all values, values and units are equal.

A 16-bit value may have more significant bits than its format: a tail, which replaces the last bits
of another value of the cell.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np

SCALE = 2**15  # factor of 16-bit values: small deviations then use the whole range of a half
LARGEST_HALF = float(np.finfo("float16").max) / SCALE  # the largest value in 16 bits


class Tail(NamedTuple):
    """The last `bits` bits of the value number `carrier` are the last bits of the value `head`."""

    head: int
    carrier: int
    bits: int


@dataclass(frozen=True)
class Formats:
    """The format of each stored value, by its NumPy name; at most two formats.

    `tails`: further bits of values, see Tail; only if all values are stored in "float16".
    """

    names: tuple[str, ...]
    tails: tuple[Tail, ...] = ()

    @cached_property
    def unit(self) -> str:
        """The narrowest format, that of the memory units."""
        return min(self.names, key=_bytes)

    @cached_property
    def widest(self) -> str:
        """The widest format, which represents all stored values exactly."""
        return max(self.names, key=_bytes)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """The number of units of each value."""
        return tuple(_bytes(name) // _bytes(self.unit) for name in self.names)

    @property
    def unit_bytes(self) -> int:
        """Bytes of a unit."""
        return _bytes(self.unit)

    @property
    def cell_bytes(self) -> int:
        """Bytes of all values of a cell."""
        return sum(map(_bytes, self.names))

    @property
    def tail_text(self) -> str:
        """The tails as text: head:carrier:bits of each; "" if there are none."""
        return " ".join(":".join(map(str, tail)) for tail in self.tails)

    def positions(self, order: Sequence[int]) -> tuple[int, ...]:
        """The first unit of each value in a plane, if value k is number order[k] in memory."""
        values = sorted(range(len(order)), key=lambda k: order[k])
        starts = accumulate((self.widths[k] for k in values), initial=0)
        found = dict(zip(values, starts, strict=False))
        return tuple(found[k] for k in range(len(order)))


def _bytes(name: str) -> int:
    return np.dtype(name).itemsize
