"""Findings: bodies that move and come near other bodies, or overlap them.

Distances are computed at up to MOST_TIMES times of the run: those of balls and infinite cylinders
exactly, those of other shapes from points on their surfaces at up to SAMPLES of these times. Bodies
given by a mask are left out.
"""

from collections.abc import Iterator

import numpy as np

from mpilbm.case.model import Case
from mpilbm.case.motions import NARROW
from mpilbm.case.tables.case_file import Body
from mpilbm.model.case import BoundedLattice
from mpilbm.model.findings import WARNING, Finding
from mpilbm.physics.motions import Floats, Placement
from mpilbm.solids import Flags, Ints
from mpilbm.solids.moving_bodies import MovingBody

MOST_TIMES, SAMPLES = 2**14, 300
MOST_DISTANCES = 10**7  # of all pairs at all times
SAME = 1e-6  # cells, between places of bodies that move as one


def meetings(case: Case) -> Iterator[Finding]:
    """Pairs of bodies, of which one moves at least, with a gap below NARROW cells.

    Free bodies are left out: their paths are not known, and they repel others.
    """
    movers = [body for body in MovingBody.all(case) if not body.motion.responds]
    if not movers or len(case.bodies) < 2:
        return
    pairs = max(1, len(movers) * (len(movers) - 1) // 2)
    every = movers[0].times()
    t = every[_spread(len(every), max(SAMPLES, min(MOST_TIMES, MOST_DISTANCES // pairs)))]
    placed = [(body, body.placement(t)) for body in movers]
    for k, (a, at_a) in enumerate(placed):
        for b, at_b in placed[k + 1 :]:
            gap = _gap(a, at_a, b, at_b)
            least = int(np.argmax(gap < 0) if (gap < 0).any() else np.argmin(gap))
            if gap[least] < NARROW:
                yield _finding(a, case.bodies[b.number], float(gap[least]), float(t[least]))
        for body in case.bodies:
            if body.motion is None and body.shape is not None:
                yield from _beside(a, at_a, body, t)


def _spread(count: int, most: int) -> Ints:
    """At most so many of the places in an array, from the first to the last one."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, most).astype(np.int64))


def _finding(body: MovingBody, other: Body, gap: float | None, t: float) -> Finding:
    """gap: in cells; None if it is below NARROW and not known."""
    name, key = f"body '{other.label}'", f"body.{body.case.bodies[body.number].label}.motion"
    if gap is not None and gap < 0:
        text = (
            f"overlaps {name}, first at t = {t:g}: bodies do not stop each other, and "
            "the force on each lacks the cells that count for the other; change the motion or a "
            "shape"
        )
    else:
        size = f"below {NARROW:g} cells" if gap is None else f"{gap:.3g} cells"
        text = (
            f"the gap to {name} is {size} at t = {t:g}; below {NARROW:g} the flow in it is not "
            "resolved; use smaller cells"
        )
    return Finding(WARNING, key, text)


def _gap(a: MovingBody, at_a: Placement, b: MovingBody, at_b: Placement) -> Floats:
    """The distance of two surfaces at each time, (n,); below 0 of bodies that overlap.

    inf where it is not computed, and for bodies that move as one, such as blades of a rotor.
    """
    centre_a, centre_b = at_a.of(a.middle), at_b.of(b.middle)
    offset = _across(a, b, _nearest(a, centre_b - centre_a))
    far = np.linalg.norm(offset, axis=-1)
    gap = far - a.shape.reach - b.shape.reach
    near = np.flatnonzero(gap < NARROW)
    if not near.size or _joined(at_a, at_b):
        return np.full_like(gap, np.inf)
    if all(body.shape.is_round for body in (a, b)):
        return gap
    found = np.full_like(gap, np.inf)
    chosen = near[np.unique([*_spread(len(near), SAMPLES), np.argmin(far[near])])]
    for one, at_one, two, at_two, centre, sign in (
        (a, at_a, b, at_b, centre_a, 1),
        (b, at_b, a, at_a, centre_b, -1),
    ):
        x = _places(one, at_one, chosen, one.shape.points(one.size)) - centre[chosen, None]
        r = _across(one, two, _nearest(one, x - sign * offset[chosen, None]))
        q = r @ at_two.rotation[chosen]  # R^T r of each point
        found[chosen] = np.minimum(found[chosen], two.shape.distance(q).min(axis=1))
    return found


def _across(a: MovingBody, b: MovingBody, r: Floats) -> Floats:
    """Differences of places without the axes along which one of two bodies is infinite."""
    axes = {*a.shape.endless, *b.shape.endless, *range(a.case.dimensions, 3)}
    return np.where([axis in axes for axis in range(3)], 0, r)


def _nearest(body: MovingBody, r: Floats) -> Floats:
    """Differences of places to the nearest images, (..., 3)."""
    periods = np.where(body.periods > 0, body.periods, np.inf)
    return r - np.where(body.periods > 0, np.round(r / periods) * body.periods, 0)


def _joined(at_a: Placement, at_b: Placement) -> bool:
    """Whether two bodies move as one."""
    points = np.vstack([np.zeros(3), np.eye(3)])
    return all(np.allclose(at_a.of(X), at_b.of(X), rtol=0, atol=SAME) for X in points)


def _places(body: MovingBody, at: Placement, times: Ints, points: Floats) -> Floats:
    """Places (times, points, 3) of points in the frame of the shape, as offsets from the centre."""
    turned = points @ np.swapaxes(at.rotation[times], -1, -2)
    found: Floats = at.of(body.middle)[times, None] + turned
    return found


def _beside(body: MovingBody, at: Placement, other: Body, t: Floats) -> Iterator[Finding]:
    """Whether a body meets a body at rest."""
    chosen, case = _spread(len(t), SAMPLES), body.case
    within = body.shape.within(body.size)
    inside = _inside(case, other, _places(body, at, chosen, within))
    if inside.any():
        yield _finding(body, other, -1.0, float(t[chosen[np.argmax(inside)]]))
        return
    around = body.shape.points(body.size, NARROW)
    inside = _inside(case, other, _places(body, at, chosen, around))
    if inside.any():
        yield _finding(body, other, None, float(t[chosen[np.argmax(inside)]]))


def _inside(case: BoundedLattice, other: Body, x: Floats) -> Flags:
    """Whether one of the points of each time is in a body at rest: x (n, points, 3), bool (n,)."""
    D, size, periodic = case.dimensions, case.domain.size, case.domain.periodic
    points = [x[..., a] % size[a] if periodic[a] else x[..., a] for a in range(D)]
    assert other.shape, "see meetings"
    shape = other.shape.in_box(case.domain)
    near: Flags = np.ones(x.shape[:-1], bool)
    for values, low, high in zip(points, *shape.bounds(), strict=True):
        near &= (values >= low) & (values <= high)
    if near.any():
        near[near] = shape.inside(*(values[near] for values in points))
    found: Flags = np.logical_or.reduce(near, axis=1)
    return found
