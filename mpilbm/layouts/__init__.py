"""Memory layouts: which values of a cell are stored, and where they are read and written.

Imports only `physics`, `registry` and lower layers. To add a layout, write one file with a class
derived from `Layout` and `@register("layouts", name)`. A layout of populations defines two places,
for direction i and the parity of the step (step % parities):

    gather(i)    the incoming population f_i at the beginning of the step
    scatter(i)   the outgoing population f*_i at its end

A place is (slot, offset): the slot is the index of a stored value, the offset is (plane, row, x)
from the cell. Ghost planes, messages, in-place safety and the addresses of boundaries are derived
from these. Other modules use `incoming`, `outgoing` and `stored`; a layout that stores other values
than populations defines these three itself.
"""

from collections.abc import Callable
from typing import ClassVar, NamedTuple

from mpilbm.layouts.grid import Grid
from mpilbm.physics.lattices import Lattice
from mpilbm.registry import Parameters, find, names

Offset = tuple[int, int, int]
HERE: Offset = (0, 0, 0)


class Place(NamedTuple):
    """A value of the field: its slot, in the cell at (plane, row, x) + offset."""

    slot: int
    offset: Offset


Read = Callable[[int | str, Place], object]  # (name of the value, its place) -> its symbol


class Layout(Parameters):
    """How the state of a fluid lies in memory. The places repeat every `parities` steps.

    buffers      number of arrays; 1: in place
    dense        all cells of a row are stored, so that neighbours are found by their offset
    listed       only fluid cells are stored, and neighbours are found in tables
    populations  the stored values are populations: a boundary can write incoming populations to
                 where the step reads them; otherwise its cells are computed again
    sweep        CUDA devices have a special kernel for the bulk
    """

    buffers: ClassVar[int] = 1
    parities: ClassVar[int] = 1
    populations: ClassVar[bool] = True
    sweep: ClassVar[bool] = False
    dense: ClassVar[bool] = True
    listed: ClassVar[bool] = False

    def gather(self, lattice: Lattice, i: int, parity: int) -> Place:
        """Where the incoming population along c_i is read."""
        raise NotImplementedError

    def scatter(self, lattice: Lattice, i: int, parity: int) -> Place:
        """Where the outgoing population along c_i is written."""
        raise NotImplementedError

    def f_out(self, lattice: Lattice, i: int, parity: int) -> Place:
        """Where, in a step of this parity, the outgoing population of the previous step is."""
        return self.scatter(lattice, i, (parity - 1) % self.parities)

    def slots(self, lattice: Lattice) -> tuple[int, ...]:
        """The position in a plane of memory of each stored value of a cell."""
        return lattice.slots

    def incoming(self, lattice: Lattice, parity: int, read: Read, rest) -> list:
        """Q expressions of the incoming populations of the cell. `rest(density)` is rho."""
        return [read(i, self.gather(lattice, i, parity)) for i in range(lattice.Q)]

    def outgoing(self, lattice: Lattice, parity: int, read: Read, rest) -> list:
        """Q expressions of the outgoing populations of the cell in the previous step."""
        return [read(i, self.f_out(lattice, i, parity)) for i in range(lattice.Q)]

    def stored(self, lattice: Lattice, parity: int, f, rest) -> list[tuple[Place, object]]:
        """(place, expression) of all values that a step stores, from the Q outgoing populations."""
        return [(self.scatter(lattice, i, parity), f_i) for i, f_i in enumerate(f)]

    def reads(self, lattice: Lattice, parity: int) -> list[Place]:
        """All places that the update of a cell reads."""
        found: dict[Place, None] = {}
        self.incoming(lattice, parity, lambda _, place: found.setdefault(place, None) or 0, _one)
        return list(found)

    def writes(self, lattice: Lattice, parity: int) -> list[Place]:
        """All places that the update of a cell writes."""
        return [place for place, _ in self.stored(lattice, parity, [0] * lattice.Q, _one)]

    def grid(
        self, lattice: Lattice, planes: int, rows: int, nx: int, fluid=None, ghost: int = 1
    ) -> Grid:
        """Allocation, strides and neighbours of a slab with `ghost` planes on each side.

        `fluid`: number of fluid cells of each plane, of the ghost planes and of one more plane on
        each side.
        """
        slots, staggered = self.slots(lattice), lattice.staggered
        return Grid.dense("f", planes, rows, nx, slots, ghost, staggered)

    def problems(self, case) -> list[str]:
        """Errors: a staggered lattice in a layout that finds neighbours in tables."""
        if self.dense or not case.lattice.staggered:
            return []
        whole = ", ".join(name for name in names("layouts") if find("layouts", name).dense)
        return [f"{self.name} is not defined on {case.lattice.name}; allowed: {whole}"]

    def returning(self, lattice: Lattice) -> tuple[int, ...]:
        """For each slot that of the population that left the same cell in the opposite direction.

        A step can then perform half-way bounce-back from there without a boundary list. Empty
        unless all outgoing populations are stored in their own cell.
        """
        if not self.dense or self.parities > 1 or lattice.staggered:
            return ()
        left = [self.f_out(lattice, i, 0) for i in lattice.opp]
        if any(place.offset != HERE for place in left):
            return ()
        there = {self.gather(lattice, i, 0).slot: left[i].slot for i in range(lattice.Q)}
        return tuple(there[k] for k in range(lattice.Q))

    def structure(self) -> dict:
        """What changes the kernel text."""
        return self.model_dump()

    def check_in_place(self, lattice: Lattice) -> None:
        """Raise ValueError unless each location is used by one cell only: else threads race.

        Applies to layouts with one buffer.
        """
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
