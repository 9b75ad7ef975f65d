"""The facets of bodies: triangles of a mesh, or faces between fluid and solid cells.

In two dimensions facets are lines. Facets of a mesh are divided until no side is longer than
LONGEST cells, so that each one has a few cells next to it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.solids.shapes.mesh import Mesh

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LONGEST = 2.0  # cells
MARGIN = 3.0  # cells beyond the box, within which facets are kept
NUDGE = 1e-3  # cells from a facet to the point that shows on which side the fluid is


@dataclass(frozen=True, eq=False)
class Facets:
    """n facets with k corners each: 3 of triangles, 4 of faces of cells, 2 of lines.

    corners  float64 (n, k, D), in cells
    normal   float64 (n, D), unit vectors into the fluid
    """

    corners: Floats
    normal: Floats

    @property
    def centres(self) -> Floats:
        """The mean of the corners, (n, D)."""
        return self.corners.mean(axis=1)

    @property
    def areas(self) -> Floats:
        """Areas in cells^2, in 2D lengths in cells, (n,)."""
        return areas(self.corners)


def areas(corners: Floats) -> Floats:
    """Areas of facets (n, k, D), in 2D lengths."""
    a, b = corners[:, 0], corners[:, 1]
    if corners.shape[1] == 2:
        return np.sqrt(((b - a) ** 2).sum(axis=1))
    c = corners[:, -1]
    size = np.sqrt((np.cross(b - a, c - a) ** 2).sum(axis=1))
    return size if corners.shape[1] == 4 else size / 2


def of_cells(centres: Floats, axis: Ints, side: Ints) -> Facets:
    """Faces of fluid cells: `axis` normal to the face, `side` 1 if the fluid is above, else -1."""
    n, D = centres.shape
    normal = np.zeros((n, D))
    normal[np.arange(n), axis] = side
    middle = centres - normal / 2
    along = np.zeros((2, n, D))  # half the sides of the face, right-handed with the normal
    for k in range(D - 1):
        along[k, np.arange(n), (axis + 1 + k) % D] = 0.5
    along[0] *= side[:, None]
    a, b = along
    if D == 2:
        return Facets(np.stack([middle - a, middle + a], 1), normal)
    return Facets(np.stack([middle - a - b, middle + a - b, middle + a + b, middle - a + b], 1),
                  normal)  # fmt: skip


def of_mesh(shape: Mesh, domain: Any) -> Facets:
    """The triangles of a mesh in the box, in 2D the lines of its section.

    Surfaces that bound no solid cells (thin sheets) have a facet on each side.
    """
    D = len(domain.size)
    corners = shape.surface.corners.transpose(2, 1, 0)
    corners = _section(corners) if D == 2 else np.array(corners)
    corners = _divided(corners[areas(corners) > 0], domain)
    normal = _normals(corners)
    if not shape.loaded.closed:
        return Facets(
            np.concatenate([corners, corners[:, ::-1]]), np.concatenate([normal, -normal])
        )
    centres = corners.mean(axis=1)
    beyond = centres + NUDGE * normal
    turned = np.asarray(shape.inside(*beyond.T), bool)
    corners = np.where(turned[:, None, None], corners[:, ::-1], corners)
    return Facets(corners, np.where(turned[:, None], -normal, normal))


def _normals(corners: Floats) -> Floats:
    """Unit vectors normal to the facets."""
    a = corners[:, 1] - corners[:, 0]
    if corners.shape[1] == 2:
        normal = np.stack([a[:, 1], -a[:, 0]], 1)
    else:
        normal = np.cross(a, corners[:, 2] - corners[:, 0])
    return normal / np.sqrt((normal**2).sum(axis=1))[:, None]


def _section(triangles: Floats) -> Floats:
    """The lines (n, 2, 2) in which triangles (m, 3, 3) meet the plane z = 0."""
    above = triangles[:, :, 2] >= 0
    mixed = above.any(axis=1) & ~above.all(axis=1)
    triangles, above = triangles[mixed], above[mixed]
    single = np.where(above.sum(axis=1) == 1, above.argmax(axis=1), above.argmin(axis=1))
    rows = np.arange(len(triangles))
    tip = triangles[rows, single]
    ends = []
    for k in (1, 2):
        other = triangles[rows, (single + k) % 3]
        t = tip[:, 2] / (tip[:, 2] - other[:, 2])
        ends.append(tip[:, :2] + t[:, None] * (other - tip)[:, :2])
    return np.stack(ends, 1)


def _divided(corners: Floats, domain: Any) -> Floats:
    """Facets near the box, halved along each side until no side is longer than LONGEST."""
    if not len(corners):
        return corners
    done = [corners[:0]]
    size, periodic = np.array(domain.size, float), np.array(domain.periodic[: len(domain.size)])
    lower, upper = corners.min(axis=(0, 1)), corners.max(axis=(0, 1))
    clipped = ~periodic | (upper - lower >= size)  # else the body is in one piece across the face
    margin = np.where(periodic, 0, MARGIN)
    while len(corners):
        low, high = corners.min(axis=1), corners.max(axis=1)
        near = (high > -margin) & (low < size + margin)
        corners = corners[(near | ~clipped).all(axis=1)]
        sides = corners - np.roll(corners, 1, axis=1)
        long = (sides**2).sum(axis=2).max(axis=1, initial=0) > LONGEST**2
        done.append(corners[~long])
        corners = _halved(corners[long])
    found = np.concatenate(done)
    centres = found.mean(axis=1)
    inside = (centres >= -margin) & (centres < size + margin)
    return found[(inside | ~clipped).all(axis=1)]


def _halved(corners: Floats) -> Floats:
    """Two halves of each line, or four similar parts of each triangle."""
    middle = (corners + np.roll(corners, -1, axis=1)) / 2
    if corners.shape[1] == 2:
        a, b, m = corners[:, 0], corners[:, 1], middle[:, 0]
        return np.concatenate([np.stack([a, m], 1), np.stack([m, b], 1)])
    a, b, c = (corners[:, k] for k in range(3))
    ab, bc, ca = (middle[:, k] for k in range(3))
    parts = (a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)
    return np.concatenate([np.stack(part, 1) for part in parts])
