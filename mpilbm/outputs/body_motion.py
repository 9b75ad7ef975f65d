"""The place and the motion of a moving body, and the inertia of the fluid in it, for its forces."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpilbm.case.case import Case
from mpilbm.core.units import LENGTH, VELOCITY
from mpilbm.physics.lattices import AXES
from mpilbm.physics.motions import Placement
from mpilbm.solids.moving_bodies import MovingBody

Floats = NDArray[np.float64]


def motion_of(
    case: Case, number: int, bodies: Sequence[MovingBody] | None = None
) -> "BodyMotion | None":
    """The motion of a body of the case; None at rest.

    bodies: those of a run, with their paths.
    """
    bodies = MovingBody.all(case) if bodies is None else bodies
    found = (each for each in bodies if each.number == number)
    return next((BodyMotion(each) for each in found), None)


class BodyMotion:
    """What the file of a moving body contains besides the force, and corrections of the force."""

    def __init__(self, body: MovingBody):
        self._body, self._D = body, body.case.dimensions

    def header(self) -> list[str]:
        """Names of the columns: place and velocity of the centre, angle; then those in SI."""
        axes, units = AXES[: self._D], self._body.case.units
        names = [f"position_{a} (cells)" for a in axes]
        names += [f"velocity_{a} (cells/step)" for a in axes] + ["angle (rad)"]
        if units:
            names += [*(f"position_{a}_m" for a in axes), *(f"velocity_{a}_m_per_s" for a in axes)]
        return names

    def row(self, t: float) -> list[float]:
        """The values of these columns at time t; positions do not jump at periodic faces."""
        body, D, units = self._body, self._D, self._body.case.units
        at, u = body.centre(t)[:D], body.velocity(t)[:D]
        found = [*at, *u, float(body.placement(t).angle)]
        if units:
            found += [*units.to_si(at, LENGTH), *units.to_si(u, VELOCITY)]
        return found

    def during(self, step: int) -> "MotionInStep":
        """The motion in the step after `step`; call it before further steps."""
        body = self._body
        (p, L), (p_next, L_next) = body.momentum(step), body.momentum(step + 1)
        at, row = body.placement(step + 1), self.row(step + 0.5)
        return MotionInStep(p_next - p, L_next - L, at, at.of(body.middle), row)

    def corrected(
        self, step: int, force: Floats, torque: Floats, centre: tuple[float, ...] | None
    ) -> tuple[Floats, Floats]:
        """Force and torque on the body during a step, without the inertia of the fluid in it."""
        return self.during(step).corrected(force, torque, centre)


@dataclass(frozen=True, eq=False)
class MotionInStep:
    """The motion of a body in a step.

    momentum, angular  (3,), what the fluid in the body, of density 1, gained
    at      the placement at the end of the step; `middle`: (3,), the centre of the shape there
    row     see BodyMotion.row, in the middle of the step
    """

    momentum: Floats
    angular: Floats
    at: Placement
    middle: Floats
    row: list[float]

    def corrected(
        self, force: Floats, torque: Floats, centre: tuple[float, ...] | None
    ) -> tuple[Floats, Floats]:
        """Force and torque of the fluid around the body, without the inertia of that in it.

        The momentum that the body takes from the cells in a step contains the change of the
        momentum of the fluid within it, which moves with the body and has the density 1:

            F = F_cells + d(V u)/dt,   T = T_cells + d(I omega)/dt

        from the values before and after the step. [Feng & Michaelides 2009, Comput. Fluids 38, 370]
        force (D,), and torque (3,), in 2D (1,), about the centre of the shape; the result is about
        `centre`, a point in the frame of the shape that moves with the body, by default the centre
        of a shape that does not turn about another point, else a point of the axis.
        """
        D = force.size
        whole, turn = np.zeros(3), np.zeros(3)
        whole[:D] = force
        whole += self.momentum
        turn[-torque.size :] = torque
        turn += self.angular
        about = self.at.point
        if centre is not None:
            about = self.at.of(np.append(centre, [0.0] * (3 - D)))
        turn += np.cross(self.middle - about, whole)
        return whole[:D], turn[-torque.size :]
