"""Checks of bodies that move: what is refused, and what is probably not intended."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mpilbm.case.free_motions import falling_speed, free_problems, speed_text
from mpilbm.case.model import Case
from mpilbm.core.registry import find, names
from mpilbm.model.findings import NOTE, SERIOUS, WARNING, Finding
from mpilbm.physics.motions import Floats, moving
from mpilbm.solids.moving_bodies import JUMP, MovingBody, in_parts, moved_by
from mpilbm.solids.sampled_shape import rigid_of

FAST = 0.15  # surface speed, cells per step
THIN, NARROW = 2.0, 2.0  # cells
ALONG = 1e-9  # of a component of a rotation that is rounding
MOST_MOVERS = 255  # the number of a moving body in a cell is one byte


def motion_problems(case: Case) -> Iterator[str]:
    """What a body that moves cannot have: other boundaries and shapes, an impossible path."""
    found = list(_own_problems(case))
    yield from found
    parts = [part for k in moving(case) for part in (case.bodies[k].shape, case.bodies[k].motion)]
    if not found and not any(part.problems(case) for part in parts if part):
        yield from free_problems(case)


def _own_problems(case: Case) -> Iterator[str]:
    movers = moving(case)
    if len(movers) > MOST_MOVERS:
        yield (
            f"body: found {len(movers)} bodies with a motion; allowed: {MOST_MOVERS}; remove some"
        )
        return
    for number in movers:
        body, key = case.bodies[number], f"body.{case.bodies[number].label}"
        if not body.boundary.capabilities.in_cells:
            yield (
                f"{key}.boundary: found '{body.boundary.name}', which acts on the links of bodies "
                f"at rest; allowed for a body with a motion: {', '.join(_boundaries())}"
            )
        assert body.motion, "see moving()"
        if (body.shape and body.shape.problems(case)) or body.motion.problems(case):
            continue
        try:
            rigid = rigid_of(body.shape, case.domain.size)
        except ValueError as error:
            yield f"{key}.shape: {error}"
            continue
        yield from _path_problems(MovingBody(case, number, rigid, body.motion), key)


def _boundaries() -> list[str]:
    found = {name: find("boundaries", name) for name in names("boundaries")}
    return [name for name, cls in found.items() if cls.declares.in_cells]


def _path_problems(body: MovingBody, key: str) -> Iterator[str]:
    """A body as long as the box, an endless one that turns, and places and speeds of the path."""
    case, shape = body.case, body.shape
    for a in range(case.dimensions):
        n, periodic = body.size[a], body.periods[a] > 0
        if periodic and a not in shape.endless and body.least_period > n:
            yield (
                f"{key}.shape: with the cells around it the body takes {body.least_period} cells "
                f"along {'xyz'[a]}, the periodic box has {n}; use a longer box"
            )
            return
    path = Path.of(body)
    if not np.isfinite(path.centre).all():
        t = path.t[np.argmin(np.isfinite(path.centre).all(axis=1))]
        yield f"{key}.motion: the place of the body is not finite at t = {t:g}; change the formula"
        return
    across = [a for a in range(case.dimensions) if a not in shape.endless]
    if shape.endless and path.tilt > ALONG:
        axes = " and ".join("xyz"[a] for a in shape.endless)
        yield (
            f"{key}.motion: the body is infinite along {axes}, and may turn about this axis only; "
            "give the shape a length, or change the axis"
        )
    steps = np.abs(np.diff(path.centre[:, across], axis=0)).max(axis=1) / np.diff(path.t)
    if steps.max() >= body.fastest:
        t = path.t[int(np.argmax(steps))]
        yield (
            f"{key}.motion: the centre moves by {steps.max():.3g} cells in the step from t = {t:g};"
            f" allowed: below {body.fastest:g}; change the formula"
        )
        return
    bound = np.maximum(path.speed[1:], path.speed[:-1])
    excess = np.where(np.diff(path.t) == 1, path.moved - bound, 0)  # not finite: see given_speeds
    k = int(np.argmax(np.nan_to_num(excess, nan=0)))
    if excess[k] > JUMP:
        yield (
            f"{key}.motion: the surface jumps by {path.moved[k]:.3g} cells in the step from t = "
            f"{path.t[k]:g}, where its velocity is {bound[k]:.3g} cells per step: the derivative "
            "of a formula has no jumps; change the formula"
        )


@dataclass(frozen=True, eq=False)
class Path:
    """The path of a body during a run.

    t       (n,), see MovingBody.times
    centre  (n, 3)
    below, above  (n, 3), see RigidShape.extent
    speed   (n,), the largest speed of the surface, or a bound of it: |u| + |spin| reach
    moved   (n - 1,), by how much the surface moves from each time to the next, likewise
    tilt    the largest component by which endless axes have turned
    """

    t: Floats
    centre: Floats
    below: Floats
    above: Floats
    speed: Floats
    moved: Floats
    tilt: float

    @classmethod
    def of(cls, body: MovingBody) -> "Path":
        """The path of a body, computed in parts."""
        t, found, tilt, shape = body.times(), [], 0.0, body.shape
        before, before_R = np.empty((0, 3)), np.empty((0, 3, 3))  # the last ones of a part
        for part in in_parts(t):
            with np.errstate(all="ignore"):  # places that are not finite are reported
                at = body.placement(part)
                centre = at.of(body.middle)
                speed = body.surface_speed(at)
                extent = shape.extent(at.rotation)
                places, turns = (before, centre), (before_R, at.rotation)
                moved = moved_by(np.concatenate(places), np.concatenate(turns), shape.reach)
            before, before_R = centre[-1:], at.rotation[-1:]
            found.append((centre, *extent, speed, moved))
            for a in shape.endless:
                tilt = max(tilt, float(np.abs(at.rotation[..., a, :] - np.eye(3)[a]).max()))
        parts = (np.concatenate(each) for each in zip(*found, strict=True))
        centre, below, above, speed, moved = parts
        return cls(t, centre, below, above, speed, moved, tilt)


def _slower(body: MovingBody, speed: float) -> str:
    """The advice for a motion that is too fast: the time step at which it is not."""
    ratio, units = FAST / speed, body.case.units
    if units:
        return f"set units.step = {units.step * ratio:.3g} or below for {FAST:g}"
    by = f"{ratio:.3g} and steps by {1 / ratio:.3g}"
    if body.motion.responds:
        by = f"{ratio:.3g}, accelerations by {ratio**2:.3g} and steps by {1 / ratio:.3g}"
    return f"for {FAST:g} multiply velocities, rates and the viscosity by {by}"


def surface_speeds(case: Case) -> Iterator[tuple[str, float, str]]:
    """(key path, largest speed of the surface, when) of each body that moves."""
    for body in MovingBody.all(case):
        path = Path.of(body)
        k = int(np.argmax(path.speed))
        key = f"body.{case.bodies[body.number].label}.motion"
        falls = falling_speed(body)[0] if body.motion.responds else 0.0
        if path.speed[k] < falls <= FAST:  # beyond, `motions` warns: it is a prediction
            yield key, falls, " when its drag equals its weight"
        else:
            yield key, float(path.speed[k]), f" at t = {path.t[k]:g}"


def motions(case: Case) -> Iterator[Finding]:
    """Bodies that move too fast, are too thin, leave the box, or come close to a face."""
    for body in MovingBody.all(case):
        label = case.bodies[body.number].label
        key, path = f"body.{label}.motion", Path.of(body)
        speed, when = float(path.speed.max()), path.t[int(np.argmax(path.speed))]
        why = f"above {FAST:g} shares change too fast and the flow is compressible"
        if speed > FAST:
            text = (
                f"the surface moves at {speed:.3g} cells per step at t = {when:g}; {why}; "
                f"{_slower(body, speed)}"
            )
            yield Finding(WARNING, key, text)
        elif body.motion.responds and (text := speed_text(body)):
            falls = falling_speed(body)[0]
            more = f"; {why}; {_slower(body, falls)}" if falls > FAST else " in unbounded fluid"
            yield Finding(WARNING if falls > FAST else NOTE, key, text + more)
        if body.shape.thickness < THIN:
            text = (
                f"the body is {body.shape.thickness:.3g} cells thick; below {THIN:g} it slows "
                "fluid down without stopping it; use smaller cells"
            )
            yield Finding(WARNING, f"body.{label}.shape", text)
        if not body.motion.responds:
            yield from _at_faces(body, path, key)


def _at_faces(body: MovingBody, path: Path, key: str) -> Iterator[Finding]:
    """Faces through which a body leaves, to which it comes close, or that it crosses."""
    finite = [a for a in range(body.case.dimensions) if a not in body.shape.endless]
    for a in finite:
        n = body.size[a]
        gaps = {
            "-": path.centre[:, a] - path.below[:, a],
            "+": n - path.centre[:, a] - path.above[:, a],
        }
        for side, gap in gaps.items():
            k = int(np.argmin(gap))
            face, least, t = f"{'xyz'[a]}{side}", float(gap[k]), path.t[k]
            if body.periods[a] > 0 and least < 0:
                text = (
                    f"crosses the periodic face {face}: the body continues at the opposite face, "
                    "and its position in the file of forces does not jump"
                )
                yield Finding(NOTE, key, text)
            elif body.periods[a] == 0 and least < 0:
                text = (
                    f"leaves the box through {face}, by {-least:.3g} cells at t = {t:g}; the part "
                    "outside displaces no fluid, but its inertia is part of the force in the file; "
                    "change the motion or the box"
                )
                yield Finding(SERIOUS, key, text)
            elif body.periods[a] == 0 and least < NARROW:
                text = (
                    f"the gap to {face} is {least:.3g} cells at t = {t:g}; below {NARROW:g} the "
                    "flow in it is not resolved; use smaller cells"
                )
                yield Finding(WARNING, key, text)
