"""Memory layouts: what of a cell is stored, where it is read and written, and nothing else.

A layout of populations states three places, for direction i and the parity of the step
(step % parities):

    gather(i)    the population that streams into the cell at the beginning of the step
    scatter(i)   what the step stores of the population that leaves along c_i
    f_out(i)     the population that left the cell in the step before: its scatter

A place is (slot, offset): the slot is a value's index, the offset a multiple of c_i. Ghost
planes, messages, in-place safety and the addresses of boundaries are derived from these. What all
others see is `arriving`, `left` and `kept`; a layout that stores other values than populations
states these itself.
"""

from collections.abc import Callable
from typing import ClassVar, NamedTuple

from mpilbm.layouts.grid import Grid
from mpilbm.registry import Parameters, find, names

Offset = tuple[int, int, int]
HERE: Offset = (0, 0, 0)


class Place(NamedTuple):
    """A value of the field: its slot, in the cell at (plane, row, x) + offset."""

    slot: int
    offset: Offset


Read = Callable[[int | str, Place], object]  # (name of the value, its place) -> its symbol


class Layout(Parameters):
    """A fluid's state in memory. `buffers` arrays; the places repeat every `parities` steps.

    `dense`: all cells of a row are stored, as populations that come from where c_i points.
    `populations`: what is stored are populations, so that a boundary can write what enters to
    where the step reads it; else the listed cells are computed anew. `sweep`: CUDA devices have a
    kernel of its own for the bulk. `listed`: fluid cells alone are stored, and found in tables.
    """

    buffers: ClassVar[int] = 1
    parities: ClassVar[int] = 1
    populations: ClassVar[bool] = True
    sweep: ClassVar[bool] = False
    dense: ClassVar[bool] = True
    listed: ClassVar[bool] = False

    def gather(self, lattice, i: int, parity: int) -> Place:
        """Where the population that streams into the cell along c_i is read."""
        raise NotImplementedError

    def scatter(self, lattice, i: int, parity: int) -> Place:
        """Where the population that leaves the cell along c_i is written."""
        raise NotImplementedError

    def f_out(self, lattice, i: int, parity: int) -> Place:
        """Where, in a step of this parity, the population lies that left in the step before."""
        return self.scatter(lattice, i, (parity - 1) % self.parities)

    def slots(self, lattice) -> tuple[int, ...]:
        """Where in a plane of memory each stored value of a cell lies; as many as are stored."""
        return lattice.slots

    def arriving(self, lattice, parity: int, read: Read, rest) -> list:
        """Q expressions: the populations that stream into the cell. `rest(density)` is rho."""
        return [read(i, self.gather(lattice, i, parity)) for i in range(lattice.Q)]

    def left(self, lattice, parity: int, read: Read, rest) -> list:
        """Q expressions: the populations that left the cell in the step before."""
        return [read(i, self.f_out(lattice, i, parity)) for i in range(lattice.Q)]

    def kept(self, lattice, parity: int, f, rest) -> list[tuple[Place, object]]:
        """(place, expression) of all that a step stores, from the Q populations that leave."""
        return [(self.scatter(lattice, i, parity), f_i) for i, f_i in enumerate(f)]

    def reads(self, lattice, parity: int) -> list[Place]:
        """All places that the update of a cell reads."""
        found: dict[Place, None] = {}
        self.arriving(lattice, parity, lambda _, place: found.setdefault(place, None) or 0, _one)
        return list(found)

    def writes(self, lattice, parity: int) -> list[Place]:
        """All places that the update of a cell writes."""
        return [place for place, _ in self.kept(lattice, parity, [0] * lattice.Q, _one)]

    def grid(self, lattice, planes: int, rows: int, nx: int, fluid=None, ghost: int = 1) -> Grid:
        """Allocation, strides and neighbours of a slab with `ghost` planes on either side.

        `fluid`: fluid cells of each plane, of the ghost planes, and of one more on either side.
        """
        slots, staggered = self.slots(lattice), lattice.staggered
        return Grid.dense("f", planes, rows, nx, slots, ghost, staggered)

    def problems(self, case) -> list[str]:
        """Refuse lattices that leave nodes out, where neighbours are not found by their offsets."""
        if self.dense or not case.lattice.staggered:
            return []
        whole = ", ".join(name for name in names("layouts") if find("layouts", name).dense)
        return [f"{self.name} is not defined on {case.lattice.name}; allowed: {whole}"]

    def returning(self, lattice) -> tuple[int, ...]:
        """For each slot that of what left a cell against it, if all that left lies at home.

        Then a step can take what half-way walls return from there by itself. Empty otherwise.
        """
        if not self.dense or self.parities > 1 or lattice.staggered:
            return ()
        left = [self.f_out(lattice, i, 0) for i in lattice.opp]
        if any(place.offset != HERE for place in left):
            return ()
        there = {self.gather(lattice, i, 0).slot: left[i].slot for i in range(lattice.Q)}
        return tuple(there[k] for k in range(lattice.Q))

    def structure(self) -> dict:
        """What shapes the kernel text."""
        return self.model_dump()

    def check_in_place(self, lattice) -> None:
        """Every location must be touched by one cell only, else threads race: raises ValueError."""
        if self.buffers > 1:
            return
        for parity in range(self.parities):
            reads, writes = (set(side(lattice, parity)) for side in (self.reads, self.writes))
            slots = {place.slot for place in reads}
            if reads != writes or len(slots) != len(reads):
                raise ValueError(
                    f"layout '{self.name}' is not in place at parity {parity}: it reads "
                    f"{sorted(reads - writes)} but not writes it, writes "
                    f"{sorted(writes - reads)} but not reads it, and uses {len(slots)} slots for "
                    f"{len(reads)} values"
                )


def _one(density):
    return 1


def against(offset: Offset) -> Offset:
    """The opposite offset."""
    return (-offset[0], -offset[1], -offset[2])
