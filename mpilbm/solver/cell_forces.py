"""The forces on bodies that act in cells: sums over the cells of which they fill a share."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.case.model import Case
from mpilbm.codegen.program import BODY_CELLS
from mpilbm.physics.lattices import AXES
from mpilbm.solids import Ints
from mpilbm.solids.body_links import Chunks, Numbers, selected
from mpilbm.solids.build import Geometry
from mpilbm.solver.boundary_lists import Arrays, BoundaryLists, Launched, chained_entries
from mpilbm.solver.fields.plane_sums import Read
from mpilbm.solver.memory_plan import CELL_BYTES, force_columns, force_names, weighed_in_cells
from mpilbm.solver.momentum_exchange import LinkSums
from mpilbm.solver.populations import Populations

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class OfBody:
    """A body as the owner of cells."""

    place: int


@dataclass(frozen=True, eq=False)
class BodyCells:
    """The cells of a slab of which measured bodies fill a share, see body_links.Owned."""

    cells: Ints
    member: Numbers
    owners: tuple[OfBody, ...]

    @classmethod
    def find(cls, case: Case, geometry: Geometry) -> "BodyCells":
        """The cells of the bodies of `case.needs.weighed`, in ascending order."""
        assert geometry.shares is not None, "the case has bodies that act in cells"
        wanted = weighed_in_cells(case)
        cells = np.flatnonzero(geometry.shares.cells_of(wanted))
        body = geometry.shares.body.reshape(-1)[cells]
        member = np.searchsorted(np.add(wanted, 1), body).astype(np.int32)
        return cls(cells, member, tuple(OfBody(k) for k in wanted))


class CellForces(LinkSums):
    """The bodies of `case.needs.weighed` that act in cells: sums of Boundary.taken over cells.

    The cells are added in the order of their numbers, in chunks as those of links. Boundary lists
    of cells that are also at a wall or at another body are evaluated again, as the step does.
    """

    def __init__(self, fluid: Populations, step_lists: BoundaryLists, geometry: Geometry):
        case, device = fluid.case, fluid.device
        found = BodyCells.find(case, geometry)
        device.require(CELL_BYTES * found.cells.size, "the forces in cells of bodies")
        numbers = {each.place: case.needs.weighed.index(each.place) for each in found.owners}
        chunks = Chunks.of(fluid.slab, [found], numbers)
        beside = ((each, np.isin(each.cells, found.cells)) for each in geometry.lists)
        staged = tuple(selected((each, flags) for each, flags in beside if flags.any()))
        entries = tuple(each.entries for each in staged)
        lists = BoundaryLists(fluid, replace(geometry, lists=entries), staged=True)
        super().__init__(fluid, lists, chunks, len(force_names(case)))
        self._before = self._state_copies(staged, step_lists)
        self.groups, self._width = chunks.group, force_columns(case)
        listed = np.concatenate([np.empty(0, np.int64), *(each.cells for each in entries)])
        once, first, following = chained_entries(listed)
        head = np.full(found.cells.size, -1, np.int32)
        head[np.searchsorted(found.cells, once)] = first
        frames = [case.frames[owner.place] for owner in found.owners]
        box = zip(AXES, case.domain.size, strict=False)
        self._own: Arrays = {f"box_{axis}": size for axis, size in box}
        cells = fluid.grid.packed(found.cells, geometry).words
        arrays: dict[str, NDArray[Any]] = {
            "cells": cells,
            "member": found.member,
            "frames": np.ravel(frames).astype(float),
            "head": head,
            "following": following,
        }
        self._own |= {name: device.upload(values) for name, values in arrays.items()}

    def start(self) -> Callable[[], Floats]:
        """As MomentumExchange.start, for these bodies; zeros in place of the parts of `split`."""
        return partial(self._padded, self.start_groups())

    def _padded(self, copy: Read | None) -> Floats:
        found = np.zeros((len(self.groups), self._width))
        if copy:
            found[:, : self.columns] = copy()
        return found

    def _measuring(
        self, parity: int, ranges: tuple[tuple[int, int], ...], arrays: Arrays
    ) -> list[Launched]:
        bind, given = self.fluid.bind, arrays | self.lists.staged_arrays() | self._own
        found = self.lists.supplying(bind, parity, **arrays) if self.lists.count else []
        return [*found, *((bind(f"{BODY_CELLS}_{parity}", **given), *each) for each in ranges)]
