"""Facets of any rigid shape: a net with a point in each cell of a grid that the surface cuts."""

from itertools import product

import numpy as np

from mpilbm.solids import Flags, Floats, Ints
from mpilbm.solids.sampled_shape import Rigid

LONGEST = 1.0  # side of the cells of the grid, in cells of the box
LEAST, MOST = 4, 160  # cells of the grid across the shape, along the longest side of the shape
AROUND = 3  # cells of the grid beyond the shape, half of them on each side
HALVINGS = 20  # of an edge, to find where the surface meets it
SLOPE = 0.05  # cells of the grid between the points whose distances give a normal
SHARP = 0.1  # of the largest: smaller eigenvalues are not those of an edge or corner
POINTS = 2**20  # of the grid whose distances are computed together


def facets_of(shape: Rigid, size: tuple[int, ...]) -> Floats:
    """Corners (n, 4, 3) of quadrilaterals, in 2D (n, 2, 2) of lines, as offsets from the centre.

    They turn counterclockwise as seen from outside. Their sides are about LONGEST, longer on shapes
    of more than MOST cells, and shorter across shapes of fewer than LEAST cells. size: the box,
    (3,), in which endless shapes end.

    The surface meets the edges of a grid at points p with normals n. Each of its cells that has
    such edges has a point x, the least squares solution of n . (x - p) = 0, which is at the edges
    and corners of the shape; around each of these edges there is a facet with the points of its
    cells. [Ju et al. 2002, ACM Trans. Graph. 21, 339]
    """
    D, centre = shape.dimensions, shape.middle
    down, up = (each[:D] for each in shape.extent(np.eye(3)))
    for a in (a for a in shape.endless if a < D):
        down[a], up[a] = centre[a], size[a] - centre[a]
    extent = down + up
    longest = max(LONGEST, float(extent.max()) / MOST)
    endless = np.isin(np.arange(D), shape.endless)
    across = np.where(
        endless, np.rint(extent / longest), np.maximum(np.ceil(extent / longest), LEAST)
    )
    side = extent / across  # flat ends are in the middle between points
    counts = across.astype(np.int64) + 1 + np.where(endless, 1, AROUND)
    lower = (up - down - side * (counts - 1)) / 2
    inside = _inside(shape, lower, side, counts)
    edges = [_edges(shape, inside, axis, lower, side) for axis in range(D)]
    met, normal = (np.concatenate([each[k] for each in edges]) for k in (0, 1))
    cells = np.concatenate([around for _, _, around in edges])
    fits: Flags = np.all((cells >= 0) & (cells < counts - 1), axis=-1)
    used, point = np.unique(cells[fits], axis=0, return_inverse=True)
    numbers = np.full(fits.shape, -1)
    numbers[fits] = point.reshape(-1)
    low = lower + side * used
    net = np.clip(_net(met, normal, numbers, len(used)), low, low + side)
    found: Floats = net[numbers[np.all(fits, axis=1)]]
    return found


def _distance(shape: Rigid, points: Floats) -> Floats:
    """The distance at points (n, D)."""
    return shape.distance(np.pad(points, ((0, 0), (0, 3 - points.shape[1]))))


def _inside(shape: Rigid, lower: Floats, side: Floats, counts: Ints) -> Flags:
    """Whether points of the grid are in the shape, (nx, ny[, nz])."""
    found = np.empty(counts, bool)
    axes = [a + s * np.arange(n) for a, s, n in zip(lower, side, counts, strict=True)]
    together = max(1, POINTS // int(np.prod(counts[1:])))
    for begin in range(0, counts[0], together):
        part = slice(begin, begin + together)
        grid = np.stack(np.meshgrid(axes[0][part], *axes[1:], indexing="ij"), axis=-1)
        distance = _distance(shape, grid.reshape(-1, len(axes)))
        found[part] = distance.reshape(grid.shape[:-1]) <= 0
    return found


def _edges(
    shape: Rigid, inside: Flags, axis: int, lower: Floats, side: Floats
) -> tuple[Floats, Floats, Ints]:
    """The edges along an axis that the surface meets: where, the normal there, the cells around.

    (n, D), (n, D) and (n, 2 or 4, D); the cells are in the order of the corners of the facet.
    """
    D = inside.ndim
    ends = [inside.take(range(k, inside.shape[axis] - 1 + k), axis) for k in (0, 1)]
    at = np.argwhere(ends[0] != ends[1])
    leaves = ends[0][tuple(at.T)]
    near = lower + side * at
    along = np.eye(D)[axis] * side
    low, high = np.zeros(len(at)), np.ones(len(at))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        same = (_distance(shape, near + middle[:, None] * along) <= 0) == leaves
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    met = near + ((low + high) / 2)[:, None] * along
    slopes = np.diag(SLOPE * side)
    rises = [_distance(shape, met + s) - _distance(shape, met - s) for s in slopes]
    normal = np.stack(rises, axis=-1) / side
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
    turn = np.zeros((2 ** (D - 1), D), np.int64)
    others = [(axis + 1 + k) % D for k in range(D - 1)]
    corners = list(product((-1, 0), repeat=D - 1))
    turn[:, others] = [corners[k] for k in ((0, 2, 3, 1) if D == 3 else (axis, 1 - axis))]
    around = at[:, None] + turn
    return met, normal, np.where(leaves[:, None, None], around, around[:, ::-1])


def _net(met: Floats, normal: Floats, numbers: Ints, count: int) -> Floats:
    """The point of each of `count` cells, (count, D).

    numbers: (n, 2 or 4), those of the cells around each edge, -1 without one.
    """
    D = met.shape[1]
    edge, place = np.nonzero(numbers >= 0)
    cell = numbers[edge, place]

    def summed(values: Floats) -> Floats:
        """The sum over the edges of each cell."""
        return np.bincount(cell, values[edge], count).astype(float)

    edges = summed(np.ones(len(met)))
    middle = np.stack([summed(p) / edges for p in met.T], axis=-1)
    offset = (normal * met).sum(axis=1)
    A = np.empty((count, D, D))
    b = np.empty((count, D))
    for i in range(D):
        b[:, i] = summed(normal[:, i] * offset)
        for j in range(D):
            A[:, i, j] = summed(normal[:, i] * normal[:, j])
    left = b - (A @ middle[..., None])[..., 0]
    inverse = np.linalg.pinv(A, rcond=SHARP, hermitian=True)
    found: Floats = middle + (inverse @ left[..., None])[..., 0]
    return found
