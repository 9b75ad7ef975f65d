"""Finds parts of a surface that a grid does not resolve, and parts that overlap.

Lines through the cell centres along each axis are cut by the surface into pieces in the solid and
in the fluid. The length of a piece times the cosine of the angle between the line and the surface's
normal is the thickness of the part if this angle is below 60 degrees at both ends, and the surfaces
there are parallel within 60 degrees. Other pieces pass a rim or an edge of the part, and say
nothing about its thickness. Neither does a piece without length between coincident surfaces of two
overlapping parts, where the line enters both, or leaves both.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpilbm.solids import Flags, Floats
from mpilbm.solids.surfaces.surface import FAR, Hits, Surface, hits, normals

THIN = 2  # cells; a thinner part is reported
FACING = 0.5  # cosine of 60 degrees
COINCIDENT = 1e-4  # cells between surfaces that are meant to be the same
SAMPLES = {2: 2**14, 3: 2**18}  # lines across a projection, by dimension


@dataclass(frozen=True)
class Place:
    """A number of places, and the coordinates of the first one, in cells."""

    count: int = 0
    first: tuple[float, ...] = ()


@dataclass(frozen=True)
class Parts:
    """What lines through the cell centres meet.

    pieces    number of pieces in the solid with a thickness
    thin      those thinner than two cells
    sheets    those thinner than one cell that contain no cell centre
    doubled   cells in an even number of overlapping parts, which count as fluid
    mixed     whether the triangles have no common orientation, so that `doubled` is not known
    """

    pieces: int
    thin: Place
    sheets: Place
    doubled: Place
    mixed: bool


def examine(surface: Surface, size: Sequence[int], inverted: bool) -> Parts:
    """Return what the lines through the cell centres of a box of `size` cells meet.

    inverted: whether the solid is outside the surface.
    """
    pieces, thin, sheets = 0, Place(), Place()
    doubled, mixed = Place(), False
    for axis in range(len(size)):
        points = _lines(surface, size, axis)
        if not points.size:
            continue
        step = np.eye(3)[axis]
        found, line = surface.hits(points, step, (-FAR, FAR))
        start = np.empty_like(points)
        start[:, line] = points  # of each line of `found`
        normal = normals(surface.corners, found.triangle)
        if axis == 0:
            doubled, mixed = _doubled(found, start, normal[0], size)
        is_part = ~_coincident(found.s, normal[axis]) | mixed
        middle, thickness, empty = _pieces(
            found, start, normal, is_part, axis, size[axis], inverted
        )
        pieces += thickness.size
        thin = _more(thin, middle[:, thickness < THIN], len(size))
        sheets = _more(sheets, middle[:, (thickness < 1) & empty], len(size))
    return Parts(pieces, thin, sheets, doubled, mixed)


def _lines(surface: Surface, size: Sequence[int], axis: int) -> Floats:
    """Points (3, m) of the lines along an axis through the cell centres near the surface."""
    first = np.clip(np.floor(surface.lower.min(axis=1)), 0, None)
    last = np.ceil(surface.upper.max(axis=1))
    sides = [
        np.arange(first[k], min(last[k], size[k])) + 0.5
        if k < len(size) and k != axis
        else np.zeros(1)
        for k in range(3)
    ]
    return np.stack([each.reshape(-1) for each in np.meshgrid(*sides, indexing="ij")])


def _coincident(s: Floats, along: Floats) -> Flags:
    """Whether the line enters a part at a hit and another one at the next, at the same place.

    Or leaves both. s: positions of the hits; along: components of the normals along the line.
    """
    found = (along[1:] * along[:-1] > 0) & (np.diff(s) < COINCIDENT)
    return np.append(found, False)[: s.size]


def _pieces(
    found: Hits,
    start: Floats,
    normal: Floats,
    is_part: Flags,
    axis: int,
    size: int,
    inverted: bool,
) -> tuple[Floats, Floats, Flags]:
    """Return the middle (3, n), thickness, and emptiness of the pieces that have a thickness.

    Empty pieces contain no cell centre. Only pieces in the box count, and only those from a hit to
    the next one for which `is_part` is true.
    """
    rank = np.arange(found.line.size) - np.searchsorted(found.line, found.line)
    same = found.line[1:] == found.line[:-1]
    begin = np.flatnonzero(same & is_part[:-1] & (rank[:-1] % 2 == int(inverted)))
    low, high = found.s[begin], found.s[begin + 1]
    before, behind = (normal[:, k] * np.sign(normal[axis, k]) for k in (begin, begin + 1))
    cosine = np.minimum(before[axis], behind[axis])
    mine = (cosine >= FACING) & ((before * behind).sum(axis=0) >= FACING)
    mine &= (low >= 0) & (high <= size)
    low, high, begin = low[mine], high[mine], begin[mine]
    middle = start[:, found.line[begin]].copy()
    middle[axis] = (low + high) / 2
    return middle, (high - low) * cosine[mine], np.ceil(low - 0.5) == np.ceil(high - 0.5)


def _doubled(found: Hits, start: Floats, normal: Floats, size: Sequence[int]) -> tuple[Place, bool]:
    """Return the cells with an even winding number other than 0, and `Parts.mixed`.

    The winding number at a point is the sum over the hits before it: 1 where the line enters a
    part, -1 where it leaves one.
    """
    if not found.line.size:
        return Place(), False
    first = np.searchsorted(found.line, found.line)
    total = np.cumsum(-np.sign(normal)).astype(np.int64)
    winding = total - np.where(first > 0, total[first - 1], 0)
    last = np.append(found.line[1:] != found.line[:-1], True)
    if winding[last].any():
        return Place(), True
    begin = np.flatnonzero((winding != 0) & (winding % 2 == 0))
    cell = np.clip(np.ceil(np.stack([found.s[begin], found.s[begin + 1]]) - 0.5), 0, size[0])
    count = (cell[1] - cell[0]).astype(np.int64)
    some = np.flatnonzero(count)
    middle = start[:, found.line[begin[some]]].copy()
    middle[0] = cell[0, some] + 0.5
    place = _more(Place(), middle, len(size))
    return Place(int(count.sum()), place.first), False


def _more(place: Place, points: Floats, dimensions: int) -> Place:
    """The place with further points (3, n)."""
    count = points.shape[1]
    first = place.first
    if count and not first:
        first = tuple(points[:dimensions, 0].tolist())
    return Place(place.count + count, first)


def frontal_area(
    surface: Surface, axis: int, lower: Sequence[float], upper: Sequence[float]
) -> float:
    """Return the area of the projection along an axis, in cells^2; in 2D its length, in cells.

    It is the share of about SAMPLES lines on a regular grid between the corners `lower` and `upper`
    that meet the surface. For a smooth outline the relative error is about 1e-4.
    """
    D = len(lower)
    across = [k for k in range(D) if k != axis]
    low = np.array(lower)[across]
    extent = np.array(upper)[across] - low
    if (extent <= 0).any():
        return 0.0
    spacing = float(np.prod(extent) / SAMPLES[D]) ** (1 / len(across))
    counts = np.ceil(extent / spacing).clip(1, SAMPLES[D]).astype(int)
    # in units of the spacing, in which the lines have the coordinates 0.5, 1.5, …
    triangles = [
        (surface.corners[k] - start) * (n / side)
        for k, start, side, n in zip(across, low, extent, counts, strict=True)
    ]
    centres = [np.arange(n) + 0.5 for n in counts]
    if len(across) == 1:
        triangles.append(surface.corners[2])
        centres.append(np.zeros(1))
    grid = np.stack([each.reshape(-1) for each in np.meshgrid(*centres, indexing="ij")])
    found = hits(np.stack([*triangles, surface.corners[axis]]), grid)
    return float(np.unique(found.line).size * np.prod(extent / counts))
