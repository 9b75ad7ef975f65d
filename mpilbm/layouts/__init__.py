"""Memory layouts: which values of a cell are stored, and where they are read and written.

Imports only `physics`, `registry` and lower layers. To add a layout, write one file with a class
derived from `Layout` and `@register("layouts", name)`. A layout of populations defines two places,
for direction i and the parity of the step (step % parities):

    gather(i)    the incoming population f_i at the beginning of the step
    scatter(i)   the outgoing population f*_i at its end

A place is (slot, offset): the slot is the index of a stored value, the offset is (plane, row, x)
relative to the cell. Ghost planes, messages, the in-place check and the addresses in boundary
kernels are derived from the places. Other modules use `incoming`, `outgoing` and `stored`; a layout
that stores other values than populations overrides these three methods.

`Layout.conflicts` has the rules for which cases may use a layout. `case.checks.check` asks it for
the layout that a case names, and `auto` for each layout that it may choose. `Layout.deviations`
states where the flow of a case depends on the layout by more than rounding; `auto` chooses no such
layout.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.registry import Parameters, find, make, names
from mpilbm.layouts.cells import Offset
from mpilbm.layouts.formats import Formats
from mpilbm.layouts.grid import Grid
from mpilbm.layouts.nodes import NodeGrid
from mpilbm.model.case import Case
from mpilbm.model.expressions import Equations, Expression, Populations, Vector
from mpilbm.physics.boundaries import in_cells
from mpilbm.physics.lattices import Lattice

HERE: Offset = (0, 0, 0)


class Place(NamedTuple):
    """A stored value: its slot, and the offset (plane, row, x) of the cell that contains it."""

    slot: int
    offset: Offset


AnyGrid = Grid | NodeGrid  # memory of all cells, or of the fluid cells only
Read = Callable[[int | str, Place], Expression]  # (name of the value, its place) -> its symbol


class _NoEquations:
    """Replaces the equations of a fluid where only the places are of interest."""

    def rest(self, density: Expression) -> int:
        return 1

    def rebuilt(
        self, density: Expression, u: Vector, A: Sequence[Expression], only: Iterable[int] | None
    ) -> list[Expression]:
        return [0 for _ in only or ()]


NONE = _NoEquations()


class Layout(Parameters):
    """The arrangement of the state of a fluid in memory.

    buffers      number of arrays; 1: in place
    parities     the places repeat every `parities` steps
    dense        all cells of a row are stored; the address of a neighbour follows from its offset
    listed       only fluid cells are stored; the addresses of neighbours are stored in tables
    populations  the stored values are populations: a boundary can write incoming populations to
                 the places where the step reads them; otherwise the cells at boundaries are
                 computed a second time
    sweep        CUDA devices use a special kernel for the bulk
    storages     the values of `precision.storage` that the layout supports
    automatic    a run replaces it by another layout, see auto.py
    shares       by `precision.storage`: the part of the bandwidth of a device copy that single
                 steps in large boxes reached, measured; see run/preflight/expected_speed.py
    past_bodies  the part of it that is left in flows past bodies with boundary lists
    """

    buffers: ClassVar[int] = 1
    parities: ClassVar[int] = 1
    populations: ClassVar[bool] = True
    sweep: ClassVar[bool] = False
    storages: ClassVar[tuple[str, ...]] = ("float16", "float32", "float64")
    dense: ClassVar[bool] = True
    listed: ClassVar[bool] = False
    automatic: ClassVar[bool] = False
    shares: ClassVar[Mapping[str, float]] = {}
    past_bodies: ClassVar[float] = 1.0

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by name and parameters: other processes import no class of a plug-in."""
        return make, ("layouts", self.model_dump())

    def gather(self, lattice: Lattice, i: int, parity: int) -> Place:
        """The place from which the incoming population along c_i is read."""
        raise NotImplementedError

    def scatter(self, lattice: Lattice, i: int, parity: int) -> Place:
        """The place to which the outgoing population along c_i is written."""
        raise NotImplementedError

    def f_out(self, lattice: Lattice, i: int, parity: int) -> Place:
        """The place of the previous step's outgoing population, in a step of this parity."""
        return self.scatter(lattice, i, (parity - 1) % self.parities)

    def slots(self, lattice: Lattice) -> tuple[int, ...]:
        """The number in a plane of memory of each stored value of a cell."""
        return lattice.slots

    def formats(self, lattice: Lattice, storage: str) -> Formats:
        """The number format of each stored value; `storage`: `precision.storage`."""
        return Formats((storage,) * len(self.slots(lattice)))

    def incoming(
        self, lattice: Lattice, parity: int, read: Read, of: Equations
    ) -> list[Expression]:
        """Q expressions of the incoming populations of the cell.

        `read(name, place)` returns the symbol of a stored value; `of` are the equations of the
        fluid.
        """
        return [read(i, self.gather(lattice, i, parity)) for i in range(lattice.Q)]

    def outgoing(
        self, lattice: Lattice, parity: int, read: Read, of: Equations
    ) -> list[Expression]:
        """Q expressions of the outgoing populations of the previous step; arguments: `incoming`."""
        return [read(i, self.f_out(lattice, i, parity)) for i in range(lattice.Q)]

    def stored(
        self, lattice: Lattice, parity: int, f: Populations, of: Equations
    ) -> list[tuple[Place, Expression]]:
        """(place, expression) of all values that a step stores, from the Q outgoing populations."""
        return [(self.scatter(lattice, i, parity), f_i) for i, f_i in enumerate(f)]

    def reads(self, lattice: Lattice, parity: int) -> list[Place]:
        """All places that the update of a cell reads."""
        found: dict[Place, None] = {}
        self.incoming(lattice, parity, lambda _, place: found.setdefault(place, None) or 0, NONE)
        return list(found)

    def writes(self, lattice: Lattice, parity: int) -> list[Place]:
        """All places that the update of a cell writes."""
        return [place for place, _ in self.stored(lattice, parity, [0] * lattice.Q, NONE)]

    def grid(
        self,
        lattice: Lattice,
        planes: int,
        rows: int,
        nx: int,
        fluid: NDArray[np.integer] | None = None,
        ghost: int = 1,
        storage: str = "float32",
    ) -> AnyGrid:
        """The memory of a slab with `ghost` planes on each side: size, strides and neighbours.

        `fluid`: the number of fluid cells of each plane, including the ghost planes and one more
        plane on each side; only layouts that store fluid cells need it. `storage`: as for
        `formats`.
        """
        formats, staggered = self.formats(lattice, storage), lattice.staggered
        slots = formats.positions(self.slots(lattice))
        sizes = planes, rows, nx, slots, ghost
        return Grid.dense("f", *sizes, staggered, formats.widths, tails=formats.tails)

    def conflicts(self, case: Case) -> list[str]:
        """Everything in a case that the layout does not support, as ends of sentences.

        All rules about layouts are here and in the methods that override this one.
        """
        found, storage = [], case.precision.storage
        if storage not in self.storages:
            have = (n for n in names("layouts") if storage in find("layouts", n).storages)
            found.append(
                f'has no precision.storage = "{storage}", which {", ".join(have)} has; allowed: '
                f"{', '.join(self.storages)}"
            )
        if not self.dense and case.lattice.staggered:
            found.append(f"is not defined on {case.lattice.name}, which stores every other node")
        if self.listed and in_cells(case):
            label = case.bodies[in_cells(case)[0]].label
            found.append(f"stores no cells of bodies, in which the boundary of '{label}' acts")
        if not (self.dense and self.populations):
            carried = {"scalars": case.scalars, "coupled fluids": case.coupling}
            found += [f"does not support {what}" for what, given in carried.items() if given]
        if not self.populations and (case.boundaries or case.bodies):
            found += [
                f"cannot keep the velocity fixed at walls, which {fluid.initial.where}.iterate = "
                f"{fluid.initial.iterate} requires; remove it"
                for fluid in case.fluids
                if fluid.initial.iterate
            ]
        return found

    def deviations(self, case: Case) -> list[str]:
        """Everything by which the flow differs from that of layouts of populations.

        Rounding in the arithmetic of the case does not count. Empty if populations are stored.
        """
        return []

    def sweeps(self, case: Case) -> bool:
        """Whether CUDA devices use the special kernel for the bulk of a case, see `sweep`."""
        forces = [fluid.force for fluid in case.fluids if fluid.force]
        return self.sweep and not any(force.by_cell for force in forces)

    def problems(self, case: Case) -> list[str]:
        """Errors: the conflicts with a case, and the layouts that have none."""
        found = self.conflicts(case)
        if not found:
            return []
        others = [name for name in names("layouts") if not make("layouts", name).conflicts(case)]
        fix = f"; allowed layouts: {', '.join(others)}" if others else ""
        return [f"name: '{self.name}' {conflict}{fix}" for conflict in found]

    def returning(self, lattice: Lattice) -> tuple[int, ...]:
        """For each slot, the slot of the cell's outgoing population in the opposite direction.

        With these slots a step can perform half-way bounce-back without a boundary list. Empty
        unless all outgoing populations are stored in the cell itself.
        """
        if not self.dense or self.parities > 1 or lattice.staggered:
            return ()
        left = [self.f_out(lattice, i, 0) for i in lattice.opp]
        if any(place.offset != HERE for place in left):
            return ()
        there = {self.gather(lattice, i, 0).slot: left[i].slot for i in range(lattice.Q)}
        return tuple(there[k] for k in range(lattice.Q))

    def structure(self) -> dict:
        """The properties that determine the kernel text: all fields."""
        return self.model_dump()

    def check_in_place(self, lattice: Lattice) -> None:
        """Raise ValueError if, in a layout with one array, two cells use the same location.

        In that case the threads of a kernel would race.
        """
        if self.buffers > 1:
            return
        for parity in range(self.parities):
            reads, writes = (set(side(lattice, parity)) for side in (self.reads, self.writes))
            slots = {place.slot for place in reads}
            if reads != writes or len(slots) != len(reads):
                raise ValueError(
                    f"layout '{self.name}' is not in place at parity {parity}: places that are "
                    f"read and not written: {sorted(reads - writes)}; written and not read: "
                    f"{sorted(writes - reads)}; {len(slots)} slots for {len(reads)} values"
                )


def against(offset: Offset) -> Offset:
    """The opposite offset."""
    return (-offset[0], -offset[1], -offset[2])
