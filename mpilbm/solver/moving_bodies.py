"""The shares and velocities of moving bodies on the device, at the time of each step."""

from dataclasses import replace

import numpy as np

from mpilbm.codegen.program import MOTION, MOVE, MOVED, SHARE
from mpilbm.layouts.grid import Grid, byte_grid
from mpilbm.physics.motions import Responding
from mpilbm.solids import Floats
from mpilbm.solids.build import Geometry
from mpilbm.solids.free_path import FreePath
from mpilbm.solids.moving_bodies import MovingBody, require_continuous, table
from mpilbm.solver.boundary_lists import BoundaryLists
from mpilbm.solver.context import stored_shares
from mpilbm.solver.free_bodies import FreeBodies
from mpilbm.solver.populations import Populations
from mpilbm.solver.timed_values import TimedArray


class MovingBodies:
    """The moving bodies of a case on a slab.

    After t steps the arrays hold the shares and the motion at time t; a step replaces them between
    the boundary lists and the collision, which uses those at t + 1. A kernel computes the box of
    cells around each body, which also contains the cells that the body has left in this step; all
    in the bulk stream.

    free  the bodies whose motion follows from their force; None without any
    """

    def __init__(self, fluid: Populations, step_lists: BoundaryLists, geometry: Geometry):
        context = self._context = fluid.context
        self.bodies = tuple(_with_path(body) for body in MovingBody.all(context.case))
        responds = any(body.motion.responds for body in self.bodies)
        shared = fluid, step_lists, geometry, self.bodies
        self.free = FreeBodies(*shared) if responds else None
        device, given = context.device, {"movers": len(self.bodies)}
        self._launches = [
            (context.bind(MOVE, mover=k, **planes, **given), body.cells)
            for k, body in enumerate(self.bodies, 1)
            for planes in self._planes()
        ]
        rows, array = self._rows, context.tables[MOTION]
        self._motion = TimedArray(device, context.bulk, array, rows)
        self._t: int | None = None  # the time of the arrays
        self.update(context.clock.steps)

    def _planes(self) -> list[dict[str, int]]:
        """The planes of the launches for a body: first, end, and those of the box below the array.

        Those of the slab; where boundaries read cells away from walls also ghost planes, which may
        be at the other end of a periodic axis.
        """
        context, ghost = self._context, self._context.grid.ghost
        slab, end = context.slab, ghost + context.slab.planes
        if context.case.ghost == 1:
            return [{"end_plane": end}]
        turns = (0, slab.shape[0], -slab.shape[0]) if slab.periodic else (0,)
        below = slab.begin - ghost
        return [{"first": 0, "end_plane": end + ghost, "below": below + turn} for turn in turns]

    def _rows(self, t: float) -> Floats:
        return table(self.bodies, t)

    def update(self, t: int) -> None:
        """Enqueue the arrays at time t; before step 0 those at t = 0. Raises CaseError."""
        t = max(t, 0)
        if t == self._t:
            return
        if self.free:
            self.free.update(t)
        near = self._t is not None and abs(t - self._t) == 1
        if not near:
            self._clear()
        for body in self.bodies:
            if t > body.checked and not body.motion.responds:
                require_continuous(body, t, self._t if near else None)
        self._motion.update(t)
        for launch, cells in self._launches:
            launch(self._context.bulk, 0, cells)
        self._t = t

    def begin_step(self, t: int) -> None:
        """Enqueue the force on free bodies in the step from t to t + 1, before its lists."""
        if self.free and t >= 0:
            self.update(t + 1)
            self.free.weigh(t + 1)

    def _clear(self) -> None:
        """Set the shares to those of bodies at rest."""
        context = self._context
        assert isinstance(context.grid, Grid), "other layouts refuse bodies that act in cells"
        memory = byte_grid(SHARE, context.grid)
        values = stored_shares(context.case, context.geometry, memory, context.slab)
        for name, numbers in ((SHARE, values), (MOVED, np.zeros_like(values))):
            context.device.copy(context.tables[name], numbers, context.bulk)
        context.device.synchronize()


def _with_path(body: MovingBody) -> MovingBody:
    """A free body with its path in this run; other bodies as they are."""
    if not isinstance(body.motion, Responding):
        return body
    label = body.case.bodies[body.number].label
    path = FreePath(body.case, label, body.motion, body.shape, body.size)
    return replace(body, motion=path)
