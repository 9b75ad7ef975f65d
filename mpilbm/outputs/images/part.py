"""A part of the box: ranges of cells along its axes, of which blocks of cells are averaged."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, floor
from typing import TYPE_CHECKING

from mpilbm.parallel.slabs import Slab

if TYPE_CHECKING:
    from mpilbm.case.case import Case


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

    def slabs(self, slabs: Sequence[Slab]) -> tuple[Slab, ...]:
        """The blocks of each rank as slabs of the part: those whose first plane it has."""

        def blocks(plane: int) -> int:
            passed = ceil((plane - self.planes.begin) / self.planes.stride)
            return min(max(passed, 0), self.planes.count)

        return tuple(
            replace(slab, shape=self.shape, begin=blocks(slab.begin), end=blocks(slab.end))
            for slab in slabs
        )


def whole(case: "Case", stride: Sequence[int] = (1, 1, 1)) -> Part:
    """The whole box."""
    size = case.domain.size
    return of_box(case, (0.0,) * len(size), tuple(map(float, size)), stride)


def of_box(
    case: "Case", low: Sequence[float], high: Sequence[float], stride: Sequence[int]
) -> Part:
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
