"""The transport of scalars: fluxes through walls, and sums over the fluid."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from mpilbm.parallel.slabs import Slab
from mpilbm.solids import Floats, Ints
from mpilbm.solids.body_links import Chunks, numbered
from mpilbm.solids.entry_list import EntryList, Writes
from mpilbm.solids.owners import Owner, owners_of
from mpilbm.solver.boundary_lists import BoundaryLists
from mpilbm.solver.fields.diagnostics import Diagnostics
from mpilbm.solver.fields.plane_sums import PlaneSums
from mpilbm.solver.memory_plan import CHUNK_BYTES, NUMBER_BYTES, list_bytes
from mpilbm.solver.momentum_exchange import LinkSums
from mpilbm.solver.populations import Populations


class LinkFluxes(LinkSums):
    """The flux of a scalar through the links of each face and body, over the step from t to t + 1.

        Q = sum over links of g_i_in - g_opp_out

    with the outgoing population at t and the incoming one. The sum over all owners is exactly the
    change of the sum of the scalar over the fluid, less sources.
    """

    def __init__(self, scalar: Populations):
        geometry, slab = scalar.context.geometry, scalar.slab
        lists = tuple(
            replace(each, writes=Writes.MEASURED) for each in geometry.lists if each.cells.size
        )
        self.owners = owners_of(scalar.bounded)
        places = {owner.place: owner.place for owner in self.owners}
        chunks = Chunks.of(slab, [numbered(each, places) for each in lists])
        needed = flux_bytes(scalar, slab, lists, chunks)
        scalar.device.require(needed, "the fluxes through walls")
        self.groups = chunks.group
        own = BoundaryLists(scalar, replace(geometry, lists=lists), staged=True)
        super().__init__(scalar, own, chunks, 1)

    def start(self) -> Callable[[], Floats]:
        """Enqueue the sums over the links of each owner in each plane, for the next step.

        The result waits for them and returns them, float64, one for each row of `groups`.
        """
        copy = self.start_groups()
        return lambda: copy()[:, 0] if copy else np.zeros(0)


def flux_bytes(
    scalar: Populations, slab: Slab, lists: tuple[EntryList, ...], chunks: Chunks
) -> int:
    """Bytes on the device for the fluxes through these lists."""
    entries = NUMBER_BYTES * sum(each.cells.size for each in lists)
    sums = (CHUNK_BYTES + 8) * chunks.order.size + (NUMBER_BYTES + 8) * len(chunks.group)
    return int(list_bytes(scalar.bounded, slab, lists, staged=True).sum()) + entries + sums


def over_owners(owners: tuple[Owner, ...], parts: list[tuple[Ints, Floats]]) -> Floats:
    """The flux of each owner, (owners,), from the groups and sums of each rank, in their order."""
    totals = np.zeros(len(owners))
    for groups, sums in parts:
        np.add.at(totals, groups[:, 1], sums)
    return totals


class Transport:
    """Transport of the scalars of Needs.transported; `fluxes`: through walls, by number."""

    def __init__(self, diagnostics: Diagnostics, scalars: tuple[Populations, ...]):
        self.diagnostics = diagnostics
        self.numbers = diagnostics.context.case.needs.transported
        self.fluxes = {k: LinkFluxes(scalars[k]) for k in self.numbers}
        self.columns = 2 * diagnostics.lattice.D + 1  # of a scalar

    @cached_property
    def _sums(self) -> PlaneSums:
        given, columns = self.diagnostics.blocks.arguments, self.columns * len(self.numbers)
        return PlaneSums(self.diagnostics.state, "transport", columns, **given)

    def start(self, number: int) -> Callable[[], Floats]:
        """Enqueue sums over the fluid cells of each plane, for the scalar phi with this number.

        The result returns u_a phi, d_a phi and |grad phi|^2, (planes, 2 D + 1) in double, by
        central differences. Collective; to call the result is not.
        """
        first, blocks = self.columns * self.numbers.index(number), self.diagnostics.blocks
        blocks.prepare()
        for begin, end, u_first in blocks.blocks(0, self.diagnostics.planes):
            self._sums.enqueue(begin, end, u_first=u_first)
        copy = self._sums.start()
        return lambda: copy()[:, first : first + self.columns]
