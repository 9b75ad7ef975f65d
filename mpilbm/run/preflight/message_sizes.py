"""The bytes that a slab sends in a step, computed without a solver."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mpilbm.case.model import Case
from mpilbm.codegen import averaged
from mpilbm.codegen.program import OF, Access, Kernel
from mpilbm.halo.plan import Plan
from mpilbm.layouts.grid import FieldGrid
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.lattices import Lattice
from mpilbm.solver.exchange_plan import exchange_plan


def halo_bytes(
    case: Case,
    slab: Slab,
    fluid: NDArray[np.int64] | None = None,
    kernels: Mapping[str, Kernel] | None = None,
) -> tuple[int, int]:
    """Bytes and number of messages that a slab sends in a step, the largest of all parities.

    `fluid`: fluid cells of its planes, as Geometry.around. `kernels`: the kernels of the program of
    the case; by default they are generated if necessary.
    """
    lattice, layout = case.lattice, case.layout
    size, precision = (slab.planes, slab.shape[1], slab.shape[2]), case.precision
    grid = layout.grid(lattice, *size, fluid, case.ghost, precision.storage)
    unit, compute = case.formats.unit, precision.compute
    peers = {1: slab.upper, -1: slab.lower}
    fields = []
    if case.coupling:
        shown, beside = range(len(case.coupling.neighbour_fields(case))), range(1, lattice.Q)
        field = FieldGrid.of(case, slab.planes, *slab.shape[1:])
        reads = [Access(field.name, slot, lattice.offset(i)) for slot in shown for i in beside]
        fields = [(exchange_plan(field, (), reads), compute)] * (1 + averaged(case))
    found = []
    for parity in range(layout.parities):
        following = (parity + 1) % layout.parities
        places = layout.writes(lattice, parity), layout.reads(lattice, following)
        accesses = ([Access(grid.name, *place) for place in side] for side in places)
        writes, reads = accesses
        reads = [*reads, *_behind(case, following, kernels)]
        plans = [(exchange_plan(grid, writes, reads), unit)] * len(case.fluids) + fields
        plans += [(_scalar_plan(case, each.lattice, size, parity), unit) for each in case.scalars]
        sends = [
            send.count * np.dtype(kind).itemsize
            for plan, kind in plans
            for send in plan.sends
            if peers[send.neighbour] not in (None, slab.rank)
        ]
        found.append((sum(sends), len(sends)))
    return max(found)


def _scalar_plan(case: Case, lattice: Lattice, size: tuple[int, int, int], parity: int) -> Plan:
    """The exchange of a scalar on this lattice after a step of this parity."""
    layout, following = case.layout, (parity + 1) % case.layout.parities
    grid = layout.grid(lattice, *size, None, case.ghost, case.precision.storage)
    writes, reads = layout.writes(lattice, parity), layout.reads(lattice, following)
    found = [[Access(grid.name, *each) for each in side] for side in (writes, reads)]
    return exchange_plan(grid, found[0], found[1])


def _behind(case: Case, parity: int, kernels: Mapping[str, Kernel] | None) -> list[Access]:
    """Reads of boundaries that use cells two planes away, in a step of this parity."""
    if case.ghost == 1:
        return []
    if kernels is None:
        from mpilbm import codegen

        kernels = codegen.generate(case).kernels
    end = f"_{parity}{OF.format(0) if case.coupling else ''}"
    lists = [k for name, k in kernels.items() if k.over_links and name.endswith(end)]
    return [access for kernel in lists for access in kernel.reads]
