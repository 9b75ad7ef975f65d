"""The forces on all measured bodies, over links or over cells as their boundaries act."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.codegen.program import BODY_CELLS, MOVED_CELLS, MOVER
from mpilbm.physics.lattices import AXES
from mpilbm.solids import Ints
from mpilbm.solids.body_links import Chunks, selected
from mpilbm.solids.build import Geometry
from mpilbm.solver.boundary_lists import Arrays, BoundaryLists, Launched, chained_entries
from mpilbm.solver.fields.plane_sums import Read
from mpilbm.solver.memory_plan import CELL_BYTES, force_columns, force_names, weighed_in_cells
from mpilbm.solver.momentum_exchange import Floats, LinkSums, MomentumExchange
from mpilbm.solver.moving_bodies import MovingBodies
from mpilbm.solver.populations import Populations


class CellForces(LinkSums):
    """Bodies that act in cells: sums of Boundary.taken over cells.

    The cells are added in the order of their numbers, in chunks. Boundary lists of cells that are
    also at a wall or at another body are evaluated again, as the step does.

    kernel  the role of the kernel that computes the sums of chunks
    bodies  the numbers of the bodies, ascending
    found   the cells, ascending numbers
    member  int32, the body of each cell, as a place in `bodies`
    """

    kernel = BODY_CELLS

    def __init__(
        self,
        fluid: Populations,
        step_lists: BoundaryLists,
        geometry: Geometry,
        bodies: Sequence[int],
        found: Ints,
        member: NDArray[np.int32],
    ):
        case, device = fluid.case, fluid.device
        device.require(CELL_BYTES * found.size, "the forces in cells of bodies")
        numbers = np.array([case.needs.weighed.index(k) for k in bodies], np.int32)
        chunks = Chunks.of(fluid.slab, [(found, numbers[member])])
        beside = ((each, np.isin(each.cells, found)) for each in geometry.lists)
        staged = tuple(selected((each, flags) for each, flags in beside if flags.any()))
        entries = tuple(each.entries for each in staged)
        lists = BoundaryLists(fluid, replace(geometry, lists=entries), staged=True)
        super().__init__(fluid, lists, chunks, len(force_names(case)))
        self._before = self._state_copies(staged, step_lists)
        self.groups, self._width = chunks.group, force_columns(case)
        listed = np.concatenate([np.empty(0, np.int64), *(each.cells for each in entries)])
        once, first, following = chained_entries(listed)
        head = np.full(found.size, -1, np.int32)
        head[np.searchsorted(found, once)] = first
        frames = [case.frames[body] for body in bodies]
        box = zip(AXES, case.domain.size, strict=False)
        self._own: Arrays = {f"box_{axis}": size for axis, size in box}
        cells = fluid.grid.packed(found, geometry).words
        arrays: dict[str, NDArray[Any]] = {
            "cells": cells,
            "member": member,
            "frames": np.ravel(frames).astype(float),
            "head": head,
            "following": following,
        }
        self._own |= {name: device.upload(values) for name, values in arrays.items()}

    @classmethod
    def at_rest(
        cls, fluid: Populations, step_lists: BoundaryLists, geometry: Geometry
    ) -> "CellForces":
        """The forces on the bodies of `case.needs.weighed` that are at rest."""
        assert geometry.shares is not None, "the case has bodies that act in cells"
        bodies = weighed_in_cells(fluid.case)
        found = np.flatnonzero(geometry.shares.cells_of(bodies))
        body = geometry.shares.body.reshape(-1)[found]
        member = np.searchsorted(np.add(bodies, 1), body).astype(np.int32)
        return cls(fluid, step_lists, geometry, bodies, found, member)

    def start(self) -> Callable[[], Floats]:
        """Enqueue the sums of the next step, by `groups`; the parts of `split` are 0."""
        copy = self.start_groups()

        def padded() -> Floats:
            found = np.zeros((len(self.groups), self._width))
            if copy:
                found[:, : self.columns] = copy()
            return found

        return padded

    def _measuring(
        self, parity: int, ranges: tuple[tuple[int, int], ...], arrays: Arrays
    ) -> list[Launched]:
        bind, given = self.fluid.bind, arrays | self.lists.staged_arrays() | self._own
        found = self.lists.supplying(bind, parity, **arrays) if self.lists.count else []
        return [*found, *((bind(f"{self.kernel}_{parity}", **given), *each) for each in ranges)]


class MovingForces(CellForces):
    """The force on a moving body: the sum over all cells that it may reach during the run.

    Cells that it does not fill in the step add 0. The torque is about its centre.
    """

    kernel = MOVED_CELLS

    def __init__(
        self,
        fluid: Populations,
        step_lists: BoundaryLists,
        geometry: Geometry,
        moving: MovingBodies,
        place: int,
    ):
        body = moving.bodies[place]
        found = np.flatnonzero(body.reachable(fluid.slab) & (geometry.solid == 0))
        member = np.zeros(found.size, np.int32)
        super().__init__(fluid, step_lists, geometry, [body.number], found, member)
        self._moving, self._body = moving, body
        self._own[MOVER] = 1 + place

    def start_groups(self) -> Read | None:
        """As LinkSums, with the shares of the next step, which the sums of other bodies lack."""
        steps = self.fluid.steps
        self._body.require_reached(steps + 1)
        self._moving.update(steps + 1)
        read = super().start_groups()
        self._moving.update(steps)
        return read


class FreeForces:
    """The force on a body that moves freely: that which its motion uses, a group of one slab."""

    def __init__(self, fluid: Populations, moving: MovingBodies, place: int):
        self._clock, self._moving, self._body = fluid.context.clock, moving, moving.bodies[place]
        number, self._width = (
            fluid.case.needs.weighed.index(self._body.number),
            force_columns(fluid.case),
        )
        self.groups = np.array([[0, number]][: fluid.slab.rank == 0], np.int64).reshape(-1, 2)

    def start(self) -> Callable[[], Floats]:
        """Enqueue the force and torque of the next step, a row for this body; collective."""
        steps, free = self._clock.steps, self._moving.free
        assert free is not None, "this body moves freely"
        self._moving.begin_step(steps)
        self._moving.update(steps)
        found = np.zeros((1, self._width))
        if steps >= 0:
            taken = free.taken(self._body.number, steps + 1)
            found[0, : taken.size] = taken
        return lambda: found[: len(self.groups)]


class BodyForces:
    """The sums of the bodies of `case.needs.weighed` in each plane.

    groups  int64 (groups, 2), plane of the slab, and number of the body in `weighed`
    links   of bodies with links, None without any
    """

    def __init__(
        self,
        fluid: Populations,
        step_lists: BoundaryLists,
        geometry: Geometry,
        moving: MovingBodies | None = None,
    ):
        weighed = fluid.case.needs.weighed
        at_rest = weighed_in_cells(fluid.case)
        moved = [k for k, b in enumerate(moving.bodies) if b.number in weighed] if moving else []
        given = fluid, step_lists, geometry
        on_links = len(weighed) > len(at_rest) + len(moved)
        self.links = MomentumExchange(*given) if on_links else None
        parts = (self.links, CellForces.at_rest(*given) if at_rest else None)
        self._parts: list[MomentumExchange | CellForces | FreeForces] = [p for p in parts if p]
        for place in moved:
            assert moving, "moved bodies are among them"
            free = moving.bodies[place].motion.responds
            part = FreeForces(fluid, moving, place) if free else MovingForces(*given, moving, place)
            self._parts.append(part)
        self.groups = np.concatenate([part.groups for part in self._parts])

    def start(self) -> Callable[[], Floats]:
        """Enqueue the sums of the next step, see MomentumExchange.start; in the order of groups."""
        found = [part.start() for part in self._parts]
        return lambda: np.concatenate([copied() for copied in found])
