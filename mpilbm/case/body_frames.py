"""Coordinates of bodies that continue across periodic faces.

A body that reaches through a periodic face has parts at both faces. Velocities of its wall and the
torque about its centre refer to the coordinates in which its shape is given: there the body is in
one piece, within half a box of its middle. A point x of the box has the coordinate

    x + (n if x < seam else 0) + moved

along an axis of n cells; the seam lies opposite the middle of the body.
"""

import re
from functools import partial
from math import floor
from typing import Any

from mpilbm.case.model import Case
from mpilbm.case.tables.case_file import Body
from mpilbm.core.formulas.parser import Formula, FormulaError
from mpilbm.core.formulas.values import AXES, names_in

Frame = tuple[tuple[float, float], ...]  # (seam, moved) along each axis


def framed(case: Case) -> Case:
    """The case with the frames of its bodies, and formulas of their walls in these coordinates."""
    frames = tuple(_frame(case, body) for body in case.bodies)
    bodies = tuple(map(partial(_with_formulas, case), case.bodies, frames))
    return case.model_copy(update={"bodies": bodies, "frames": frames})


def _frame(case: Case, body: Body) -> Frame:
    """The frame of a body; zeros where coordinates are those of the box."""
    shape, domain = body.shape, case.domain
    if shape is None or len(domain.size) != case.lattice.D or shape.problems(case):
        return ((0.0, 0.0),) * len(domain.size)
    sides = zip(*shape.bounds(), domain.size, domain.periodic, strict=True)
    return tuple(_seam(*side) for side in sides)


def _with_formulas(case: Case, body: Body, frame: Frame) -> Body:
    """The body with formulas of its boundary in the coordinates of the frame."""
    velocity = getattr(body.boundary, "velocity", None)
    if velocity is None or not any(map(any, frame)):
        return body
    moved = _moved(velocity, frame, case.domain.size)
    boundary = body.boundary.model_copy(update={"velocity": moved})
    return body.model_copy(update={"boundary": boundary})


def _seam(lower: float, upper: float, n: int, periodic: bool) -> tuple[float, float]:
    """(seam, moved) along an axis; zeros for a body that no link reaches through a face."""
    reaches = lower <= 0.5 or upper >= n - 0.5
    if not (periodic and reaches and upper - lower < n):
        return 0.0, 0.0
    begin = lower / 2 + upper / 2 - n / 2  # the sum of large numbers may overflow
    moved = n * floor(begin / n)
    return begin - moved, float(moved)


def _moved(value: Any, frame: Frame, size: tuple[int, ...]) -> Any:
    """A value, or a tuple of values, whose formulas use the coordinates of the frame."""
    if isinstance(value, tuple):
        return tuple(_moved(each, frame, size) for each in value)
    if not isinstance(value, str):
        return value
    try:
        Formula(value, names_in(len(size)))
    except FormulaError:
        return value  # reported by the checks of the case
    for axis, (seam, moved), n in zip(AXES, frame, size, strict=False):
        if seam or moved:
            own = f"({axis} + where({axis} < {seam!r}, {n + moved!r}, {moved!r}))"
            value = re.sub(rf"\b{axis}\b", own, value)
    return value
