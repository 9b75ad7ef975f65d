"""Solid cells from shapes and masks of bodies: ids, fluid neighbours, counts and coordinates.

Later bodies replace earlier ones.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.formulas.values import Plane
from mpilbm.model.case import BoundedLattice, Case
from mpilbm.parallel.slabs import Slab
from mpilbm.solids import Flags, Floats, Ints
from mpilbm.solids.masks import load_mask
from mpilbm.solids.periodic_images import Cut, Image

Piece = tuple[tuple[slice, ...], Flags]  # part of an array, and its solid cells

POINTS = 2**20  # number of cell centres for which a shape is evaluated at a time
CELLS = 2**20  # examined together, or one plane


def padded_ids(case: BoundedLattice, slab: Slab, overlaps: dict | None = None) -> np.ndarray:
    """Return the ids of the cells of a slab and its two neighbour planes, (planes + 2, rows, nx).

    The id is 0 for fluid and beyond faces, and k + 1 for body k. overlaps: a dict to which the
    number of cells of body j that belong to body k instead is added, {(j, k): cells}. Raises
    CaseError for invalid masks.
    """
    dtype = np.uint8 if len(case.bodies) < 255 else np.uint16
    ids = np.zeros((slab.planes + 2, *slab.shape[1:]), dtype)
    _paint(case, slab.begin, slab.end, ids[1:-1], overlaps)
    for local in (-1, slab.planes):
        plane = slab.global_plane(local)
        if plane is not None:
            _paint(case, plane, plane + 1, ids[local + 1 : local + 2])
    return ids


def solids(case: BoundedLattice, ids: NDArray[Any]) -> NDArray[Any]:
    """The ids without those of bodies that hold populations, see Condition.conducts."""
    conducting = [1 + k for k, body in enumerate(case.bodies) if body.boundary.conducts]
    return np.where(np.isin(ids, conducting), ids.dtype.type(0), ids) if conducting else ids


def fluid_plane(case: BoundedLattice, slab: Slab, local: int) -> Flags:
    """Bool (rows, nx): whether the cells of a local plane, in or beyond the slab, are fluid.

    False beyond faces of the box.
    """
    plane, fluid = slab.global_plane(local), np.zeros((1, *slab.shape[1:]), bool)
    if plane is not None:
        ids = np.zeros(fluid.shape, np.uint16)
        _paint(case, plane, plane + 1, ids)
        fluid = solids(case, ids) == 0
    return fluid[0]


def fluid_planes(case: BoundedLattice, slab: Slab, ids: NDArray[Any]) -> Callable[[int], Flags]:
    """Return a function of the local plane with the result of `fluid_plane`.

    ids: see `padded_ids`; only planes outside `ids` are computed.
    """

    def plane(local: int) -> Flags:
        near = -1 <= local <= slab.planes
        return ids[local + 1] == 0 if near else fluid_plane(case, slab, local)

    return plane


def face_cells(case: BoundedLattice, face: str) -> Flags:
    """Where the cells next to a face of a 3D box are in no body, bool, slowest axis first."""
    size, normal = case.domain.size, "xyz".index(face[0])
    layer = 0 if face[1] == "-" else size[normal] - 1
    sides = [np.array([layer]) if a == normal else np.arange(n) for a, n in enumerate(size)]
    z, y, x = np.meshgrid(*sides[::-1], indexing="ij")
    found = np.ones(z.shape, bool)
    for k, body in enumerate(case.bodies):
        if body.motion is not None:
            continue
        if body.shape is not None:
            points = [np.ascontiguousarray(a + 0.5) for a in (x, y, z)]
            found &= ~body.shape.in_box(case.domain).inside(*points)
            continue
        assert body.mask is not None  # a body has a shape or a mask
        for row, plane in enumerate(sides[2]):
            solid = load_mask(body.mask, case, plane, plane + 1, f"body.{k}.mask")
            found[row] &= ~solid[0][np.ix_(sides[1], sides[0])]
    return found.squeeze(2 - normal)


def surroundings(case: Case, slab: Slab, fluid_cells: Ints) -> dict[str, Any]:
    """Return data on the planes next to a slab, which the numbering of the fluid cells needs.

    around  int64 (ghost + 1 + planes + ghost + 1,), the number of fluid cells of each plane of the
            slab, of the ghost planes and of one more plane on each side; 0 beyond a face
    beside  bool (rows, nx) for each ghost plane below and above the slab, whether cells are fluid
    wraps   whether rows are periodic, and whether x is
    """
    periodic, beyond = case.domain.periodic, case.ghost + 1
    places = (*range(-beyond, 0), *range(slab.planes, slab.planes + beyond))
    fluid = [fluid_plane(case, slab, local) for local in places]
    return {
        "around": np.insert(np.count_nonzero(fluid, axis=(1, 2)), beyond, fluid_cells),
        "beside": fluid[1:-1],
        "wraps": (periodic[1] or case.dimensions == 2, periodic[0]),
    }


def neighbour_flags(case: BoundedLattice, slab: Slab, ids: NDArray[Any]) -> NDArray[Any]:
    """Return Geometry.flags from the ids of a slab, see `padded_ids`."""
    fluid, lattice = ids == 0, case.lattice
    for local in (-1, slab.planes):
        if slab.global_plane(local) is None:
            fluid[local + 1] = False
    flags = np.empty(fluid[1:-1].shape, np.uint8 if len(lattice.stencil) < 8 else np.uint16)
    whole = fluid.all(axis=(1, 2))
    known: dict[tuple[int, int], NDArray[Any]] = {}  # of blocks without solids, by parity and size
    for begin, end in slab.blocks(POINTS):
        plane, around = slab.begin + begin, fluid[begin : end + 2]
        key = plane % lattice.volume, end - begin
        if not whole[begin : end + 2].all():
            flags[begin:end] = _flags(case, plane, around, flags.dtype)
        else:
            if key not in known:
                known[key] = _flags(case, plane, around, flags.dtype)
            flags[begin:end] = known[key]
    return flags


def _flags(case: BoundedLattice, plane: int, around: Flags, dtype: np.dtype) -> NDArray[Any]:
    """The flags of a block of planes; see `neighbours`."""
    flags = around[1:-1].astype(dtype)
    for k, c in enumerate(case.lattice.stencil):
        flags |= neighbours(case, plane, around, c).astype(dtype) << dtype.type(1 + k)
    return flags


def neighbours(case: BoundedLattice, plane: int, around: Flags, c: tuple[int, ...]) -> Flags:
    """Bool (planes, rows, nx): whether the neighbours at c of the cells of a block are fluid.

    plane: the first one of the block. around: (planes + 2, rows, nx), the fluid cells of the block
    and of the planes next to it.
    """
    dplane, drow, dx = case.lattice.offset_of(c)
    found, periodic = around[1 + dplane : len(around) - 1 + dplane], case.domain.periodic
    if drow:
        found = _moved(found, drow, 1, periodic[1])
    if dx:
        moved = _moved(found, dx, 2, periodic[0])
        if case.lattice.staggered:  # in every second row the neighbour has the index of the cell
            planes, rows = np.ogrid[plane : plane + len(found), : found.shape[1]]
            odd = ((planes + rows) % 2)[:, :, None]
            moved = np.where(odd == (dx < 0), found, moved)
        found = moved
    return found


def _moved(fluid: Flags, step: int, axis: int, periodic: bool) -> Flags:
    """The values one step along an axis; False beyond faces that are not periodic."""
    found = np.empty_like(fluid)
    source, target = (np.moveaxis(each, axis, 0) for each in (fluid, found))
    to, end = (slice(None, -1), -1) if step > 0 else (slice(1, None), 0)
    target[to] = source[1:] if step > 0 else source[:-1]
    target[end] = source[-1 - end] if periodic else False
    return found


def _paint(
    case: BoundedLattice, begin: int, end: int, ids: NDArray[Any], overlaps: dict | None = None
) -> None:
    """Set ids (end - begin, rows, nx) to k + 1 where body k is, one body after another.

    Bodies that move have no cells of their own.
    """
    for k, body in enumerate(case.bodies):
        if body.motion is not None:
            continue
        if body.shape is None:
            assert body.mask is not None  # a body has a shape or a mask
            solid = load_mask(body.mask, case, begin, end, f"body.{k}.mask")
            pieces: Iterable[Piece] = [((slice(None),), solid)]
        else:
            images = body.shape.in_box(case.domain).images
            pieces = chain.from_iterable(_pieces(image, case, begin, end) for image in images)
        for where, solid in pieces:
            if overlaps is not None and k:
                counts = np.bincount(ids[where][solid], minlength=1)
                for j in np.flatnonzero(counts[1 : k + 1]):
                    overlaps[int(j), k] = overlaps.get((int(j), k), 0) + int(counts[j + 1])
            np.copyto(ids[where], k + 1, where=solid)


def _pieces(shape: Image | Cut, case: BoundedLattice, begin: int, end: int) -> Iterator[Piece]:
    """Yield (slices, bool array of solid cells) of planes begin..end, covering a shape's bounds."""
    for where, size, points in centres_around(shape, case, begin, end):
        yield where, np.broadcast_to(shape.inside(*points), size)


def centres_around(
    shape: Image | Cut, case: BoundedLattice, begin: int, end: int
) -> Iterator[tuple[tuple[slice, ...], tuple[int, ...], list[Any]]]:
    """Yield (slices, sizes, centres of the cells) in planes begin..end, covering a shape's bounds.

    The centres are D arrays, x first, that broadcast to the sizes (planes, rows, nx) of the piece.
    """
    (_, all_rows, nx), lattice = case.shape, case.lattice
    lower, upper = shape.bounds()
    axes = {2: (1, None, 0), 3: (2, 1, 0)}[case.dimensions]  # plane, row, x -> coordinate
    limits = ((begin, end), (0, all_rows), (0, nx))
    apart = (1, 1, lattice.volume)  # nodes of the box from a cell to the next
    ranges = list(limits)
    for k, (axis, n) in enumerate(zip(axes, apart, strict=True)):
        if axis is not None:  # one more cell on each side, in case of rounding errors
            a, b = np.floor((lower[axis] - 0.5) / n) - n + 1, np.ceil((upper[axis] - 0.5) / n) + 1
            ranges[k] = int(np.clip(a, *limits[k])), int(np.clip(b, *limits[k]))
    (first, last), rows, row = ranges
    step = max(1, POINTS // max(1, (rows[1] - rows[0]) * (row[1] - row[0])))
    for plane in range(first, last, step):
        spans = (plane, min(plane + step, last)), rows, row
        at = np.meshgrid(*(np.arange(*span) for span in spans), indexing="ij", sparse=True)
        grid = at[0] + 0.5, at[1] + 0.5, lattice.x(*at) + 0.5
        points = dict(zip(axes, grid, strict=True))
        where = tuple(
            slice(a - offset, b - offset)
            for (a, b), offset in zip(spans, (begin, 0, 0), strict=True)
        )
        size = tuple(b - a for a, b in spans)
        yield where, size, [points[axis] for axis in range(case.dimensions)]


@dataclass(frozen=True)
class CellCount:
    """A number of cells and the first of these cells; counts of planes and slabs can be added.

    first: (plane * rows + row) * nx + x in the whole box; None if there are no cells.
    """

    cells: int = 0
    first: int | None = None

    @classmethod
    def of_planes(cls, mask: NDArray[Any], plane: int) -> "CellCount":
        """Count the cells where a mask (planes, rows, nx) is True; plane: that of mask[0]."""
        cells = int(np.count_nonzero(mask))
        return cls(cells, int(mask.argmax()) + plane * mask[0].size if cells else None)

    def __add__(self, other: "CellCount") -> "CellCount":
        known = [first for first in (self.first, other.first) if first is not None]
        return CellCount(self.cells + other.cells, min(known, default=None))


NO_CELLS = CellCount()


def cells_of_bodies(case: BoundedLattice, slab: Slab, solid: NDArray[Any]) -> Ints:
    """Return the number of cells of each body, int64 (bodies,); solid: ids (planes, rows, nx)."""
    found = np.zeros(1 + len(case.bodies), np.int64)
    for begin, end in slab.blocks(CELLS):
        block = solid[begin:end]
        ids = block[block != 0]
        if ids.size and ids.min() == ids.max():
            found[ids[0]] += ids.size
        else:
            found += np.bincount(ids, minlength=found.size)
    return found[1:]


def coordinates(case: BoundedLattice, slab: Slab, cells: Ints) -> Ints:
    """The coordinates of cells of a slab in the full lattice, int64 (D, n)."""
    plane, row, k = np.unravel_index(cells, (slab.planes, *slab.shape[1:]))
    x = case.lattice.x(plane + slab.begin, row, k)
    return np.stack(
        [x, row, plane + slab.begin] if case.dimensions == 3 else [x, plane + slab.begin]
    )


def centres(case: BoundedLattice, slab: Slab, cells: Ints) -> Floats:
    """The centres of cells of a slab in the box, float64 (n, D)."""
    return np.add(coordinates(case, slab, cells).T, 0.5, dtype=np.float64)


def values_from_file(
    plane: Plane, face: str, case: BoundedLattice, slab: Slab, cells: Ints
) -> Floats:
    """The values of a Plane for cells of a slab next to a face, float64 (n,)."""
    at = zip("xyz", coordinates(case, slab, cells), strict=False)
    return plane.values[tuple(place for axis, place in at if axis != face[0])[::-1]]
