"""The shares and velocities of moving bodies on the device, at the time of each step."""

import numpy as np
from numpy.typing import NDArray

from mpilbm.backends.interfaces import Runner
from mpilbm.codegen.program import (
    BETWEEN,
    CLEAR,
    CURSORS,
    MOTION,
    MOTIONS,
    MOVE,
    NEXT,
    RESTING,
)
from mpilbm.layouts.grid import Grid
from mpilbm.solids.moving_bodies import AHEAD, MovingBody, require_continuous, table
from mpilbm.solver.context import SlabContext
from mpilbm.solver.timed_values import TimedArray


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

    The device knows which motion is the next one, so that steps can be recorded. A pass of two
    steps has arrays of its own for its first step, see BETWEEN.

    ahead  whether the motion follows from the time alone: steps can be enqueued ahead of it
    """

    def __init__(self, context: SlabContext):
        self._context, self.bodies = context, MovingBody.all(context.case)
        self.ahead = not any(body.motion.responds for body in self.bodies)
        tables, queue = context.tables, (context.device, context.bulk)
        self._motions = TimedArray(*queue, tables[MOTIONS], lambda t: self._table)
        self._cursors = TimedArray(*queue, tables[CURSORS], self._places)
        self._table, self._first, self._end = np.zeros(0), 0, 0  # motions of times first … end - 1
        self._next: int | None = None  # the time of the next motion, if the device knows it
        self._launches = self._bound({})
        between = {name: tables[other] for name, other in BETWEEN.items() if other in tables}
        self._launches_between = self._bound(between) if between else []
        self._t: int | None = None  # the time of the arrays
        self._t_between: int | None = None  # that of the arrays between the steps of a pass
        self.update(context.clock.steps)

    def _bound(self, arrays: dict) -> list[tuple[Runner, int]]:
        """The launches that compute the arrays of the next time, and their numbers of entries."""
        context, numbers = self._context, {"movers": len(self.bodies)}
        width = context.tables[MOTION].size
        found: list[tuple[Runner, int]] = [(context.bind(NEXT, numbers=width, **arrays), width)]
        for k, body in enumerate(self.bodies, 1):
            for planes in self._planes():
                given = {"mover": k, **planes, **numbers, **arrays}
                found.append((context.bind(MOVE, **given), body.cells))
        return found

    def _planes(self) -> list[dict[str, int]]:
        """The planes of the launches for a body: first, end, and those of the box below the array.

        Those of the slab; where kernels read ghost planes also these, which may be at the other end
        of a periodic axis.
        """
        grid, slab = self._context.grid, self._context.slab
        ghost, end, n = grid.ghost, grid.ghost + slab.planes, slab.shape[0]
        below = slab.begin - ghost
        if ghost == 1 or grid.wraps:
            return [{"end_plane": end, "below": below}]
        turns = [0]
        if slab.periodic:
            turns += [-n] * (slab.begin < ghost) + [n] * (slab.end + ghost > n)
        return [{"first": 0, "end_plane": end + ghost, "below": below + turn} for turn in turns]

    def prepare(self, t: int, steps: int) -> None:
        """Provide the motions of so many steps from t on, which follow. Raises CaseError."""
        self.update(t)
        self._provide(t + 1, steps)
        self._t = t + steps

    def enqueue(self) -> None:
        """Enqueue the arrays at the next time, one of those for which `prepare` was called."""
        self._run(self._launches)

    def enqueue_pair(self) -> None:
        """As two calls of `enqueue`; those of the first time are in the arrays between the steps."""
        self._run(self._launches_between)
        self._run(self._launches)

    def begin_pairs(self, t: int, steps: int) -> None:
        """Call it before `enqueue_pair` for so many steps from t on."""
        if self._t_between != t - 1:
            tables = self._context.tables
            self._clear({name: tables[other] for name, other in BETWEEN.items()})
        self._t_between = t + steps - 1

    def update(self, t: int) -> None:
        """Enqueue the arrays at time t; before step 0 those at t = 0. Raises CaseError."""
        t = max(t, 0)
        if t == self._t:
            return
        if self._t is None or abs(t - self._t) > 1:
            self._clear({})
        self._provide(t, 1)
        self.enqueue()
        self._t = t

    def _provide(self, first: int, count: int) -> None:
        """Let the motions of so many times follow one another, from `first` on."""
        if first < self._first or first + count > self._end:
            begin, last = max(0, first - 1), self._context.case.run.last
            end = max(min(begin + AHEAD, last + 1), first + count) if self.ahead else first + count
            times = np.arange(begin, end, dtype=float)
            times = times[: require_continuous(self.bodies, times, first + count - begin)]
            self._table = np.zeros((AHEAD, self._context.tables[MOTION].size))
            self._table[: len(times)] = table(self.bodies, times).reshape(len(times), -1)
            self._first, self._end, self._next = begin, begin + len(times), None
            self._motions.update(begin)
        if self._next != first:
            self._cursors.update(first)
        self._next = first + count

    def _places(self, t: float) -> NDArray[np.int32]:
        """The cursors at which the next motion is that of time t."""
        return np.full(self._context.tables[CURSORS].size, t - self._first, np.int32)

    def _run(self, launches: list[tuple[Runner, int]]) -> None:
        for launch, count in launches:
            launch(self._context.bulk, 0, count)

    def _clear(self, arrays: dict) -> None:
        """Set the shares to those of bodies at rest."""
        context = self._context
        assert isinstance(context.grid, Grid), "other layouts refuse bodies that act in cells"
        context.bind(CLEAR, **arrays)(context.bulk, 0, context.tables[RESTING].size)
