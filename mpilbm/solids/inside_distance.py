"""The signed distance from a surface of which only is known which points are inside."""

from collections.abc import Callable

import numpy as np

from mpilbm.solids import Flags, Floats
from mpilbm.solids.shares import plane_through

Inside = Callable[..., Flags]

AWAY, MARCH = 3.0, 0.5  # cells within which a surface is looked for, in such steps
HALVINGS = 16  # of a step, so that a surface is found to 1e-5 cells
ROUNDS = 3  # of better nearest points
OFF = 0.05  # part of the way to the surface that remains where its normal is computed
ACROSS = 1e-3  # cells beyond the surface


def signed_distance(inside: Inside, points: Floats) -> Floats:
    """Signed distances (n,) of points (D, n), negative inside; inf without a surface within AWAY.

    The nearest point of the surface is the first one along an axis or a diagonal, then the one
    along the normal there, or the end of the surface on the way from that point to the foot of the
    perpendicular on its tangent plane, such as an edge: what is nearer counts.
    """
    D, solid = len(points), np.broadcast_to(inside(*points), points.shape[1:])
    side = np.where(solid, -1.0, 1.0)
    best, nearest = np.full(points.shape[1], np.inf), points.copy()
    for k in np.ndindex(*(3,) * D):
        way = np.array(k, float) - 1
        if way.any():
            step = np.broadcast_to((way / np.linalg.norm(way))[:, None], points.shape)
            _keep(best, nearest, points, _hit(inside, points, step, solid))
    some = np.flatnonzero(np.isfinite(best))
    points, solid, out = points[:, some], solid[some], side[some]
    distance, at = best[some], nearest[:, some]
    for _ in range(ROUNDS):
        _, normal = plane_through(inside, at + OFF * (points - at))
        step = -out * normal
        foot = points + ((at - points) * normal).sum(axis=0) * normal
        edge = _end(inside, foot + ACROSS * step, at + ACROSS * step, solid)
        _keep(distance, at, points, _hit(inside, points, step, solid))
        _keep(distance, at, points, edge - ACROSS * step)
    best[some] = distance
    return side * best


def _keep(best: Floats, nearest: Floats, points: Floats, found: Floats) -> None:
    """Replace the nearest points by those found, where these are nearer; nan is no point."""
    distance = np.sqrt(((found - points) ** 2).sum(axis=0))
    closer = np.flatnonzero(distance < best)
    best[closer], nearest[:, closer] = distance[closer], found[:, closer]


def _hit(inside: Inside, points: Floats, step: Floats, solid: Flags) -> Floats:
    """Where points along unit steps (D, n) leave the solid, or enter it, (D, n); or nan."""
    far = np.full(points.shape[1], np.inf)
    for reach in np.arange(MARCH, AWAY + MARCH / 2, MARCH):
        mine = np.flatnonzero(np.isinf(far))
        changed = inside(*(points[:, mine] + reach * step[:, mine])) != solid[mine]
        far[mine[changed]] = reach
    some = np.flatnonzero(np.isfinite(far))
    high, way = far[some], step[:, some]
    low = high - MARCH
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        same = inside(*(points[:, some] + middle * way)) == solid[some]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    found = np.full(points.shape, np.nan)
    found[:, some] = points[:, some] + high * way
    return found


def _end(inside: Inside, begin: Floats, end: Floats, solid: Flags) -> Floats:
    """The point (D, n) between two, of which the second is on the other side, where this begins."""
    low, high = np.zeros(begin.shape[1]), np.ones(begin.shape[1])
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        same = inside(*(begin + middle * (end - begin))) == solid
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    found: Floats = begin + high * (end - begin)
    return np.where(inside(*found) != solid, found, np.nan)
