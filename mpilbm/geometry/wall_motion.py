"""Where the velocity of a body's wall leads through its own surface: bodies stay where they are."""

import numpy as np

from mpilbm.formulas.parser import numeric
from mpilbm.formulas.values import CellValue
from mpilbm.links.wall_distance import links_of
from mpilbm.physics.boundaries import one_face_each
from mpilbm.physics.boundaries.wall import Wall
from mpilbm.physics.lattices import AXES

ASIDE = 1e-4  # cells from a point of the surface to those by which its slope is found
ALONG = 1e-2  # cells before and behind the surface between which it is looked for there
STRAIGHT = 1e-3  # slopes on both sides differ by more at an edge, where there is no normal
ALLOWED = 0.01  # of the speed: what rounded numbers in formulas may lead through the surface
TIMES = 16  # between the beginning and the last step at which formulas of t are looked at


def through(case, slab, lists) -> dict[int, tuple[int, str]]:
    """By body the first cell of the slab beside a place where its wall moves through its surface.

    With a sentence on it. The velocity is taken at the surface of the shape, one link a cell.
    Masks have no surface but their staircase; they are not looked at.
    """
    own, found = len(one_face_each(case.boundaries)), {}
    for each in lists:
        for member, owner in enumerate(each.owners):
            body = case.bodies[owner - own] if owner >= own else None
            if body is None or body.shape is None or not isinstance(body.boundary, Wall):
                continue
            if body.boundary.velocity is None or not any(body.boundary.velocity):
                continue
            links = each.missing & ~np.uint32(1)  # what rests crosses no surface
            mine = np.flatnonzero((each.member == member) & (links > 0))
            wrong = _first_wrong(case, slab, body, each.cells[mine], links[mine])
            if wrong:
                found[owner - own] = wrong
    return found


def _first_wrong(case, slab, body, cells, missing) -> tuple[int, str] | None:
    """The first cell, and what is wrong beside it."""
    lowest = missing & (~missing + np.uint32(1))
    zeros = np.zeros(cells.size, np.int64)
    links = links_of(case, slab, None, cells, zeros, lowest, zeros.astype(np.uint32))
    points, n = surface(case, body.shape, links)
    for t in _times(case, body.boundary):
        u = _velocity(case, body.boundary, points, t)
        across, speed = (u * n).sum(axis=0), np.sqrt((u * u).sum(axis=0))
        wrong = np.flatnonzero(np.abs(across) > ALLOWED * speed)  # nan: there is no normal
        if wrong.size:
            k = wrong[0]
            at = ", ".join(f"{a}={v:.4g}" for a, v in zip(AXES, points[:, k], strict=False))
            return int(cells[k] + slab.begin * np.prod(slab.shape[1:])), (
                f"at the surface point {at} it is {_vector(u[:, k])} at t = {t}, of which "
                f"{across[k]:.4g} lead through the surface, along the normal {_vector(n[:, k])}; "
                "allowed: along the surface alone, since bodies do not move over cells; take a "
                "rotation about the body's axis, or a frame in which the body rests"
            )
    return None


def surface(case, shape, links) -> tuple[np.ndarray, np.ndarray]:
    """Where links meet a shape, (D, n), and the unit normals there, out of it.

    nan at edges, and for links round a periodic face, where a shape ends without a surface. From
    the heights s of the surface along lines beside the link, e being its direction and t across
    it, n = -(e - sum_t ds/dt t) / |…|, by differences.
    """
    size, step = np.reshape(case.domain.size, (-1, 1)), -links.c.T.astype(float)
    start = links.at.T + 0.5
    point = start + shape.distance(start, step, case.domain.size) * step
    e = step / np.sqrt((step * step).sum(axis=0))
    crosses = ((start + step < 0) | (start + step > size)).any(axis=0)
    normal = np.where(crosses, np.nan, e)
    for t in _across(e):
        ahead = _height(shape, point + ASIDE * t, e, size)
        behind = _height(shape, point - ASIDE * t, e, size)
        slope = (ahead - behind) / (2 * ASIDE)
        edge = np.abs(ahead + behind) / ASIDE > STRAIGHT
        normal -= np.where(edge, np.nan, slope) * t
    return point % size, -normal / np.sqrt((normal * normal).sum(axis=0))


def _height(shape, point, e, size) -> np.ndarray:
    """How far behind a point, along e, the surface lies; nan unless between -ALONG and ALONG."""
    before, behind = point - ALONG * e, point + ALONG * e
    crosses = ~shape.inside(*(before % size)) & shape.inside(*(behind % size))
    share = shape.distance(before, 2 * ALONG * e, size)
    return np.where(crosses, (2 * share - 1) * ALONG, np.nan)


def _across(e) -> list[np.ndarray]:
    """Unit vectors across e (D, n) and each other."""
    if len(e) == 2:
        return [np.array([-e[1], e[0]])]
    least = np.abs(e).argmin(axis=0)
    axis = (np.arange(3)[:, None] == least).astype(float)
    first = np.cross(e, axis, axis=0)
    first /= np.sqrt((first * first).sum(axis=0))
    return [first, np.cross(e, first, axis=0)]


def _velocity(case, boundary, points, t: float) -> np.ndarray:
    """The velocity of a wall at points (D, n)."""
    found = np.zeros_like(points)
    for k, (name, value) in enumerate(boundary.values().items()):
        cell_value = CellValue(name, value, case.dimensions)
        at = dict(zip(AXES, points, strict=False))
        found[k] = numeric(cell_value.tree, cell_value.evaluate(case.domain.size, t) | at)
    return found


def _times(case, boundary) -> list[int]:
    """Some steps of the run if the velocity changes, the first alone otherwise."""
    values = (CellValue(n, v, case.dimensions) for n, v in boundary.values().items())
    last = case.run.steps if any(value.timed for value in values) else 0
    return np.unique(np.linspace(0, last, min(last + 1, TIMES)).astype(int)).tolist()


def _vector(u) -> str:
    return f"[{', '.join(f'{round(v, 12) + 0:.4g}' for v in u)}]"
