"""Memory layouts: where a population is read and written, and nothing else.

A layout states three places, for direction i and the parity of the step (step % parities):

    gather(i)    the population that streams into the cell at the beginning of the step
    scatter(i)   what the step stores of the population that leaves along c_i
    f_out(i)     the population that left the cell in the step before: its scatter

A place is (slot, offset): the slot is a direction's index, the offset a multiple of c_i. Ghost
planes, messages, in-place safety and the addresses of boundaries are derived from these.
"""

from typing import ClassVar, NamedTuple

from mpilbm.layouts.grid import Grid
from mpilbm.registry import Parameters

Offset = tuple[int, int, int]
HERE: Offset = (0, 0, 0)


class Place(NamedTuple):
    """A value of the field: its slot, in the cell at (plane, row, x) + offset."""

    slot: int
    offset: Offset


class Layout(Parameters):
    """Populations in memory. `buffers` arrays; the places repeat every `parities` steps."""

    buffers: ClassVar[int] = 1
    parities: ClassVar[int] = 1
    ghost: ClassVar[int] = 1

    def gather(self, lattice, i: int, parity: int) -> Place:
        """Where the population that streams into the cell along c_i is read."""
        raise NotImplementedError

    def scatter(self, lattice, i: int, parity: int) -> Place:
        """Where the population that leaves the cell along c_i is written."""
        raise NotImplementedError

    def f_out(self, lattice, i: int, parity: int) -> Place:
        """Where, in a step of this parity, the population lies that left in the step before."""
        return self.scatter(lattice, i, (parity - 1) % self.parities)

    def grid(self, lattice, planes: int, rows: int, nx: int) -> Grid:
        """Allocation, strides and neighbours of a slab."""
        return Grid.dense("f", planes, rows, nx, lattice.slots, self.ghost)

    def structure(self) -> dict:
        """What shapes the kernel text."""
        return self.model_dump()

    def check_in_place(self, lattice) -> None:
        """Every location must be touched by one cell only, else threads race: raises ValueError."""
        if self.buffers > 1:
            return
        for parity in range(self.parities):
            reads = {self.gather(lattice, i, parity) for i in range(lattice.Q)}
            writes = {self.scatter(lattice, i, parity) for i in range(lattice.Q)}
            slots = {place.slot for place in reads}
            if reads != writes or len(slots) != lattice.Q:
                raise ValueError(
                    f"layout '{self.name}' is not in place at parity {parity}: it reads "
                    f"{sorted(reads - writes)} but not writes it, writes "
                    f"{sorted(writes - reads)} but not reads it, and uses {len(slots)} of "
                    f"{lattice.Q} slots"
                )


def against(offset: Offset) -> Offset:
    """The opposite offset."""
    return (-offset[0], -offset[1], -offset[2])
