"""The solid share of each cell, for bodies whose boundary acts in cells instead of on links."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.model.case import Case
from mpilbm.parallel.slabs import Slab
from mpilbm.solids import Flags, Floats
from mpilbm.solids.masks import load_mask
from mpilbm.solids.solid_cells import centres_around, padded_ids

REACH = 2.0  # cells along an axis in which a surface is looked for
SMALL = 1e-8  # a component of a unit normal below which the plane is parallel to the axis
HALVINGS = 30  # of REACH, so that a surface is found to 2e-9 cells


def share_behind(distance: NDArray, normal: NDArray) -> Floats:
    """The share of unit cells, (n,), on the side of planes to which the normal does not point.

    distance: (n,), the signed distance of the centre of the cell from the plane, positive where the
    normal points to. normal: unit vectors (D, n), D = 2 or 3; a normal of 0 has the share 1/2.

    With m_k the absolute components of n, divided by their sum and in ascending order, and alpha =
    1/2 - distance / sum_k |n_k| the plane is m.x = alpha in the cell 0 <= x_k <= 1; for alpha <=
    1/2, otherwise 1 minus the result for 1 - alpha, the share is

        alpha^3 / (6 m_1 m_2 m_3)                                                  alpha < m_1
        alpha (alpha - m_1) / (2 m_2 m_3) + m_1^2 / (6 m_2 m_3)                    alpha < m_2
        (alpha^3 - (alpha - m_1)^3 - (alpha - m_2)^3) / (6 m_1 m_2 m_3)            alpha < m_1 + m_2
        (… - max(alpha - m_3, 0)^3) / (6 m_1 m_2 m_3), or
        (2 alpha - m_1 - m_2) / (2 m_3) where m_1 + m_2 <= m_3                     above

    Exact to rounding. [Scardovelli & Zaleski 2000, J. Comput. Phys. 164, 228, eqs. 11-14]
    """
    size = np.abs(normal)
    size = np.where(size < SMALL, 0, size)
    total = size.sum(axis=0)
    known = total > 0
    scale = np.where(known, total, 1.0)
    m = np.sort(np.concatenate([size / scale, np.zeros((3 - len(size), size.shape[1]))]), axis=0)
    m1, m2, m3 = m[0], m[1], np.where(known, m[2], 1.0)
    offset = np.clip(distance / scale, -0.5, 0.5)
    alpha = 0.5 - np.abs(offset)
    pair = m1 + m2
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        three = 6 * m1 * m2 * m3
        cubes = alpha**3 - (alpha - m1) ** 3 - (alpha - m2) ** 3
        beyond = np.where(alpha > m3, (alpha - m3) ** 3, 0)
        flat, first = (2 * alpha - pair) / (2 * m3), m1 * m1 / (6 * m2 * m3)
        of_two = alpha * (alpha - m1) / (2 * m2 * m3) + first
        share = np.where(pair <= m3, flat, (cubes - beyond) / three)
        share = np.where(alpha < np.minimum(pair, m3), cubes / three, share)
        share = np.where(alpha < m2, of_two, share)
        share = np.where(alpha < m1, alpha**3 / three, share)
    share = np.clip(np.where(known, share, alpha), 0, 0.5)
    return np.where(offset > 0, share, 1 - share)


def overlap(centre: NDArray, lower: float, upper: float) -> Floats:
    """The part of the unit interval around each centre that lies between two limits."""
    ends = np.minimum(centre + 0.5, upper) - np.maximum(centre - 0.5, lower)
    return np.clip(ends, 0, 1)


def around_cells(inside: Callable[..., Flags], points: Floats) -> Flags:
    """Whether the corners of the unit cells around points (D, n) are not all on one side."""
    D, first = len(points), inside(*points)
    cut = np.zeros(points.shape[1], bool)
    for corner in np.ndindex(*(2,) * D):
        cut |= inside(*(points + np.reshape(corner, (D, 1)) - 0.5)) != first
    return cut


def plane_through(inside: Callable[..., Flags], points: Floats) -> tuple[Floats, Floats]:
    """Signed distance (n,) and unit normal (D, n) of a plane through a surface near points (D, n).

    The plane meets each axis through a point where the nearest surface within REACH does, and is
    parallel to an axis along which there is none; the distance is positive outside. Where no axis
    meets the surface, the distance is infinite.
    """
    solid = inside(*points)
    slope = np.zeros(points.shape)
    for axis, sign in ((axis, sign) for axis in range(len(points)) for sign in (-1.0, 1.0)):
        step = np.zeros((len(points), 1))
        step[axis] = sign
        at = _crossing(inside, points, step, solid)
        nearer = 1 / np.maximum(at, SMALL) > np.abs(slope[axis])
        slope[axis] = np.where(nearer & np.isfinite(at), sign / np.maximum(at, SMALL), slope[axis])
    size = np.sqrt((slope**2).sum(axis=0))
    met = size > 0
    size = np.where(met, size, 1.0)
    side = np.where(solid, 1.0, -1.0)  # from a fluid point the surface lies against the normal
    return np.where(met, -side / size, -side * np.inf), side * slope / size


def _crossing(inside: Callable[..., Flags], points: Floats, step: Floats, solid: Flags) -> Floats:
    """The distance along a unit step at which points leave the solid, or enter it; else inf."""
    near, far = np.zeros(points.shape[1]), np.full(points.shape[1], np.inf)
    for reach in np.arange(0.5, REACH + 0.25, 0.5):
        mine = np.flatnonzero(np.isinf(far))
        changed = inside(*(points[:, mine] + reach * step)) != solid[mine]
        far[mine[changed]] = reach
        near[mine[~changed]] = reach
    some = np.flatnonzero(np.isfinite(far))
    for _ in range(HALVINGS):
        middle = (near[some] + far[some]) / 2
        same = inside(*(points[:, some] + middle * step)) == solid[some]
        near[some], far[some] = (
            np.where(same, middle, near[some]),
            np.where(same, far[some], middle),
        )
    return far


WHOLE = 255  # the stored share of a cell that is solid as a whole
POINTS = 2**15  # cells whose shares are computed together

Part = tuple[tuple[slice, ...], NDArray[np.float32]]  # part of an array of cells, and shares there


@dataclass(frozen=True, eq=False)
class Shares:
    """The solid shares of the cells of a slab.

    share  uint8 (planes, rows, nx), the share times WHOLE
    body   uint8 or uint16 (planes, rows, nx), 1 + the number of the body with the largest share,
           the last of several; 0 where the share is 0
    """

    share: NDArray[np.uint8]
    body: NDArray[Any]

    @classmethod
    def find(cls, case: Case, slab: Slab, solid: NDArray[Any]) -> "Shares":
        """The shares of all bodies at rest whose boundary acts in cells.

        solid: (planes, rows, nx), the bodies of the cells, see Geometry. Shares of several bodies
        are added, at most to 1. Cells of other bodies have the share 0.
        """
        total = np.zeros(solid.shape, np.float32)
        largest, body = np.zeros_like(total), np.zeros_like(solid)
        others: list[int] = []
        for k, each in enumerate(case.bodies):
            if not each.boundary.capabilities.in_cells:
                others.append(k + 1)
                continue
            if each.motion is not None:
                continue
            for where, share in _parts(case, k, slab):
                total[where] += share
                more = (share > 0) & (share >= largest[where])
                np.copyto(body[where], k + 1, where=more)
                np.copyto(largest[where], share, where=more)
        of_others = np.zeros(1 + len(case.bodies), bool)
        of_others[others] = True
        total[of_others[solid]] = 0
        np.rint(np.minimum(total, 1, out=total) * np.float32(WHOLE), out=largest)
        stored = largest.astype(np.uint8)
        body[stored == 0] = 0
        return cls(stored, body)

    def cells_of(self, bodies: Sequence[int]) -> Flags:
        """The cells of some bodies, (planes, rows, nx)."""
        return np.isin(self.body, np.add(bodies, 1))


def shares_beside(case: Case, slab: Slab, ghost: int) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Yield (local plane, shares (rows, nx)) of each of so many ghost planes that is in the box.

    For kernels that read the force at cells away from walls, which may belong to other slabs.
    """
    beyond = (*range(-ghost, 0), *range(slab.planes, slab.planes + ghost))
    for local in beyond:
        plane = slab.global_plane(local)
        if plane is not None:
            alone = Slab(case.shape, 0, 1, plane, plane + 1, slab.periodic)
            yield local, Shares.find(case, alone, padded_ids(case, alone)[1:-1]).share[0]


def _parts(case: Case, number: int, slab: Slab) -> Iterator[Part]:
    """The shares of a body in parts of a slab; those of its images are added."""
    body, begin, end = case.bodies[number], slab.begin, slab.end
    if body.shape is None:
        assert body.mask is not None  # a body has a shape or a mask
        solid = load_mask(body.mask, case, begin, end, f"body.{number}.mask")
        yield (slice(None),), solid.astype(np.float32)
        return
    for image in body.shape.in_box(case.domain).images:
        for where, size, points in centres_around(image, case, begin, end):
            at = np.stack([np.broadcast_to(x, size).reshape(-1) for x in points])
            share = np.empty(size, np.float32)
            for begin_at in range(0, share.size, POINTS):
                block = slice(begin_at, begin_at + POINTS)
                share.reshape(-1)[block] = image.share(at[:, block])
            yield where, share
