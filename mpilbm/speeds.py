"""What the numbers and formulas of boundaries reach during a run, known before it."""

from math import hypot

import numpy as np

from mpilbm.boundaries import key_of
from mpilbm.cell_values import Plane, Series
from mpilbm.expressions import Formula

ALONG = 33  # points along each side of a face or body at which formulas are evaluated
EVALUATIONS = 10**6  # of a formula; where there are more steps some are left out
PLACE = {"x", "y", "z"}


def fastest(case, boundary, shape=None) -> tuple[float, str]:
    """The largest |velocity| of a boundary between t = 0 and the last step, and when it is reached.

    Formulas of t alone are evaluated at every step, others at some points of the face, or within
    the shape of a body (of the whole box for a mask).
    """
    velocity = getattr(boundary, "velocity", None) or ()
    if not any(isinstance(v, str | Series | Plane) for v in velocity):
        return hypot(*velocity), ""
    t, components = _reached(case, boundary, shape, velocity)
    speed = np.sqrt(sum(np.square(v) for v in components))
    if not speed.size:
        return 0.0, ""
    when = t[np.unravel_index(speed.argmax(), speed.shape)[0]]
    return float(speed.max()), f" at t = {when}" if t.size > 1 else ""


def wrong_values(case, boundary, shape=None) -> list[str]:
    """Formulas that are infinite or not a number somewhere, and densities that are none."""
    found = []
    for name, value in boundary.values().items():
        if not isinstance(value, str):
            continue
        t, (reached,) = _reached(case, boundary, shape, (value,))
        allowed = np.isfinite(reached) & ((reached > 0) | (name != "rho"))
        for k, point in np.argwhere(~allowed)[:1]:
            more = "a finite number > 0" if name == "rho" else "finite numbers"
            found.append(
                f"{key_of(name)}: '{value}' is {reached[k, point]:g} at t = {t[k]}; allowed: "
                f"{more}; change the formula"
            )
    return found


def gained(case) -> tuple[float, float]:
    """Volume a step that the velocities given on all faces bring in at t = 0, and what they move.

    Zero where some face leaves the velocity open.
    """
    net = gross = 0.0
    for boundary in case.boundaries:
        velocity = getattr(boundary, "velocity", None)
        if velocity is None and hasattr(boundary, "rho"):
            return 0.0, 0.0
        for face in boundary.where if velocity is not None else ():
            alone = boundary.model_copy(update={"where": (face,)})
            axis = "xyz".index(face[0])
            _, (through,) = _reached(case, alone, None, velocity[axis : axis + 1], along=None)
            area = case.shape[0] * case.shape[1] * case.domain.size[0] / case.domain.size[axis]
            flux = (1 if face[1] == "-" else -1) * float(through[0].mean()) * area
            net, gross = net + flux, gross + float(np.abs(through[0]).mean()) * area
    return net, gross


def _reached(case, boundary, shape, values, along: int | None = ALONG):
    """Times, and each value at (times, points); `along` None: at all cells of a face."""
    if isinstance(values[0], Plane):
        return np.zeros(1), [each.values.reshape(1, -1) for each in values]
    formulas = [Formula(v) if isinstance(v, str) else None for v in values]
    names = frozenset().union(*(formula.names for formula in formulas if formula))
    places = _places(case, boundary, shape, along) if names & PLACE else {}
    points = next((place.size for place in places.values()), 1)
    timed = "t" in names or any(isinstance(v, Series) for v in values)
    steps = case.run.steps if timed else 0
    most = max(2, EVALUATIONS // max(1, points))
    t = np.unique(np.linspace(0, steps, min(steps + 1, most)).astype(np.int64))
    known = dict(zip(("nx", "ny", "nz"), case.domain.size, strict=False))
    known |= places | {"t": t[:, None].astype(np.float64)}
    found = [
        formula.evaluate(**known) if formula else _number(value, known["t"])
        for formula, value in zip(formulas, values, strict=True)
    ]
    return t, [np.broadcast_to(each, (t.size, points)) for each in found]


def _number(value, t):
    """A number, or those of a series at times t."""
    return value.at(t) if isinstance(value, Series) else np.float64(value)


def _places(case, boundary, shape, along) -> dict:
    """Coordinates of points where a boundary is, by axis, each (1, points)."""
    size = case.domain.size
    lower, upper = np.clip(shape.bounds(), 0, size) if shape else ((0,) * len(size), size)
    found = []
    for face in boundary.where or ("",):
        sides = [
            np.linspace(a + 0.5, max(b - 0.5, a + 0.5), min(along or n, int(np.ceil(b - a)) or 1))
            for a, b, n in zip(lower, upper, size, strict=True)
        ]
        if face:
            axis = "xyz".index(face[0])
            sides[axis] = sides[axis][[0 if face[1] == "-" else -1]]
        points = np.array([side.reshape(-1) for side in np.meshgrid(*sides, indexing="ij")])
        found.append(points[:, shape.inside(*points)] if shape else points)
    points = np.concatenate(found, axis=1)
    return {axis: row[None] for axis, row in zip("xyz", points, strict=False)}
