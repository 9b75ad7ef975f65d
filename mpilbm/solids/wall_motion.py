"""Detects bodies whose wall velocity has a component normal to their surface."""

from collections.abc import Sequence

import numpy as np

from mpilbm.core.formulas.trees import numeric
from mpilbm.core.formulas.values import CellValue
from mpilbm.model.case import Body, Case
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.boundaries import Boundary
from mpilbm.physics.lattices import AXES
from mpilbm.solids import Floats, Ints
from mpilbm.solids.entry_list import EntryList
from mpilbm.solids.link_set import LinkSet
from mpilbm.solids.periodic_images import ShapeInBox
from mpilbm.solids.shapes import Shape
from mpilbm.solids.solid_cells import centres
from mpilbm.solids.wall_distance import perpendicular

ASIDE = 1e-4  # step in cells of the finite differences that give the slope of the surface
ALONG = 1e-2  # distance in cells, before and behind these points, in which the surface is searched
STRAIGHT = 1e-3  # a larger difference of the slopes on both sides is an edge without a normal
TIMES = 16  # number of times in the run at which formulas of t are checked


def through(case: Case, slab: Slab, lists: Sequence[EntryList]) -> dict[int, tuple[int, str]]:
    """Return {number of the body: (cell, sentence)} for bodies that move through their surface.

    The cell is the first one next to such a point. The velocity is evaluated at the surface of the
    shape, at one link of each cell. Masks and voxels have no smooth surface and are not checked.
    """
    found = {}
    for each in (entries for entries in lists if entries.layer is None):
        for member, owner in enumerate(each.owners):
            if owner.body is None or not any(owner.boundary.wall_velocity or ()):
                continue
            body, links = case.bodies[owner.body], each.links.moving()
            shape = body.shape
            if shape is None or not shape.has_surface:
                continue
            mine = np.flatnonzero((each.member == member) & links.any())
            wrong = _first_wrong(case, slab, body, shape, each.cells[mine], links[mine].first())
            if wrong:
                found[owner.body] = wrong
    return found


def _first_wrong(
    case: Case, slab: Slab, body: Body, shape: Shape, cells: Ints, links: LinkSet
) -> tuple[int, str] | None:
    """Return the first cell where the wall moves through the surface, and a sentence; or None.

    links: one link of each cell.
    """
    start, step = links_out(case, slab, cells, links)
    points, n = surface(case, shape.in_box(case.domain), start, step)
    for t in _times(case, body.boundary):
        u = _velocity(case, body.boundary, points, t)
        across, speed = (u * n).sum(axis=0), np.sqrt((u * u).sum(axis=0))
        wrong = np.flatnonzero(np.abs(across) > shape.roughness * speed)  # nan: there is no normal
        if wrong.size:
            k = wrong[0]
            at = ", ".join(f"{a}={v:.4g}" for a, v in zip(AXES, points[:, k], strict=False))
            return int(cells[k] + slab.begin * np.prod(slab.shape[1:])), (
                f"at the surface point {at} it is {_vector(u[:, k])} at t = {t}, of which "
                f"{across[k]:.4g} lead through the surface, along the normal {_vector(n[:, k])}; "
                "allowed: along the surface only, since a wall does not move over cells; use a "
                "rotation about the body's axis, a frame in which the body rests, or a body with a "
                "motion"
            )
    return None


def links_out(case: Case, slab: Slab, cells: Ints, links: LinkSet) -> tuple[Floats, Floats]:
    """Return the centres of cells and the vectors -c_i along their links, (D, n) each."""
    cell, i = links.unpack()
    return centres(case, slab, cells[cell]).T, -np.array(case.lattice.c, np.float64)[i].T


def surface(case: Case, shape: ShapeInBox, start: Floats, step: Floats) -> tuple[Floats, Floats]:
    """Return the points where links start + q step meet a shape, and the outward unit normals.

    shape: see ShapeInBox. Both have the shape (D, n). Normals are nan at edges and for links across
    a face at which the shape ends without a surface.

    n = -(e - sum_t ds/dt t) / |e - sum_t ds/dt t|, where e is the direction of the link, t are the
    unit vectors perpendicular to e, and s is the height of the surface along lines parallel to the
    link; ds/dt is computed by finite differences.
    """
    size = np.reshape(case.domain.size, (-1, 1))
    point = start + shape.distance(start, step) * step
    e = step / np.sqrt((step * step).sum(axis=0))
    crosses = (start + step < 0) | (start + step > size)
    crosses = crosses[~np.array(shape.continues)].any(axis=0)
    normal = np.where(crosses, np.nan, e)
    for t in perpendicular(e):
        ahead = _height(shape, point + ASIDE * t, e, size)
        behind = _height(shape, point - ASIDE * t, e, size)
        slope = (ahead - behind) / (2 * ASIDE)
        edge = np.abs(ahead + behind) / ASIDE > STRAIGHT
        normal -= np.where(edge, np.nan, slope) * t
    return point % size, -normal / np.sqrt((normal * normal).sum(axis=0))


def _height(shape: ShapeInBox, point: Floats, e: Floats, size: Ints) -> Floats:
    """Distance along e from a point to the surface; nan unless between -ALONG and ALONG."""
    before, behind = point - ALONG * e, point + ALONG * e
    crosses = ~shape.inside(*(before % size)) & shape.inside(*(behind % size))
    share = shape.distance(before, 2 * ALONG * e)
    return np.where(crosses, (2 * share - 1) * ALONG, np.nan)


def _velocity(case: Case, boundary: Boundary, points: Floats, t: float) -> Floats:
    found = np.zeros_like(points)
    for k, (name, value) in enumerate(boundary.values().items()):
        cell_value = CellValue(name, value, case.dimensions)
        at = dict(zip(AXES, points, strict=False))
        found[k] = numeric(cell_value.tree, cell_value.evaluate(case.domain.size, t) | at)
    return found


def _times(case: Case, boundary: Boundary) -> list[int]:
    """At most TIMES steps of the run if the velocity changes with time, otherwise step 0."""
    values = (CellValue(n, v, case.dimensions) for n, v in boundary.values().items())
    last = case.run.steps if any(value.timed for value in values) else 0
    return np.unique(np.linspace(0, last, min(last + 1, TIMES)).astype(int)).tolist()


def _vector(u: Floats) -> str:
    return f"[{', '.join(f'{round(v, 12) + 0:.4g}' for v in u)}]"
