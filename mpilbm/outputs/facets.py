"""The facets of bodies, and values on them as means over the cells next to them.

Facets are triangles of a mesh, or faces between fluid and solid cells; in two dimensions lines.
Those of a mesh are divided until no side is longer than LONGEST cells, so that each one has a few
cells next to it.

A cell i next to a body has the force F_i of its links, of which F_i - P_i is viscous, the gauge
pressure p_i, and the area a_i = sum over its links of 2 w_i c_i / cs2, which points into the fluid.
Facet j with the centre x_j, the normal n_j and the area A_j uses the cells within REACH of it:

    k_ij = (1 - r^2 / REACH^2)^2 max(a_i . n_j, 0)

with r the part of x_i - x_j along the facet; cells farther than DEPTH from its plane are not used.

    pressure_j = sum_i k_ij p_i / sum_i k_ij
    traction_j = sum_i K_ij (F_i - P_i) / sum_i K_ij a_i . n_j,   K_ij = (1 - r^2 / REACH^2)^2
    force_j    = sum_i F_i k_ij / sum_m A_m k_im

so a constant pressure is exact, as is the shear along a plane wall; and the sum of force_j A_j is
the force on the body up to rounding. A cell without facets in reach belongs to the nearest one.
For faces of cells, n_j is the direction of sum_i K_ij a_i instead, which is close to the normal of
the body. Cells above the wall in which friction acts (solids/wall_layer.py) only have forces: they
take no part in the means of the pressure, nor in the denominator of traction_j.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
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
    corners = middle - a - b, middle + a - b, middle + a + b, middle - a + b
    return Facets(np.stack(corners, 1), normal)


def of_mesh(shape: Mesh, domain: Any, everywhere: bool = False) -> Facets:
    """The triangles of a mesh in the box, or everywhere; in 2D the lines of its section.

    Surfaces that bound no solid cells (thin sheets) have a facet on each side.
    """
    D = len(domain.size)
    corners = shape.surface.corners.transpose(2, 1, 0)
    corners = _section(corners) if D == 2 else np.array(corners)
    corners = _divided(corners[areas(corners) > 0], domain, everywhere)
    normal = normals(corners)
    if not shape.loaded.closed:
        return Facets(
            np.concatenate([corners, corners[:, ::-1]]), np.concatenate([normal, -normal])
        )
    centres = corners.mean(axis=1)
    beyond = centres + NUDGE * normal
    turned = np.asarray(shape.inside(*beyond.T), bool)
    corners = np.where(turned[:, None, None], corners[:, ::-1], corners)
    return Facets(corners, np.where(turned[:, None], -normal, normal))


def normals(corners: Floats) -> Floats:
    """Unit vectors normal to the facets."""
    a = corners[:, 1] - corners[:, 0]
    if corners.shape[1] == 2:
        normal = np.stack([a[:, 1], -a[:, 0]], 1)
    elif corners.shape[1] == 3:
        normal = np.cross(a, corners[:, 2] - corners[:, 0])
    else:
        normal = np.cross(corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1])
    return normal / np.maximum(np.sqrt((normal**2).sum(axis=1)), 1e-300)[:, None]


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


def _divided(corners: Floats, domain: Any, everywhere: bool) -> Floats:
    """Facets near the box, or all, halved along each side until none is longer than LONGEST."""
    if not len(corners):
        return corners
    done = [corners[:0]]
    size, periodic = np.array(domain.size, float), np.array(domain.periodic[: len(domain.size)])
    lower, upper = corners.min(axis=(0, 1)), corners.max(axis=(0, 1))
    # Along other axes the body is in one piece across the face.
    clipped = (~periodic | (upper - lower >= size)) & (not everywhere)
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


REACH, DEPTH = 2.0, 1.5  # cells
BLOCK = 1 << 16  # facets whose neighbours are searched at a time


@dataclass(frozen=True, eq=False)
class Pairs:
    """Cells and the facets within reach.

    cell, facet  int64 (m,), numbers of both
    kernel       float64 (m,), K_ij, 0 for cells on the other side of a facet
    share        float64 (m,), k_ij
    weight       float64 (m,), k_ij, 0 for cells that only have forces
    distance     float64 (m,), of the cell from the plane of the facet
    shift        float64 (m, D), from the cell to its periodic image that is near the facet
    cells        the number of cells
    facets       the facets
    normal       float64 (f, D), n_j
    """

    cell: Ints
    facet: Ints
    kernel: Floats
    share: Floats
    weight: Floats
    distance: Floats
    shift: Floats
    cells: int
    facets: Facets
    normal: Floats

    @classmethod
    def find(
        cls, cells: Floats, area: Floats, facets: Facets, images: Floats, above: NDArray[Any]
    ) -> "Pairs":
        """The pairs of cells (n, D) with the areas a_i (n, D), and of their periodic images.

        images: (m, D), the vectors by which the images are moved, 0 included. above: bool (n,),
        whether a cell only has a force.
        """
        centres, normals = facets.centres, facets.normal
        found: list[tuple[np.ndarray, ...]] = []
        for number, shift in enumerate(images):
            for i, j in _near(cells + shift, centres):
                apart = cells[i] + shift - centres[j]
                depth = (apart * normals[j]).sum(axis=1)
                beside = (apart**2).sum(axis=1) - depth**2
                facing = (area[i] * normals[j]).sum(axis=1)
                good = (beside < REACH**2) & (np.abs(depth) < DEPTH) & (facing > 0)
                kernel = (1 - beside[good] / REACH**2) ** 2
                each = i[good], j[good], kernel, kernel * facing[good], depth[good]
                found.append((*each, np.full(kernel.size, number)))
        parts = zip(*found, strict=True) if found else [[np.zeros(0)]] * 6
        cell, facet, kernel, share, depth, image = (np.concatenate(each) for each in parts)
        order = np.lexsort((depth, cell, facet))
        return cls(
            cell=cell[order].astype(np.int64),
            facet=facet[order].astype(np.int64),
            kernel=kernel[order],
            share=share[order],
            weight=share[order] * ~above[cell[order].astype(np.int64)],
            distance=depth[order],
            shift=images[image[order].astype(np.int64)],
            cells=len(cells),
            facets=facets,
            normal=normals,
        )

    def smoothed(self, area: Floats) -> "Pairs":
        """The pairs with n_j along the mean of the areas a_i (n, D) of the cells."""
        mean = np.stack([self.to_facets(self.kernel * a[self.cell]) for a in area.T], 1)
        size = np.sqrt((mean**2).sum(axis=1))
        normal = np.where(
            size[:, None] > 0, mean / np.where(size > 0, size, 1)[:, None], self.normal
        )
        facing = (area[self.cell] * normal[self.facet]).sum(axis=1)
        share = self.kernel * np.maximum(facing, 0)
        return replace(self, normal=normal, share=share, weight=share * (self.weight > 0))

    def to_facets(self, values: Floats) -> Floats:
        """The sum over the cells of each facet of values (m,)."""
        return np.bincount(self.facet, values, len(self.normal)).astype(float)

    def mean_of_pairs(self, values: Floats) -> Floats:
        """The mean of values of pairs (m,) on facets, nan where no cell is in reach."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.to_facets(self.weight * values) / self.to_facets(self.weight)

    def traction(self, forces: Floats) -> Floats:
        """Force per area on facets (f, D) from forces of cells (n, D), smoothed."""
        pieces = [self.to_facets(self.kernel * f[self.cell]) for f in forces.T]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.stack(pieces, 1) / self.to_facets(self.weight)[:, None]

    def shared(self, forces: Floats, nearest: Ints) -> Floats:
        """Force per area on facets (f, D), whose integral is the sum of forces of cells (n, D).

        nearest: int64 (n,), the facet of each cell that has none in reach.
        """
        areas = self.facets.areas
        total = np.bincount(self.cell, areas[self.facet] * self.share, self.cells)
        alone = np.flatnonzero(total == 0)
        part = self.share / total[self.cell]
        pieces = [self.to_facets(part * f[self.cell]) for f in forces.T]
        lost = [np.bincount(nearest[alone], f[alone], areas.size) for f in forces.T]
        return np.stack(pieces, 1) + np.stack(lost, 1) / areas[:, None]


def nearest_facets(cells: Floats, pairs: Pairs, images: Floats) -> Ints:
    """The facet nearest to each cell that is in no pair; 0 for all others."""
    found, centres = np.zeros(len(cells), np.int64), pairs.facets.centres
    alone = np.setdiff1d(np.arange(len(cells)), pairs.cell)
    for i in alone if len(centres) else ():
        moved = (cells[i] + images)[:, None] - centres
        found[i] = (moved**2).sum(axis=2).min(axis=0).argmin()
    return found


def _near(cells: Floats, centres: Floats) -> Iterator[tuple[Ints, Ints]]:
    """Yield numbers of cells and of facets whose distance is at most about REACH."""
    if not len(cells) or not len(centres):
        return
    places = np.floor(cells).astype(np.int64)
    low = places.min(axis=0) - 1
    size = places.max(axis=0) - low + 2
    key = _keys(places - low, size)
    order = np.argsort(key, kind="stable")
    keys, D, ends = key[order], cells.shape[1], int(np.ceil(np.hypot(REACH, DEPTH)))
    steps = np.stack(np.meshgrid(*[np.arange(-ends, ends + 1)] * D), -1).reshape(-1, D)
    near = np.flatnonzero(((centres > low - ends) & (centres < low + size + ends)).all(axis=1))
    for begin in range(0, near.size, BLOCK):
        mine = near[begin : begin + BLOCK]
        base = np.floor(centres[mine]).astype(np.int64) - low
        for step in steps:
            at = base + step
            inside = np.flatnonzero(((at >= 0) & (at < size)).all(axis=1))
            wanted = _keys(at[inside], size)
            first = np.searchsorted(keys, wanted)
            count = np.searchsorted(keys, wanted, "right") - first
            for n in range(count.max(initial=0)):
                hit = np.flatnonzero(count > n)
                yield order[first[hit] + n], mine[inside[hit]]


def _keys(places: Ints, size: Ints) -> Ints:
    """One number for each cell."""
    key = places[:, 0]
    for k in range(1, places.shape[1]):
        key = key * size[k] + places[:, k]
    return key
