"""Fluxes of a scalar through walls: what the links that leave the fluid bring into it in a step."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mpilbm.parallel.slabs import Slab
from mpilbm.solids.body_links import Chunks
from mpilbm.solids.entry_list import EntryList, Writes
from mpilbm.solids.owners import Owner, owners_of
from mpilbm.solver.boundary_lists import Arrays, BoundaryLists, Launched
from mpilbm.solver.fields.host_copies import HostCopies, HostCopy
from mpilbm.solver.memory.lists import CHUNK_BYTES, NUMBER_BYTES, list_bytes
from mpilbm.solver.populations import Populations

Floats = NDArray[np.float64]


class LinkFluxes:
    """The flux of a scalar through the links of each face and body, over the step from t to t + 1.

        Q = sum over links of g_i_in - g_opp_out

    with the outgoing population at t and the incoming one. The sum over all faces and bodies is
    exactly the change of the sum of the scalar over the fluid, less sources.

    The links are summed as the forces on bodies are (see MomentumExchange): plane by plane, in
    double precision, so that the result does not depend on the number of ranks.
    """

    def __init__(self, scalar: Populations):
        self.scalar, device = scalar, scalar.device
        geometry, slab = scalar.context.geometry, scalar.slab
        lists = tuple(
            replace(each, writes=Writes.MEASURED) for each in geometry.lists if each.cells.size
        )
        self.owners = owners_of(scalar.case)
        chunks = Chunks.of(slab, lists, {owner.place: owner.place for owner in self.owners})
        device.require(flux_bytes(scalar, slab, lists, chunks), "the fluxes through walls")
        self.groups, self._ranges = chunks.group, chunks.ranges
        self.lists = BoundaryLists(scalar, replace(geometry, lists=lists), staged=True)
        self._arrays: Arrays = {
            "chunk_first": device.upload(chunks.first),
            "chunk_entry": device.upload(chunks.entry),
            "chunk_order": device.upload(chunks.order),
            "chunk_sums": device.allocate(chunks.order.size, "float64"),
            "group_first": device.upload(chunks.start),
        }
        self._sums = device.allocate(len(self.groups), "float64")
        self._copies = HostCopies(device, len(self.groups))
        self._launches: dict[int, list[Launched]] = {}  # by the step within a period

    def start(self) -> Callable[[], Floats]:
        """Enqueue the sums over the links of each owner in each plane, for the next step.

        The result waits for them and returns them, float64 (groups,), one for each plane of the
        slab and place of an owner in `groups`.
        """
        scalar = self.scalar
        if not self._sums.size:
            return partial(np.zeros, 0)
        k = scalar.steps % max(scalar.layout.parities, scalar.layout.buffers)
        if k not in self._launches:
            self._launches[k] = self._bound(k % scalar.layout.parities)
        self.lists.update()
        for launch, begin, end in self._launches[k]:
            launch(self.lists.stream, begin, end)
        return partial(HostCopy.read, self._copies.start(self._sums))

    def _bound(self, parity: int) -> list[Launched]:
        """The kernels for steps of this parity, bound to the current populations."""
        bind, arrays = self.scalar.bind, self._arrays | self.scalar.current()
        found = self.lists.measuring(bind, parity, self._ranges, **arrays)
        add = bind("force_sums", sum=self._sums, columns=1, **arrays)
        return [*found, (add, 0, self._sums.size)]


def flux_bytes(
    scalar: Populations, slab: Slab, lists: tuple[EntryList, ...], chunks: Chunks
) -> int:
    """Bytes on the device for the fluxes through these lists."""
    entries = NUMBER_BYTES * sum(each.cells.size for each in lists)
    sums = (CHUNK_BYTES + 8) * chunks.order.size + (NUMBER_BYTES + 8) * len(chunks.group)
    return int(list_bytes(scalar.case, slab, lists, staged=True).sum()) + entries + sums


def over_owners(owners: tuple[Owner, ...], parts: list[tuple[NDArray, Floats]]) -> Floats:
    """The flux of each owner, (owners,), from the groups and sums of each rank, in their order."""
    totals = np.zeros(len(owners))
    for groups, sums in parts:
        np.add.at(totals, groups[:, 1], sums)
    return totals
