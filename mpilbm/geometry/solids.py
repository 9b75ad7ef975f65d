"""Which cells are solid, from shapes and masks of the bodies; later bodies replace earlier ones."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.case.masks import load_mask
from mpilbm.geometry.shapes import Shape
from mpilbm.parallel.slabs import Slab

Piece = tuple[tuple[slice, ...], NDArray[np.bool_]]  # of some planes: where, and solid cells

POINTS = 2**20  # cell centres that a shape evaluates at a time


def padded_ids(case, slab: Slab, overlaps: dict | None = None) -> np.ndarray:
    """Ids (planes + 2, rows, nx) of the slab and its two neighbour planes.

    0 for fluid and beyond faces, k + 1 for body k. overlaps: cells that body j loses to body k are
    added to it, by (j, k). Raises CaseError for invalid masks.
    """
    dtype = np.uint8 if len(case.bodies) < 255 else np.uint16
    ids = np.zeros((slab.planes + 2, *slab.shape[1:]), dtype)
    _paint(case, slab.begin, slab.end, ids[1:-1], overlaps)
    for local in (-1, slab.planes):
        plane = slab.global_plane(local)
        if plane is not None:
            _paint(case, plane, plane + 1, ids[local + 1 : local + 2])
    return ids


def fluid_plane(case, slab: Slab, local: int) -> NDArray[np.bool_]:
    """Where a local plane of the slab, or beyond it, is fluid: bool (rows, nx).

    False beyond faces of the box.
    """
    plane, fluid = slab.global_plane(local), np.zeros((1, *slab.shape[1:]), bool)
    if plane is not None:
        ids = np.zeros(fluid.shape, np.uint16)
        _paint(case, plane, plane + 1, ids)
        fluid = ids == 0
    return fluid[0]


def fluid_planes(case, slab: Slab, ids: NDArray[Any]) -> Callable[[int], NDArray[np.bool_]]:
    """The function that returns where a local plane of the slab, or beyond it, is fluid.

    ids: see `padded_ids`; planes further out are computed on demand.
    """

    def plane(local: int) -> NDArray[np.bool_]:
        near = -1 <= local <= slab.planes
        return ids[local + 1] == 0 if near else fluid_plane(case, slab, local)

    return plane


def surroundings(case, slab: Slab, fluid_cells: NDArray[np.int64]) -> dict[str, Any]:
    """Data on the planes next to a slab that are needed to number the fluid cells.

    around: int64 (ghost + 1 + planes + ghost + 1,), the fluid cells of each plane and of those on
    either side, 0 beyond a face; beside: bool (rows, nx) for each ghost plane below the slab and
    above it, where it is fluid; wraps: whether rows, and x, are periodic.
    """
    periodic, beyond = case.domain.periodic, case.ghost + 1
    places = (*range(-beyond, 0), *range(slab.planes, slab.planes + beyond))
    fluid = [fluid_plane(case, slab, local) for local in places]
    return {
        "around": np.insert(np.count_nonzero(fluid, axis=(1, 2)), beyond, fluid_cells),
        "beside": fluid[1:-1],
        "wraps": (periodic[1] or case.dimensions == 2, periodic[0]),
    }


def neighbour_flags(case, slab: Slab, ids: NDArray[Any]) -> NDArray[Any]:
    """Flags of Geometry from the ids (planes + 2, rows, nx) of a slab and its neighbour planes."""
    fluid, lattice = ids == 0, case.lattice
    for local in (-1, slab.planes):
        if slab.global_plane(local) is None:
            fluid[local + 1] = False
    flags = fluid[1:-1].astype(np.uint8 if len(lattice.stencil) < 8 else np.uint16)
    for k, c in enumerate(lattice.stencil):
        for local, here in enumerate(flags):
            beside = neighbours(case, slab.begin + local, fluid[local : local + 3], c)
            here |= beside.astype(here.dtype) << (1 + k)
    return flags


def neighbours(
    case, plane: int, around: NDArray[np.bool_], c: tuple[int, ...]
) -> NDArray[np.bool_]:
    """Bool (rows, nx): whether the neighbours at c of the cells of a plane are fluid.

    around: (3, rows, nx), the fluid cells of the plane and of the planes next to it.
    """
    dplane, drow, dx = case.lattice.offset_of(c)
    found, periodic = around[1 + dplane], case.domain.periodic
    if drow:
        found = _moved(found, drow, 0, periodic[1])
    if dx:
        moved = _moved(found, dx, 1, periodic[0])
        if case.lattice.staggered:  # in every other row it has the same number as the cell
            odd = (plane + np.arange(len(found))[:, None]) % 2
            moved = np.where(odd == (dx < 0), found, moved)
        found = moved
    return found


def _moved(fluid: NDArray[np.bool_], step: int, axis: int, periodic: bool) -> NDArray[np.bool_]:
    """The values one step along an axis; no fluid beyond faces."""
    moved = np.roll(fluid, -step, axis)
    if not periodic:
        np.moveaxis(moved, axis, 0)[-1 if step > 0 else 0] = False
    return moved


def _paint(case, begin: int, end: int, ids: NDArray[Any], overlaps: dict | None = None) -> None:
    """Set ids (end - begin, rows, nx) to k + 1 where body k is, one body after another."""
    for k, body in enumerate(case.bodies):
        if body.shape is None:
            solid = load_mask(body.mask, case, begin, end, f"body.{k}.mask")
            pieces: Iterable[Piece] = [((slice(None),), solid)]
        else:
            pieces = _pieces(body.shape, case, begin, end)
        for where, solid in pieces:
            if overlaps is not None and k:
                counts = np.bincount(ids[where][solid], minlength=1)
                for j in np.flatnonzero(counts[1:]):
                    overlaps[int(j), k] = overlaps.get((int(j), k), 0) + int(counts[j + 1])
            np.copyto(ids[where], k + 1, where=solid)


def _pieces(shape: Shape, case, begin: int, end: int) -> Iterator[Piece]:
    """Yield (slices into planes begin..end, bool array there) that cover a shape's bounds."""
    (_, all_rows, nx), lattice = case.shape, case.lattice
    lower, upper = shape.bounds()
    axes = {2: (1, None, 0), 3: (2, 1, 0)}[case.dimensions]  # plane, row, x -> coordinate
    limits = ((begin, end), (0, all_rows), (0, nx))
    apart = (1, 1, lattice.volume)  # nodes of the box from a cell to the next
    ranges = [
        # one more cell on each side, in case of rounding errors
        limit if axis is None else tuple(int(cell) for cell in np.clip(
            (np.floor((lower[axis] - 0.5) / n) - n + 1, np.ceil((upper[axis] - 0.5) / n) + 1),
            *limit))
        for axis, limit, n in zip(axes, limits, apart, strict=True)
    ]  # fmt: skip
    (first, last), rows, row = ranges
    step = max(1, POINTS // max(1, (rows[1] - rows[0]) * (row[1] - row[0])))
    for plane in range(first, last, step):
        spans = (plane, min(plane + step, last)), rows, row
        at = np.meshgrid(*(np.arange(*span) for span in spans), indexing="ij", sparse=True)
        grid = at[0] + 0.5, at[1] + 0.5, lattice.x(*at) + 0.5
        points = dict(zip(axes, grid, strict=True))
        solid = shape.inside(*(points[axis] for axis in range(case.dimensions)))
        where = tuple(
            slice(a - offset, b - offset)
            for (a, b), offset in zip(spans, (begin, 0, 0), strict=True)
        )
        yield where, np.broadcast_to(solid, tuple(b - a for a, b in spans))
