"""The largest speeds that the numbers and formulas of boundaries reach during a run."""

from math import hypot

import numpy as np

from mpilbm.expressions import Formula

ALONG = 33  # points along each side of a face or body at which formulas are evaluated
EVALUATIONS = 10**6  # of a formula; where there are more steps some are left out


def fastest(case, boundary, shape=None) -> tuple[float, str]:
    """The largest |velocity| of a boundary between t = 0 and the last step, and when it is reached.

    Formulas of t alone are evaluated at every step, others at some points of the face, or within
    the shape of a body (of the whole box for a mask).
    """
    velocity = getattr(boundary, "velocity", None) or ()
    formulas = [Formula(v) for v in velocity if isinstance(v, str)]
    names = frozenset().union(*(formula.names for formula in formulas))
    if not names & {"x", "y", "z", "t"}:
        return hypot(*(_at(v, _box(case)) for v in velocity)), ""
    places = _places(case, boundary, shape) if names & {"x", "y", "z"} else {}
    points = next((place.size for place in places.values()), 1)
    steps = case.run.steps if "t" in names else 0
    most = max(2, EVALUATIONS // max(1, points))
    t = np.unique(np.linspace(0, steps, min(steps + 1, most)).astype(np.int64))
    values = _box(case) | places | {"t": t[:, None].astype(np.float64)}
    speed = np.sqrt(sum(np.square(_at(v, values)) for v in velocity))
    speed = np.nan_to_num(np.broadcast_to(speed, (t.size, max(1, points))), nan=np.inf)
    if not speed.size:
        return 0.0, ""
    when = t[np.unravel_index(speed.argmax(), speed.shape)[0]]
    return float(speed.max()), f" at t = {when}" if "t" in names else ""


def _at(value, names: dict):
    """A number, or a formula with values for its names."""
    return Formula(value).evaluate(**names) if isinstance(value, str) else float(value)


def _box(case) -> dict:
    """nx, ny and nz."""
    return dict(zip(("nx", "ny", "nz"), case.domain.size, strict=False))


def _places(case, boundary, shape) -> dict:
    """Coordinates of points where a boundary is, by axis, each (1, points)."""
    size = case.domain.size
    lower, upper = shape.bounds() if shape else ((0,) * len(size), size)
    found = []
    for face in boundary.where or ("",):
        sides = [np.linspace(a + 0.5, max(b - 0.5, a + 0.5), min(ALONG, int(np.ceil(b - a)) or 1))
                 for a, b in zip(lower, upper, strict=True)]  # fmt: skip
        if face:
            axis = "xyz".index(face[0])
            sides[axis] = sides[axis][[0 if face[1] == "-" else -1]]
        points = np.array([side.reshape(-1) for side in np.meshgrid(*sides, indexing="ij")])
        found.append(points[:, shape.inside(*points)] if shape else points)
    points = np.concatenate(found, axis=1)
    return {axis: row[None] for axis, row in zip("xyz", points, strict=False)}
