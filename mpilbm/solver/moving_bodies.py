"""The shares and velocities of moving bodies on the device, at the time of each step."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from mpilbm.backends.interfaces import Array, Runner
from mpilbm.codegen.program import (
    BETWEEN,
    CLEAR,
    CURSORS,
    MOTIONS,
    MOVE,
    NEXT,
    SHARE,
)
from mpilbm.layouts.grid import Grid, byte_grid
from mpilbm.physics.motions import Responding
from mpilbm.solids import Floats
from mpilbm.solids.build import Geometry
from mpilbm.solids.free_path import FreePath
from mpilbm.solids.moving_bodies import AHEAD, WIDTH, MovingBody, require_continuous, table
from mpilbm.solver.boundary_lists import BoundaryLists
from mpilbm.solver.context import SlabContext
from mpilbm.solver.free_bodies import FreeBodies
from mpilbm.solver.populations import Populations
from mpilbm.solver.timed_values import TimedArray


@dataclass
class Block:
    """The arrays `motion` of the times `first` to `end` - 1, (times, numbers)."""

    table: Floats
    first: int = 0
    end: int = 0


class Motions:
    """The motions of the times ahead on the device, which knows which one is the next.

    ahead  whether they follow from the time alone
    """

    def __init__(self, context: SlabContext, bodies: tuple[MovingBody, ...], ahead: bool):
        self._case, self._bodies, self._ahead = context.case, bodies, ahead
        width = (1 + len(bodies)) * WIDTH
        queue, tables = (context.device, context.bulk), context.tables
        block = self._block = Block(np.zeros((AHEAD if ahead else 1, width)))
        self._table = TimedArray(*queue, tables[MOTIONS], lambda _: block.table)
        self._cursors = TimedArray(
            *queue, tables[CURSORS], lambda t: np.full(width, t - block.first, np.int32)
        )
        self._next: int | None = None  # the time of the next motion, if the device knows it

    def provide(self, first: int, count: int) -> None:
        """Let the motions of so many times follow one another, from `first` on. CaseError."""
        block = self._block
        if not self._ahead or first < block.first or first + count > block.end:
            begin, end = max(0, first - 1), first + count
            if self._ahead:
                end = max(end, min(begin + AHEAD, self._case.run.last + 1))
            times = np.arange(begin, end, dtype=float)
            times = times[: require_continuous(self._bodies, times, first + count - begin)]
            if not self._ahead:  # states before it may be unknown
                begin, times = first, times[first - begin :]
            known = table(self._bodies, times).reshape(len(times), -1)
            block.table[: len(times)] = known
            block.first, block.end, self._next = begin, begin + len(times), None
            self._table.update(begin)
        if self._next != first:
            self._cursors.update(first)
        self._next = first + count


class MovingBodies:
    """The moving bodies of a case on a slab.

    After t steps the arrays hold the shares and the motion at time t; a step replaces them between
    the boundary lists and the collision, which uses those at t + 1. A kernel computes the box of
    cells around each body, which also contains the cells that the body has left; all in the bulk
    stream.

    ```
    host    | motions of AHEAD steps |                                        | of further steps |
    stream             | copy | next motion, boxes, step | next motion, boxes, step | …  | copy |
    ```

    Steps can be recorded, because the device knows which motion is the next one. A pass of two
    steps has arrays of its own for its first step, see BETWEEN. With free bodies the host provides
    each motion after the step before, and the arrays at t + 1 precede the boundary lists.

    free   the bodies whose motion follows from their force; None without any
    ahead  whether the motion follows from the time alone: steps can be enqueued ahead of it
    """

    def __init__(self, fluid: Populations, step_lists: BoundaryLists, geometry: Geometry):
        context = self._context = fluid.context
        self.bodies = tuple(_with_path(body) for body in MovingBody.all(context.case))
        self.ahead = not any(body.motion.responds for body in self.bodies)
        self.free = None if self.ahead else FreeBodies(fluid, step_lists, geometry, self.bodies)
        self._width = (1 + len(self.bodies)) * WIDTH
        tables = context.tables
        self._motions = Motions(context, self.bodies, self.ahead)
        self._launches = self._bound({})
        self._launches_between: list[tuple[Runner, int]] = []
        if tables.get(BETWEEN[SHARE], tables[SHARE]) is not tables[SHARE]:
            self._launches_between = self._bound(self._between)
        self._t: int | None = None  # the time of the arrays
        self._t_between: int | None = None  # that of the arrays between the steps of a pass
        self.update(context.clock.steps)

    @property
    def _between(self) -> dict[str, Array | int]:
        """The arrays between the steps of a pass, in place of those after it."""
        return {name: self._context.tables[other] for name, other in BETWEEN.items()}

    def _bound(self, arrays: Mapping[str, Array | int]) -> list[tuple[Runner, int]]:
        """The launches that compute the arrays of the next time, and their numbers of entries."""
        context, numbers = self._context, {"movers": len(self.bodies)}
        width = self._width
        found: list[tuple[Runner, int]] = [(context.bind(NEXT, numbers=width, **arrays), width)]
        for k, body in enumerate(self.bodies, 1):
            for planes in self._planes():
                given = {"mover": k, **planes, **numbers, **arrays}
                found.append((context.bind(MOVE, **given), body.cells))
        return found

    def _planes(self) -> list[dict[str, int]]:
        """The planes of the launches for a body: first, end, and those of the box below the array.

        Those of the slab; where kernels read ghost planes also these, which may be at the other end
        of a periodic axis. One rank needs them where boundaries sample cells beyond a periodic
        face: shares do not wrap around.
        """
        grid, slab = self._context.grid, self._context.slab
        ghost, end, n = grid.ghost, grid.ghost + slab.planes, slab.shape[0]
        below = slab.begin - ghost
        if ghost == 1 or (grid.wraps and self._context.case.ghost == 1):
            return [{"end_plane": end, "below": below}]
        turns = [0]
        if slab.periodic:
            turns += [n] * (slab.begin < ghost) + [-n] * (slab.end + ghost > n)
        return [{"first": 0, "end_plane": end + ghost, "below": below + turn} for turn in turns]

    def prepare(self, t: int, steps: int) -> None:
        """Provide the motions of so many steps from t on, which follow. Raises CaseError.

        Those of free bodies are not known before the steps; `begin_step` provides each of them.
        """
        if self.free:
            return
        self.update(t)
        self._motions.provide(t + 1, steps)
        self._t = t + steps

    def enqueue(self) -> None:
        """Enqueue the arrays at the next time, one of those for which `prepare` was called."""
        if not self.free:
            self._run(self._launches)

    def enqueue_pair(self) -> None:
        """As two calls of `enqueue`; the first one has the arrays between the steps of a pass."""
        self._run(self._launches_between)
        self._run(self._launches)

    def begin_pairs(self, t: int, steps: int) -> None:
        """Call it before `enqueue_pair` for so many steps from t on."""
        if self._t_between != t - 1:
            self._clear(self._between)
        self._t_between = t + steps - 1

    def update(self, t: int) -> None:
        """Enqueue the arrays at time t; before step 0 those at t = 0. Raises CaseError."""
        t = max(t, 0)
        if t == self._t:
            return
        if self.free:
            self.free.update(t)
        if self._t is None or abs(t - self._t) > 1:
            self._clear({})
        self._motions.provide(t, 1)
        self._run(self._launches)
        self._t = t

    def begin_step(self, t: int) -> None:
        """Enqueue the force on free bodies in the step from t to t + 1, before its lists."""
        if self.free and t >= 0:
            self.update(t + 1)
            self.free.weigh(t + 1)

    def _run(self, launches: list[tuple[Runner, int]]) -> None:
        for launch, count in launches:
            launch(self._context.bulk, 0, count)

    def _clear(self, arrays: Mapping[str, Array | int]) -> None:
        """Set the shares to those of bodies at rest."""
        context = self._context
        assert isinstance(context.grid, Grid), "other layouts refuse bodies that act in cells"
        cells = byte_grid(SHARE, context.grid).count
        context.bind(CLEAR, **arrays)(context.bulk, 0, cells)


def _with_path(body: MovingBody) -> MovingBody:
    """A free body with its path in this run; other bodies as they are."""
    if not isinstance(body.motion, Responding):
        return body
    label = body.case.bodies[body.number].label
    path = FreePath(body.case, label, body.motion, body.shape, body.size)
    return replace(body, motion=path)
