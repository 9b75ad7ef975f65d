"""Bodies that move: their numbers for kernels at a time, and the cells that they can reach."""

from dataclasses import dataclass
from functools import cached_property
from math import ceil, isfinite, sqrt
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.errors import CaseError
from mpilbm.model.case import Case
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.motions import Placement, moving, responding
from mpilbm.solids import Flags, Floats
from mpilbm.solids.sampled_shape import Rigid, rigid_of

JUMP = 0.1  # cells in a step beyond those of the velocity
# Cells around a body that its kernel computes: half of a cell's diagonal, where shares are not 0,
# and less than two cells by which the body has moved in two steps, see MovingBodies.
MARGIN = 2.87
AHEAD = 128  # times of which the motion is computed together
MOST_TIMES = 2**18  # times at which a path is computed
PART = 2**14  # of these, computed together
FIELDS_OF_BODIES = "body_share", "body"  # of a flow with moving bodies, see MovingDiagnostics

# The numbers of a body in the array `motion`, and how many there are of each.
#   wrap        the size of the box along periodic axes, else 0
#   rotation    R, by rows
#   centre      the centre of the shape, in the box along periodic axes
#   velocity, spin  of the body at its centre
#   half, round, radius  see RigidShape; half is 0 without planes, round is 1 for `round_axes`
#   correction  by which the plane in a cell lies within the round surface, see shapes/sphere.py
#   bounded, reach_squared, core_squared  axes along which the body is finite; the squares of the
#   distances from the centre beyond which cells are empty, and within which they are full
#   points, lower, first  the grid of distances, see DistanceField: how many points, or 0 without a
#   grid; the first one, from the centre; its place in the array of the distances of all bodies
#   origin, side  the box of cells around the body that its kernel computes
#   number      1 + the number of the body in the case
FIELDS = {
    "wrap": 3, "rotation": 9, "centre": 3, "velocity": 3, "spin": 3, "half": 3, "round": 3,
    "bounded": 3, "origin": 3, "side": 3, "radius": 1, "correction": 1, "reach_squared": 1,
    "core_squared": 1, "points": 3, "lower": 3, "first": 1, "number": 1,
}  # fmt: skip
WIDTH = sum(FIELDS.values())
PLACES = dict(zip(FIELDS, np.cumsum([0, *FIELDS.values()]).tolist(), strict=False))


class Placed(Protocol):
    """What gives the place of a body at a time: a motion, see `Motion.placement`."""

    responds: ClassVar[bool]

    def placement(self, t: float | Floats, centre: Floats) -> Placement:
        """The placement at time t."""


@dataclass(frozen=True)
class MovingBody:
    """A body with a motion in a case.

    number  of the body in the case
    motion  a motion on a given path, or the path of a run so far
    first   the place of its distances in the array of those of all bodies
    """

    case: Case
    number: int
    shape: Rigid
    motion: Placed
    first: int = 0

    fastest: ClassVar[float] = 1.0  # cells per step of the centre: beyond, cells would be skipped

    @classmethod
    def all(cls, case: Case) -> "tuple[MovingBody, ...]":
        """The moving bodies of a case; row 1 + k of `motion` is that of body k of them."""
        found, first = [], 0
        for number in moving(case):
            body = case.bodies[number]
            rigid = rigid_of(body.shape, case.domain.size)
            assert body.motion, "see moving()"
            found.append(cls(case, number, rigid, body.motion, first))
            first += rigid.field.values.size if rigid.field else 0
        return tuple(found)

    @cached_property
    def size(self) -> tuple[int, ...]:
        """The size of the box, (3,); 1 along z in 2D."""
        return (*self.case.domain.size, 1)[:3]

    @cached_property
    def periods(self) -> Floats:
        """The size of the box along periodic axes, 0 along others, (3,)."""
        periodic = (*self.case.domain.periodic, False)[:3]
        return np.where(periodic, self.size, 0).astype(float)

    def placement(self, t: float | Floats) -> Placement:
        """The placement after t steps; before step 0 that at t = 0."""
        return self.motion.placement(np.maximum(t, 0) if np.ndim(t) else max(t, 0), self.middle)

    @cached_property
    def middle(self) -> Floats:
        """The centre of the shape, (3,)."""
        return self.shape.middle

    def centre(self, t: float | Floats) -> Floats:
        """The centre after t steps, (3,) or (n, 3); without jumps at periodic faces."""
        return self.placement(t).of(self.middle)

    def velocity(self, t: float) -> Floats:
        """The velocity of the centre, (3,)."""
        placement = self.placement(t)
        return placement.velocity_at(placement.of(self.middle))

    def surface_speed(self, at: Placement) -> Floats:
        """The largest speed of the surface, or a bound of it, (n,): |u| + |spin| reach."""
        u = at.velocity_at(at.of(self.middle))
        found: Floats = np.linalg.norm(u, axis=-1)
        return found + np.linalg.norm(at.spin, axis=-1) * self.shape.reach

    @cached_property
    def sides(self) -> tuple[int, ...]:
        """The size of the box of cells around the body, (3,); along periodic axes at most all."""
        across = ceil(2 * (self.shape.reach + MARGIN)) + 1
        whole = (*self.shape.endless, *range(self.case.dimensions, 3))
        sides = enumerate(zip(self.size, self.periods, strict=True))
        return tuple(n if a in whole or 0 < p < across else across for a, (n, p) in sides)

    @property
    def least_period(self) -> int:
        """The cells between two images of the body along an axis, so that these do not meet."""
        return ceil(2 * (self.shape.reach + 2)) + 1

    @property
    def cells(self) -> int:
        """The number of cells in this box."""
        return int(np.prod(self.sides))

    def rows(self, times: Floats) -> Floats:
        """The numbers of the body at n times in steps, (n, WIDTH)."""
        placement, shape, D = self.placement(times), self.shape, self.case.dimensions
        place = placement.of(self.middle)
        periods = np.where(self.periods > 0, self.periods, 1.0)
        centre = place - np.where(self.periods > 0, np.floor(place / periods) * periods, 0)
        origin = np.floor(centre - shape.reach - MARGIN)
        across = [a not in shape.endless and a < D for a in range(3)]
        round_count = len(shape.round_axes)
        given = {
            "wrap": self.periods,
            "rotation": placement.rotation.reshape(-1, 9),
            "centre": centre,
            "velocity": placement.velocity_at(place),
            "spin": placement.spin,
            "half": [h if isfinite(h) else 0 for h in shape.halves],
            "round": [a in shape.round_axes for a in range(3)],
            "bounded": across,
            "origin": np.where(across, origin, 0),
            "side": self.sides,
            "radius": [shape.radius],
            "correction": [(round_count - 1) / (24 * shape.radius) if shape.radius else 0],
            "reach_squared": [(shape.reach + 1) ** 2],
            "core_squared": [max(0.0, shape.core - 1) ** 2],
            "points": shape.field.counts if shape.field else [0, 0, 0],
            "lower": shape.field.lower - self.middle if shape.field else [0, 0, 0],
            "first": [self.first],
            "number": [1 + self.number],
        }
        found = np.empty((len(times), WIDTH))
        for name, count in FIELDS.items():
            found[:, PLACES[name] : PLACES[name] + count] = np.asarray(given[name], float)
        return found

    def momentum(self, t: float) -> tuple[Floats, Floats]:
        """Momentum and angular momentum about its centre of a fluid of density 1 in the body."""
        placement = self.placement(t)
        turned = placement.rotation.T @ placement.spin
        spin = placement.rotation @ (self.shape.inertia(self.size) @ turned)
        return self.shape.volume(self.size) * self.velocity(t), spin

    @property
    def _last(self) -> tuple[int, int]:
        """The last of `times`, and the steps from one to the next."""
        last = self.case.run.last + 1
        return last, max(1, last // MOST_TIMES)

    @property
    def checked(self) -> int:
        """The time up to which case/motions.py has checked each step; 0 if it left out some."""
        last, distance = self._last
        return last if distance == 1 else 0

    def times(self) -> Floats:
        """Times from 0 to the last step of the run, (n,).

        All steps, or about MOST_TIMES of them at equal distances.
        """
        last, distance = self._last
        times = np.arange(0, last + 1, distance, dtype=float)
        return times if times[-1] == last else np.append(times, float(last))

    def path(self) -> tuple[Floats, Floats]:
        """These times, and the centres at them, (n, 3)."""
        times = self.times()
        return times, np.concatenate([self.centre(part) for part in in_parts(times)])

    @cached_property
    def reached(self) -> tuple[Floats, Floats]:
        """The corners of a box that contains the body during the whole run, (3,) each; with MARGIN.

        Infinite along endless axes; not wrapped into the box.
        """
        times, centres = self.path()
        margin = self.shape.reach + MARGIN
        if np.diff(times).max() > 1:  # times between these may be further out
            margin += float(np.abs(np.diff(centres, axis=0)).max())
        lower, upper = centres.min(axis=0) - margin, centres.max(axis=0) + margin
        for a in range(3):
            if a in self.shape.endless or a >= self.case.dimensions:
                lower[a], upper[a] = -np.inf, np.inf
        return lower, upper

    def require_reached(self, t: float) -> None:
        """Raise CaseError if the body is outside `reached` after t steps, as after `run.steps`."""
        lower, upper = self.reached
        centre, across = self.centre(t), self.shape.reach + 1
        if (centre - across < lower).any() or (centre + across > upper).any():
            label = self.case.bodies[self.number].label
            raise CaseError(
                f"the force on body '{label}' is summed over the cells that it reaches up to step "
                f"{self.case.run.steps}, and it is outside of these at step {t:g}; raise run.steps",
                "run.steps",
                self.case.path,
            )

    def reachable(self, slab: Slab) -> Flags:
        """The cells of a slab that the body may fill during the run, (planes, rows, nx)."""
        D, size = self.case.dimensions, self.size
        along: list[Flags] = []
        for a in range(D):
            lower, upper, n = self.reached[0][a], self.reached[1][a], size[a]
            if not isfinite(lower) or (self.periods[a] and upper - lower >= n):
                along.append(np.ones(n, bool))
                continue
            first, end = int(np.floor(lower)), int(np.ceil(upper))
            there = np.arange(first, end)
            there = there % n if self.periods[a] else there[(there >= 0) & (there < n)]
            flags = np.zeros(n, bool)
            flags[there] = True
            along.append(flags)
        planes = along[-1][slab.begin : slab.end]
        rows = along[1] if D == 3 else np.ones(1, bool)
        found: Flags = planes[:, None, None] & rows[:, None] & along[0]
        return found


def in_parts(times: Floats) -> list[Floats]:
    """Parts of an array of times that are computed together."""
    return [times[k : k + PART] for k in range(0, len(times), PART)]


def distances(bodies: tuple[MovingBody, ...]) -> NDArray[np.float32]:
    """The distances from the surfaces of all bodies that have fields, (n,); 0 if none has one."""
    fields = [body.shape.field.values.ravel() for body in bodies if body.shape.field]
    return np.concatenate(fields) if fields else np.zeros(1, np.float32)


def distance_bytes(case: Case) -> dict[str, int]:
    """The bytes of these distances on a device, by contents; empty if formulas give all."""
    fields = (body.shape.field for body in MovingBody.all(case))
    total = sum(field.values.nbytes for field in fields if field)
    return {"distances from bodies": total} if total else {}


def table(bodies: tuple[MovingBody, ...], times: Floats) -> Floats:
    """The array `motion` at n times in steps, (n, 1 + bodies, WIDTH); row 0 of each is zero."""
    rows = [np.zeros((len(times), WIDTH)), *(body.rows(times) for body in bodies)]
    return np.stack(rows, axis=1)


def reachable_cells(case: Case, slab: Slab) -> list[Flags]:
    """The cells of a slab that each measured moving body may fill, see MovingBody.reachable."""
    weighed = {*case.needs.weighed} - {*responding(case)}
    return [body.reachable(slab) for body in MovingBody.all(case) if body.number in weighed]


def moved_by(centre: Floats, rotation: Floats, reach: float) -> Floats:
    """By how much points at the distance `reach` move from each of n times to the next, (n - 1,).

    A bound: that of the centre, (n, 3), and the chord of the turn, with rotations (n, 3, 3).
    """
    chord = np.linalg.norm(np.diff(rotation, axis=0), axis=(1, 2)) / sqrt(2)  # 2 sin(angle / 2)
    found: Floats = np.linalg.norm(np.diff(centre, axis=0), axis=1) + chord * reach
    return found


def continuous(body: MovingBody, times: Floats) -> tuple[int, str]:
    """How many of the times, from the first on, have places to which the body moves; what is wrong
    at the next one, or "".

    times: steps one after another, (n,). The centre moves by less than a cell in a step, and the
    surface by at most JUMP more than its velocity gives; all places are finite.
    """
    with np.errstate(all="ignore"):
        at = body.placement(times)
        centre = at.of(body.middle)
        step = np.abs(np.diff(centre, axis=0)).max(axis=1)
        moved = moved_by(centre, at.rotation, body.shape.reach)
        speed = body.surface_speed(at)
        allowed = np.maximum(speed[1:], speed[:-1]) + JUMP
        slow = np.isfinite(centre[1:]).all(axis=1) & (step < body.fastest)
        good = np.append(np.isfinite(centre[0]).all(), slow & (moved <= allowed))
    if good.all():
        return len(times), ""
    k = int(np.argmin(good))
    if k == 0 or not np.isfinite(step[k - 1]):
        return k, f"found a place that is not finite; allowed: below {body.fastest:.3g}"
    if not slow[k - 1]:
        return k, f"found {step[k - 1]:.3g} cells in a step; allowed: below {body.fastest:.3g}"
    return k, f"found {moved[k - 1]:.3g} cells in a step; allowed: below {allowed[k - 1]:.3g}"


def require_continuous(bodies: tuple[MovingBody, ...], times: Floats, needed: int) -> int:
    """How many of the times have places to which all bodies move, see `continuous`.

    CaseError if these are fewer than `needed`. Times that case/motions.py has checked count. A body
    that responds checks its own steps.
    """
    count = len(times)
    for body in (body for body in bodies if not body.motion.responds):
        known = int(np.searchsorted(times, body.checked, side="right"))
        if known >= count:
            continue
        first = max(0, known - 1)
        good, wrong = continuous(body, times[first:count])
        count = first + good
        if count < needed:
            label = body.case.bodies[body.number].label
            found, _, allowed = wrong.partition("; ")
            raise CaseError(
                f"{found} at step {times[count]:g}; {allowed}; change the formula",
                f"body.{label}.motion",
                body.case.path,
            )
    return count
