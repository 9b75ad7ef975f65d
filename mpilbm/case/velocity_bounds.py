"""Bounds of velocities and densities during a run, from the numbers and formulas of a case."""

from collections.abc import Iterator, Sequence
from math import hypot, prod, sqrt
from typing import Any, NamedTuple

import numpy as np

from mpilbm.case.model import Case, Fluid
from mpilbm.case.motions import surface_speeds
from mpilbm.core.errors import CaseError
from mpilbm.core.formulas.given_functions import PointValue
from mpilbm.core.formulas.parser import Formula
from mpilbm.core.formulas.values import CellValue, Plane, Series, unramped
from mpilbm.model.limits import DENSITIES, FAST, LARGEST_DENSITY, LEAST_DENSITY
from mpilbm.physics.boundaries import Boundary, key_of

ALONG = 33  # points along each side of a face or body at which formulas are evaluated
FINE = {2: 4096, 3: 256}  # and at TIMES steps, along each side of a face, by dimension: jets
TIMES = 9  # steps of a run at which inflow and outflow are compared
EVALUATIONS = 10**5  # of a formula at most; if a run has more steps, some are left out
BLOCK_CELLS = 2**16  # evaluated together
SAMPLED_CELLS = 2**22  # at most, of the initial fields
PLACE = {"x", "y", "z"}


def fastest(case: Case, boundary: Boundary, shape: Any = None) -> tuple[float, str]:
    """The largest |velocity| of a boundary during the run, and a text with its time.

    If the speed exceeds a limit only after t = 0, the text also says when: the speed of sound or,
    if that is never exceeded, FAST times it. Formulas of t alone are evaluated at every step,
    others at some points of the face or in the shape of a body (for a mask, of the whole box); at
    a face also in all cells, or most, at some steps.
    """
    velocity = getattr(boundary, "velocity", None) or ()
    if all(isinstance(v, int | float) for v in velocity):
        return hypot(*velocity), ""
    found = [sampled(case, boundary, shape, velocity)]
    if boundary.where:
        fine, times = FINE[case.dimensions], _spread(case.run.last, TIMES)
        found.append(sampled(case, boundary, None, velocity, fine, times))
    with np.errstate(over="ignore"):  # an infinite speed is refused like other speeds
        speeds = [(t, np.sqrt(sum(np.square(v) for v in components))) for t, components in found]
    t, speed = max(speeds, key=lambda each: each[1].max(initial=0))
    if not speed.size:
        return 0.0, ""
    fastest_at, most = speed.max(axis=1), float(speed.max())
    cs = float(case.lattice.cs2) ** 0.5
    above = np.flatnonzero(fastest_at > (cs if most > cs else FAST * cs))
    when = f" at t = {t[fastest_at.argmax()]}" if t.size > 1 else ""
    since = f" (above the limit first at t = {t[above[0]]})" if above.size and above[0] else ""
    return most, when + since


class InitialRange(NamedTuple):
    """The largest |u|, and the smallest and largest density, of a fluid at t = 0."""

    speed: float
    least: float
    largest: float


def initial_ranges(case: Case) -> tuple[InitialRange, ...]:
    """The ranges of all fluids; raises CaseError like InitialFields.evaluate."""
    return tuple(initial_range(case, fluid) for fluid in case.fluids)


def initial_range(case: Case, fluid: Fluid) -> InitialRange:
    """The range over all cells; over evenly spaced planes if there are more than SAMPLED_CELLS.

    Raises CaseError like InitialFields.evaluate.
    """
    planes, initial = case.shape[0], fluid.initial
    count = (
        1 if initial.uniform else max(1, min(planes, SAMPLED_CELLS * planes // prod(case.shape)))
    )
    middles = ((2 * k + 1) * planes // (2 * count) for k in range(count))
    pieces = ((plane, plane + 1) for plane in middles)
    found = []
    for begin, end in _blocks(case.shape, 0, planes) if count == planes else pieces:
        rho, u = initial.evaluate(case.shape, begin, end)
        squares = np.add.reduce([u_a**2 for u_a in np.moveaxis(u, -1, 0)])  # faster than axis=-1
        found.append((float(squares.max()), float(rho.min()), float(rho.max())))
    fastest, least, largest = zip(*found, strict=True)
    return InitialRange(sqrt(max(fastest)), min(least), max(largest))


def largest_speed(case: Case, initial: Sequence[InitialRange] = ()) -> tuple[float, str]:
    """The largest |u| given in a case, and the key that gives it: (0, "") if there is none.

    Compares boundaries, bodies and their motions, the `initial` fields (one range for each fluid),
    and the velocities of Reynolds numbers.
    """
    found = [
        (fastest(case, boundary, shape)[0], f"{key}.velocity")
        for key, boundary, shape in case.conditions()
    ]
    found += [(speed, key) for key, speed, _ in surface_speeds(case)]
    found += [
        (each.speed, fluid.initial.key_of_velocity)
        for fluid, each in zip(case.fluids, initial, strict=False)
    ]
    found += [(fluid.velocity or 0.0, case.fluid_key(fluid, "velocity")) for fluid in case.fluids]
    speed, key = max(found, key=lambda one: one[0])
    return speed, key if speed else ""


def require_forces(case: Case, begin: int, end: int) -> None:
    """CaseError if a force on a fluid is not finite in planes begin … end - 1 at t = 0."""
    for number, fluid in enumerate(case.fluids):
        for k, value in enumerate(case.force_on(number)):
            if value.field:
                for block in _blocks(case.shape, begin, end):
                    value.field.planes(*block)  # raises CaseError
            for block in _blocks(case.shape, begin, end) if value.coordinates else ():
                if problem := value.problem(case.domain.size, case.precision.compute, *block):
                    where = f"{case.key(fluid, 'force')}.value.{k}"
                    raise CaseError(problem, where, case.path)


def _blocks(shape: tuple[int, int, int], begin: int, end: int) -> Iterator[tuple[int, int]]:
    """(first, last) of blocks of these planes."""
    step = max(1, BLOCK_CELLS // (shape[1] * shape[2]))
    for first in range(begin, end, step):
        yield first, min(first + step, end)


def wrong_values(case: Case, boundary: Boundary, shape: Any = None) -> list[str]:
    """Formulas with values that are not finite, and densities out of range; without ramps."""
    found = []
    for name, given in boundary.values().items():
        value = unramped(given)
        if not isinstance(value, str | PointValue):
            continue
        t, (values,) = sampled(case, boundary, shape, (value,))
        density = (values >= LEAST_DENSITY) & (values <= LARGEST_DENSITY)
        allowed = np.isfinite(values) & (density | (name != "rho"))
        for k, point in np.argwhere(~allowed)[:1]:
            more = DENSITIES if name == "rho" else "finite numbers"
            what = f"'{value}'" if isinstance(value, str) else f"'{value.function.name}'"
            found.append(
                f"{key_of(name)}: {what} is {values[k, point]:g} at t = {t[k]}; allowed: "
                f"{more}; change the {'formula' if isinstance(value, str) else 'function'}"
            )
        parts = CellValue(name, value, case.lattice.D)
        if allowed.all() and parts.coordinates:
            places = _places(case, boundary, shape, ALONG)
            overflow = parts.overflows(case.domain.size, places, case.precision.compute)
            found += [f"{key_of(name)}: '{value}' {overflow}"] * bool(overflow)
    return found


def at_face(case: Case, boundary: Boundary, face: str, value: Any) -> tuple[np.ndarray, np.ndarray]:
    """Times t, and a value of a boundary at (times, points) of one of its faces."""
    alone = boundary.model_copy(update={"where": (face,)})
    t, (found,) = sampled(case, alone, None, (value,))
    return t, found


def outward_speed(case: Case, boundary: Boundary, face: str) -> tuple[float, str]:
    """The largest given velocity out of the box at a face, and a text with its time, if any."""
    velocity = getattr(boundary, "velocity", ())
    t, through = at_face(case, boundary, face, velocity["xyz".index(face[0])])
    most = (through if face[1] == "+" else -through).max(axis=1)
    return float(most.max()), f" at t = {t[most.argmax()]}" if t.size > 1 else ""


def speed_along(case: Case, boundary: Boundary, face: str) -> tuple[float, str]:
    """The largest speed of a moving wall along a face, and a text with its time, if any.

    That after a ramp, which is the same as during it, or larger.
    """
    velocity, normal = tuple(map(unramped, boundary.wall_velocity or ())), "xyz".index(face[0])
    along = [at_face(case, boundary, face, u) for k, u in enumerate(velocity) if k != normal]
    t, most = along[0][0], np.sqrt(sum(values**2 for _, values in along)).max(axis=1)
    return float(most.max()), f" at t = {t[most.argmax()]}" if t.size > 1 else ""


class Inflow(NamedTuple):
    """The volume `net` that the velocities at the faces add per step, at time t.

    `mean` is the mean of `net` over the run, or 0 if `net` changes its sign.
    """

    net: float
    t: int
    mean: float


def net_inflow(case: Case) -> Inflow | None:
    """The largest net inflow at TIMES steps of the run.

    None if inflow and outflow are equal, or if the velocity at some face is not given.
    """
    t = _spread(case.run.last, TIMES)
    net, gross = np.zeros(t.size), np.zeros(t.size)
    for boundary in case.boundaries:
        velocity = getattr(boundary, "velocity", None)
        if velocity is None and hasattr(boundary, "rho"):
            return None
        if velocity is None:
            continue
        for face in boundary.where:
            alone = boundary.model_copy(update={"where": (face,)})
            axis = "xyz".index(face[0])
            _, (through,) = sampled(case, alone, None, velocity[axis : axis + 1], None, t)
            area = case.shape[0] * case.shape[1] * case.domain.size[0] / case.domain.size[axis]
            net = net + (1 if face[1] == "-" else -1) * through.mean(axis=1) * area
            gross = gross + np.abs(through).mean(axis=1) * area
    most = np.where(np.abs(net) > 1e-6 * gross, np.abs(net), 0).argmax()
    if abs(net[most]) <= 1e-6 * gross[most]:
        return None
    mean = 0.0 if net.min() < 0 < net.max() else float(net.mean())
    return Inflow(float(net[most]), int(t[most]), mean)


def sampled(
    case: Case,
    boundary: Boundary,
    shape: Any,
    values: Sequence,
    along: int | None = ALONG,
    t: np.ndarray | None = None,
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Times t, and each value at (times, points); all cells of a face if `along` is None.

    `values` are numbers, formulas, Series, PointValues or Planes; `shape` is that of a body, or
    None.
    """
    if isinstance(values[0], Plane):
        return np.zeros(1), [each.values.reshape(1, -1) for each in values]
    formulas = [Formula(v) if isinstance(v, str) else None for v in values]
    names = frozenset().union(*(formula.names for formula in formulas if formula))
    functions = [value for value in values if isinstance(value, PointValue)]
    everywhere = bool(names & PLACE or functions)
    places = _places(case, boundary, shape, along) if everywhere else {}
    points = next((place.size for place in places.values()), 1)
    timed = "t" in names or any(
        isinstance(v, Series) or v.timed for v in values if isinstance(v, Series | PointValue)
    )
    steps = case.run.last if timed else 0
    most = max(2, EVALUATIONS // max(1, points))
    if t is None or not steps:
        t = np.arange(steps + 1) if steps < most else _spread(steps, most)
    times = t[:, None].astype(np.float64)
    known = dict(zip(("nx", "ny", "nz"), case.domain.size, strict=False)) | places | {"t": times}
    found = [
        formula.evaluate(**known) if formula else _number(value, times, places)
        for formula, value in zip(formulas, values, strict=True)
    ]
    return t, [np.broadcast_to(each, (t.size, points)) for each in found]


def _spread(last: int, count: int) -> np.ndarray:
    """At most `count` steps from 0 to `last`, with both.

    They are at multiples of the golden ratio, which match no period of a formula.
    """
    inner = last * (0.618034 * np.arange(count - 1) % 1)
    return np.array(sorted({*inner.astype(int).tolist(), last}), np.int64)


def _number(value: Any, t: np.ndarray, places: dict[str, np.ndarray]) -> float | np.ndarray:
    if isinstance(value, PointValue):
        points = [each.reshape(-1) for each in places.values()]
        return np.array([value.at(points, float(time)) for time in t[:, 0]])
    return value.at(t) if isinstance(value, Series) else value


def _places(case: Case, boundary: Boundary, shape: Any, along: int | None) -> dict[str, np.ndarray]:
    """Coordinates of points of a boundary by axis, each (1, points)."""
    size = case.domain.size
    shape = shape and shape.in_box(case.domain)
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
