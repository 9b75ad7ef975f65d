"""Only fluid cells are stored, with a table of their neighbours. For porous media."""

from functools import cache

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from mpilbm.core.registry import find, make, names, register
from mpilbm.layouts import HERE, Layout, Place
from mpilbm.layouts.cells import Offset
from mpilbm.layouts.nodes import NodeGrid
from mpilbm.model.case import Case
from mpilbm.physics.lattices import Lattice


@register("layouts", "indirect")
class Indirect(Layout):
    """Only fluid cells are stored: memory and time are proportional to their number.

    `streaming` is the layout of the populations of these cells. The table needs 4 bytes for each
    neighbour that a step uses. With esopull it has half the size, because that layout uses forward
    directions only. Vorticity and its sums need fields over all cells, which are allocated if an
    output requires them. Incoming populations at moving walls are staged.
    """

    streaming: str = Field("aa", description="layout of the populations: ab, aa, esopull")

    dense = False
    listed = True
    shares = {"float64": 0.74, "float32": 0.74}

    @field_validator("streaming")
    @classmethod
    def _of_populations(cls, value: str) -> str:
        layouts = {name: find("layouts", name) for name in names("layouts")}
        allowed = [
            n
            for n, one in layouts.items()
            if one.populations and not (one.automatic or issubclass(one, cls))
        ]
        if value not in allowed:
            some = ", ".join(allowed)
            raise ValueError(f"'{value}' is not a layout of populations; allowed: {some}")
        return value

    def conflicts(self, case: Case) -> list[str]:
        """Also: sheets between fluid cells."""
        found = super().conflicts(case)
        if any(body.shape and body.shape.cuts for body in case.bodies):
            found.append("has no links between fluid cells that sheets (thin = true) cut")
        return found

    @property
    def buffers(self) -> int:  # type: ignore[override]  # other layouts: a class variable
        """Number of arrays: that of the layout `streaming`."""
        return _layout(self.streaming).buffers

    @property
    def parities(self) -> int:  # type: ignore[override]  # as `buffers`
        """After how many steps places repeat: as in the layout `streaming`."""
        return _layout(self.streaming).parities

    def gather(self, lattice: Lattice, i: int, parity: int) -> Place:
        """The place from which the layout `streaming` reads f_i."""
        return _layout(self.streaming).gather(lattice, i, parity)

    def scatter(self, lattice: Lattice, i: int, parity: int) -> Place:
        """The place to which the layout `streaming` writes the population along c_i."""
        return _layout(self.streaming).scatter(lattice, i, parity)

    def f_out(self, lattice: Lattice, i: int, parity: int) -> Place:
        """The place of the previous step's outgoing population in the layout `streaming`."""
        return _layout(self.streaming).f_out(lattice, i, parity)

    def grid(
        self,
        lattice: Lattice,
        planes: int,
        rows: int,
        nx: int,
        fluid: NDArray[np.integer] | None = None,
        ghost: int = 1,
        storage: str = "float32",
    ) -> NodeGrid:
        """The memory of the fluid cells; without `fluid`, of zero cells."""
        offsets = tuple(sorted({place.offset for place in self._away(lattice)}))
        fluid = np.zeros(planes + 2 * ghost + 2, int) if fluid is None else fluid
        turned = self._turned(lattice, offsets)
        return NodeGrid("f", planes, rows, nx, self.slots(lattice), offsets, turned, fluid, ghost)

    def _away(self, lattice: Lattice) -> set[Place]:
        """All places outside the cell that a step reads or writes."""
        touched = {
            place
            for parity in range(self.parities)
            for side in (self.reads, self.writes)
            for place in side(lattice, parity)
        }
        return {place for place in touched if place.offset != HERE}

    def _turned(self, lattice: Lattice, offsets: tuple[Offset, ...]) -> tuple[tuple[int, int], ...]:
        """For each offset, the slot that is used there and the slot of the opposite direction.

        If the opposite slot of the cell itself replaces a missing neighbour, the step must read
        each population from the place to which the opposite population was written (half-way
        bounce-back). The result is empty if a layout does not satisfy this.
        """
        away = {place.offset: place.slot for place in self._away(lattice)}

        def in_cell(place: Place) -> Place:
            return place if place.offset == HERE else Place(lattice.opp[place.slot], HERE)

        for i in range(1, lattice.Q):
            for parity in range(self.parities):
                read = self.gather(lattice, i, parity)
                left = self.f_out(lattice, lattice.opp[i], parity)
                if in_cell(read) != in_cell(left):
                    return ()
        slots = self.slots(lattice)
        return tuple((slots[away[o]], slots[lattice.opp[away[o]]]) for o in offsets)


@cache
def _layout(name: str) -> Layout:
    return make("layouts", name)
