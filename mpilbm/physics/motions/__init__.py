"""Motions of bodies: where a rigid body is at a time, and how it moves.

One file for each motion. To add one, write a file with a class derived from `Motion` and
`@register("motions", name)`. The position of a body on a given path follows from the time alone:
all ranks compute it in float64 from the same numbers, and a checkpoint does not contain it. A
`Responding` motion follows from the force of each step, see solver/free_bodies.py; checkpoints
contain the state of its body.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.formulas.course import Course
from mpilbm.core.formulas.parser import FormulaError
from mpilbm.core.formulas.values import Value
from mpilbm.core.registry import Parameters
from mpilbm.model.case import BoundedLattice, Case
from mpilbm.physics.rigid_body import Inertia, State

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Placement:
    """A rigid body at a time, or at n times; vectors have 3 components, of which 2D uses x and y.

    A point X of the shape, as it is given in the case, is at x = point + R (X - origin), with the
    velocity u = velocity + spin x (x - point).

    rotation  R, (3, 3) or (n, 3, 3)
    origin    (3,), in the coordinates of the shape
    point     (3,) or (n, 3), the place of the origin; outside the box for a body that has crossed
              periodic faces
    velocity  (3,) or (n, 3), of this point, cells/step
    spin      (3,) or (n, 3), the angular velocity, rad/step
    angle     () or (n,), the angle about the axis of the rotation, rad
    """

    rotation: Floats
    origin: Floats
    point: Floats
    velocity: Floats
    spin: Floats
    angle: Floats

    def of(self, X: Floats) -> Floats:
        """The place of the point X of the shape, (3,) or (n, 3)."""
        return self.point + self.rotation @ (X - self.origin)

    def velocity_at(self, x: Floats) -> Floats:
        """The velocity at the place x."""
        return self.velocity + np.cross(self.spin, x - self.point)


class Motion(Parameters):
    """How a body moves; the base class of all motions.

    responds  whether the force on the body determines the motion, see Responding: its next place is
              known only after the step
    """

    responds: ClassVar[bool] = False

    def placement(self, t: float | Floats, centre: Floats) -> Placement:
        """Return the placement at time t in steps, a number or an array (n,).

        centre: (3,), the centre of the shape as the case gives it; z = 0 in 2D. The velocity must
        be the derivative of the position.
        """
        raise NotImplementedError

    def files(self) -> list[Path]:
        """The files that the motion reads."""
        return []

    def resolved(self, case: Case) -> Self:
        """Return the motion with the data of its files; ValueError for an invalid one.

        It is called once, before anything else; `case.directory` is the folder to which paths are
        relative.
        """
        return self

    def problems(self, case: Case) -> list[str]:
        """Errors in the parameters, one line each."""
        return []


class Responding(Motion):
    """A motion that follows from the force on the body; `placement` is that at t = 0.

    density  of the body; that of the fluid at rest is 1
    contact  the gap in cells at which the repulsion begins, see solids/contacts.py
    """

    responds: ClassVar[bool] = True
    density: float
    contact: float

    def weight(self, volume: float, D: int) -> Floats:
        """The weight less that of the displaced fluid, (3,)."""
        raise NotImplementedError

    def strength(self, volume: float, D: int, contact: float) -> float:
        """The repulsion of bodies that touch, which begins at the gap `contact`."""
        raise NotImplementedError

    def inertia(
        self, volume: float, moments: Floats, endless: tuple[int, ...], D: int, rest: Floats
    ) -> Inertia:
        """What determines the motion of a shape, which is infinite along `endless` axes.

        volume, moments: those of rigid_body.Inertia; rest: (3,), the centre in the case.
        """
        raise NotImplementedError

    def start(self, inertia: Inertia, centre: Floats) -> State:
        """The state at t = 0."""
        raise NotImplementedError


def wrong_formulas(given: tuple[Value, ...]) -> list[tuple[int, str]]:
    """(place, message) of each invalid formula of t."""
    found = []
    for k, value in enumerate(given):
        try:
            Course(value)
        except FormulaError as error:
            found.append((k, str(error)))
    return found


def moving(case: BoundedLattice) -> tuple[int, ...]:
    """Numbers of the bodies that move."""
    return tuple(k for k, body in enumerate(case.bodies) if body.motion is not None)


def responding(case: BoundedLattice) -> tuple[int, ...]:
    """Numbers of the bodies whose motion follows from the force on them."""
    return tuple(k for k, body in enumerate(case.bodies) if body.motion and body.motion.responds)
