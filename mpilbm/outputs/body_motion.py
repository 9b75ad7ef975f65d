"""The place and the motion of a moving body, and the inertia of the fluid in it, for its forces."""

import numpy as np
from numpy.typing import NDArray

from mpilbm.case.case import Case
from mpilbm.core.units import LENGTH, VELOCITY
from mpilbm.physics.lattices import AXES
from mpilbm.solids.moving_bodies import MovingBody

Floats = NDArray[np.float64]


def motion_of(case: Case, number: int) -> "BodyMotion | None":
    """The motion of a body of the case; None at rest."""
    found = (each for each in MovingBody.all(case) if each.number == number)
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

    def corrected(
        self, step: int, force: Floats, torque: Floats, centre: tuple[float, ...] | None
    ) -> tuple[Floats, Floats]:
        """Force and torque of the fluid around the body, without the inertia of that in it.

        The momentum that the body takes from the cells in a step contains the change of the
        momentum of the fluid within it, which moves with the body and has the density 1:

            F = F_cells + d(V u)/dt,   T = T_cells + d(I omega)/dt

        from the values after `step` and `step` + 1 steps. [Feng & Michaelides 2009, Comput. Fluids
        38, 370] force (D,), and torque (3,), in 2D (1,), about the centre of the shape; the result
        is about `centre`, a point in the frame of the shape that moves with the body, by default
        the centre of a shape that does not turn, and a point of the axis of one that does.
        """
        body, D = self._body, self._D
        (p, L), (p_next, L_next) = body.momentum(step), body.momentum(step + 1)
        whole, turn = np.zeros(3), np.zeros(3)
        whole[:D] = force
        whole += p_next - p
        turn[-torque.size :] = torque
        turn += L_next - L
        placement = body.placement(step + 1)
        about = placement.point
        if centre is not None:
            about = placement.of(np.append(centre, [0.0] * (3 - D)))
        turn += np.cross(placement.of(body.middle) - about, whole)
        return whole[:D], turn[-torque.size :]
