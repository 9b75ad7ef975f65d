"""The bodies that move, as a program sees them between two steps."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpilbm.outputs import Context
from mpilbm.solids.free_path import FreePath
from mpilbm.solids.moving_bodies import MovingBody

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MovedBody:
    """A body that moves, at the present step, in lattice units.

    position  (D,), of the centre of the shape; beyond a periodic face it is outside of the box
    velocity  (D,), of the centre
    rotation  (3, 3), from the shape in the case to the shape now
    angle     about the axis of the motion, rad
    rate      (3,), angular velocity, rad/step
    force     (D,), of the fluid around the body in the step that ended now; None for a body on a
              given path, whose force an output `body_forces` computes
    """

    position: Floats
    velocity: Floats
    rotation: Floats
    angle: float
    rate: Floats
    force: Floats | None


def of_run(context: Context) -> dict[str, MovedBody]:
    """The bodies that move, by label; collective."""
    solver = context.solver
    if solver.moving is None:
        return {}
    if solver.moving.free:
        solver.moving.free.take()
    bodies = solver.moving.bodies
    labels = (context.case.bodies[body.number].label for body in bodies)
    return dict(zip(labels, (_at(body, max(solver.steps, 0)) for body in bodies), strict=True))


def _at(body: MovingBody, t: int) -> MovedBody:
    at, D, force = body.placement(t), body.case.dimensions, None
    if isinstance(body.motion, FreePath):
        state = body.motion.at(t)
        force = (state.force + state.gained)[:D]
    place, velocity = body.centre(t)[:D], body.velocity(t)[:D]
    return MovedBody(place, velocity, at.rotation, float(at.angle), at.spin, force)
