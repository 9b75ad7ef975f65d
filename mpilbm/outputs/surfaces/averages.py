"""Values on facets as means over the cells next to them.

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
the body.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mpilbm.outputs.surfaces.facets import Facets, Floats, Ints

REACH, DEPTH = 2.0, 1.5  # cells
BLOCK = 1 << 16  # facets whose neighbours are searched at a time


@dataclass(frozen=True, eq=False)
class Pairs:
    """Cells and the facets within reach.

    cell, facet  int64 (m,), numbers of both
    kernel       float64 (m,), K_ij, 0 for cells on the other side of a facet
    weight       float64 (m,), k_ij
    distance     float64 (m,), of the cell from the plane of the facet
    shift        float64 (m, D), from the cell to its periodic image that is near the facet
    cells        the number of cells
    facets       the facets
    normal       float64 (f, D), n_j
    """

    cell: Ints
    facet: Ints
    kernel: Floats
    weight: Floats
    distance: Floats
    shift: Floats
    cells: int
    facets: Facets
    normal: Floats

    @classmethod
    def find(cls, cells: Floats, area: Floats, facets: Facets, images: Floats) -> "Pairs":
        """The pairs of cells (n, D) with the areas a_i (n, D), and of their periodic images.

        images: (m, D), the vectors by which the images are moved, 0 included.
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
        cell, facet, kernel, weight, depth, image = (np.concatenate(each) for each in parts)
        order = np.lexsort((depth, cell, facet))
        return cls(
            cell=cell[order].astype(np.int64),
            facet=facet[order].astype(np.int64),
            kernel=kernel[order],
            weight=weight[order],
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
        return replace(self, normal=normal, weight=self.kernel * np.maximum(facing, 0))

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
        total = np.bincount(self.cell, areas[self.facet] * self.weight, self.cells)
        alone = np.flatnonzero(total == 0)
        part = self.weight / total[self.cell]
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
            hit = np.flatnonzero(keys[np.minimum(first, keys.size - 1)] == wanted)
            yield order[first[hit] % keys.size], mine[inside[hit]]


def _keys(places: Ints, size: Ints) -> Ints:
    """One number for each cell."""
    key = places[:, 0]
    for k in range(1, places.shape[1]):
        key = key * size[k] + places[:, k]
    return key
