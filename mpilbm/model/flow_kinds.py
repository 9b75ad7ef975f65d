"""Which of the flows of the stability map (limits.py) a case resembles."""

from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from mpilbm.core.formulas.parser import Formula
from mpilbm.core.formulas.trees import numeric
from mpilbm.core.formulas.values import unramped
from mpilbm.model.case import Case

if TYPE_CHECKING:
    from mpilbm.physics.boundaries import Boundary

SAMPLES = 16  # points at which a formula is evaluated


def flows(case: Case) -> tuple[str, ...]:
    """Return the measured flows that are similar to the case, from its boundaries."""
    faces = case.boundaries
    through = [face for face in faces if face.face_flow.crosses and not _slides(case, face)]
    walls = [f for f in faces if f not in through] + [body.boundary for body in case.bodies]
    velocities = (getattr(wall, "velocity", None) or () for wall in walls)
    moving = [velocity for velocity in velocities if any(velocity)]
    inflows = [getattr(face, "velocity", None) for face in through]
    if case.bodies and moving and all(velocity in inflows for velocity in moving):
        return ("road",)
    found = ("cavity",) * bool(moving) + ("body",) * bool(through or case.bodies)
    return found or (("walls",) if faces else ("vortex",))


def _slides(case: Case, face: "Boundary") -> bool:
    """Whether a face is a no-slip wall that moves along itself: its velocity across it is 0.

    Formulas are evaluated at SAMPLES points and times; a function that is no formula counts as 0.
    """
    velocity = face.wall_velocity
    if velocity is None:
        return False
    across = (velocity["xyz".index(name[0])] for name in face.where)
    return not any(np.any(_sampled(case, u)) for u in across)


def _sampled(case: Case, value: Any) -> Any:
    """Numbers of a given value: those of an array or a file, or some of a formula."""
    value = unramped(value)
    if not isinstance(value, str):
        return value if isinstance(value, int | float) else getattr(value, "values", 0)
    shares = np.arange(1, SAMPLES + 1) * sqrt(2) % 1
    sizes = dict(zip(("nx", "ny", "nz"), case.domain.size, strict=False))
    places = {name[1]: size * (shares * k % 1) for k, (name, size) in enumerate(sizes.items(), 1)}
    with np.errstate(all="ignore"):
        return numeric(Formula(value).tree, sizes | places | {"t": 1000 * shares})
