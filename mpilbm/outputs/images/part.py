"""A part of the box: ranges of cells along its axes, and means over blocks of these cells."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from mpilbm.case.case import Case
from mpilbm.parallel.slabs import Slab


@dataclass(frozen=True)
class Range:
    """Blocks of `stride` cells each, from the cell `begin` on; none reaches beyond `limit`."""

    begin: int
    limit: int
    stride: int = 1

    @property
    def count(self) -> int:
        """The number of blocks."""
        return max(0, (self.limit - self.begin) // self.stride)

    @property
    def end(self) -> int:
        """The cell after the last block."""
        return self.begin + self.count * self.stride

    @property
    def cells(self) -> slice:
        """All cells of the blocks."""
        return slice(self.begin, self.end)


@dataclass(frozen=True)
class Part:
    """Blocks of cells along z, y, x of a box in 3D; along y, one row, and x in 2D."""

    planes: Range
    rows: Range
    x: Range

    @property
    def shape(self) -> tuple[int, int, int]:
        """The number of blocks along each axis."""
        return self.planes.count, self.rows.count, self.x.count

    @property
    def stride(self) -> tuple[int, int, int]:
        """Cells of a block along each axis."""
        return self.planes.stride, self.rows.stride, self.x.stride

    @property
    def along(self) -> tuple[Range, Range, Range]:
        """The ranges along x, y, z; in 2D the last one is a single cell."""
        return self.x, self.rows, self.planes

    def own_planes(self, slab: Slab) -> tuple[int, int]:
        """The local planes of a slab that are in the part."""
        begin = max(self.planes.begin, slab.begin)
        end = max(min(self.planes.end, slab.end), begin)
        return begin - slab.begin, end - slab.begin

    def passed(self, slab: Slab, plane: int) -> int:
        """The planes of the part before a local plane of a slab; negative before the part."""
        return slab.begin + plane - self.planes.begin

    def slabs(self, slabs: Sequence[Slab]) -> tuple[Slab, ...]:
        """The blocks of each rank as slabs of the part: those whose first plane it has."""

        def blocks(plane: int) -> int:
            passed = ceil((plane - self.planes.begin) / self.planes.stride)
            return min(max(passed, 0), self.planes.count)

        return tuple(
            replace(slab, shape=self.shape, begin=blocks(slab.begin), end=blocks(slab.end))
            for slab in slabs
        )


def whole(case: Case, stride: Sequence[int] = (1, 1, 1)) -> Part:
    """The whole box."""
    size = case.domain.size
    return of_box(case, (0.0,) * len(size), tuple(map(float, size)), stride)


def of_box(case: Case, low: Sequence[float], high: Sequence[float], stride: Sequence[int]) -> Part:
    """The cells that a box of positions from `low` to `high` contains or cuts.

    Cell k covers the positions k to k + 1. Cells at the end that do not fill a block are left out.
    """
    ranges = [
        Range(floor(a), max(ceil(b), floor(a) + 1), s)
        for a, b, s in zip(low, high, stride, strict=False)
    ]
    if case.dimensions == 2:
        x, y = ranges
        return Part(y, Range(0, 1), x)
    x, y, z = ranges
    return Part(z, y, x)


def cell_of(position: float, cells: int) -> int:
    """The cell that contains a position; the last one for the upper end of the box."""
    return min(floor(position), cells - 1)


Sums = dict[str, np.ndarray]  # name -> sums over the cells of a plane (rows, x[, components])
FLUID = "fluid cells"  # the number of them in a block
OPEN = "open cells"  # the number of those outside of moving bodies; only in cases with such


class Group(NamedTuple):
    """Sums over `planes` planes from `plane` on, counted from the first one of the part."""

    plane: int
    planes: int
    sums: Sums


def slices(values: Any, stride: Sequence[int]) -> Iterator[Any]:
    """The cells of planes (n, rows, nx, …) that have the same place in their block.

    In the order in which they are added. Arrays are added faster than along short axes.
    """
    for i in range(stride[0]):
        for j in range(stride[1]):
            yield values[:, i :: stride[0], j :: stride[1]]


def plane_sums(
    fields: Sums, solid: np.ndarray, stride: Sequence[int], largest: Collection[str] = ()
) -> Sums:
    """Sums over the fluid cells of each block of one plane; arrays (rows, nx[, k]).

    Of the fields `largest`, which are not negative, the largest value.
    """
    ways = {name: np.maximum if name in largest else np.add for name in fields}
    if not solid.any():
        blocks = [n // s for n, s in zip(solid.shape, stride, strict=True)]
        count = np.full(blocks, float(stride[0] * stride[1]))
        whole = {name: _blocks(data, stride, ways[name]) for name, data in fields.items()}
        return {FLUID: count} | whole
    fluid = ~solid
    found = {FLUID: _blocks(fluid, stride)}
    for name, values in fields.items():
        extra = (1,) * (values.ndim - 2)
        masked = values * fluid.reshape(*fluid.shape, *extra)
        found[name] = _blocks(masked, stride, ways[name])
    return found


def counted_cells(cells: np.ndarray, stride: Sequence[int]) -> np.ndarray:
    """The number of True cells (n, rows, nx) in each block, over all n planes."""
    total: np.ndarray = sum(each.sum(axis=0) for each in slices(cells, stride)) + 0.0
    return total


def _blocks(values: np.ndarray, stride: Sequence[int], add: np.ufunc = np.add) -> np.ndarray:
    """Sums over blocks of a plane, or what else `add` makes of two values."""
    parts = slices(values[None], stride)
    total = next(parts).astype(np.float64)
    for part in parts:
        add(total, part, out=total)
    return total[0]


def means_of(
    planes: Sequence[Sums], rest: Callable[[str], float], largest: Collection[str] = ()
) -> tuple[Sums, np.ndarray]:
    """The means over fluid cells, or largest values, and the solid blocks.

    These have no cell outside of bodies. In a block without a fluid cell the value is rest(name).
    """
    total = dict(planes[0])
    for plane in planes[1:]:
        for name, values in plane.items():
            total[name] = (np.maximum if name in largest else np.add)(total[name], values)
    count = total.pop(FLUID)
    solid = total.pop(OPEN, count) == 0
    empty, found = count == 0, {}
    for name, values in total.items():
        shape = (*count.shape, *(1,) * (values.ndim - 2))
        each = 1 if name in largest else np.maximum(count, 1).reshape(shape)
        found[name] = np.where(empty.reshape(shape), rest(name), values / each)
    return found, solid


class Collector:
    """Collects the sums of planes, in any order and any thread, until blocks are complete.

    `planes` is the number of planes of a block. `complete(block, sums)` is called with those of a
    block in the order of its planes.
    """

    def __init__(self, planes: int, complete: Callable[[int, list[Sums]], None]):
        self.planes, self.complete = planes, complete
        self._lock, self._parts = Lock(), dict[int, dict[int, Group]]()

    def give(self, group: Group) -> None:
        """Add the sums of a plane, or those of a whole block."""
        block = group.plane // self.planes
        with self._lock:
            parts = self._parts.setdefault(block, {})
            parts[group.plane] = group
            if sum(each.planes for each in parts.values()) < self.planes:
                return
            del self._parts[block]
        self.complete(block, [parts[k].sums for k in sorted(parts)])
