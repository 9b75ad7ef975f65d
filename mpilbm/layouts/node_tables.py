"""Computes the tables of neighbours of a NodeGrid, plane by plane.

The node numbers of a plane are kept in an array with one more row and column on each side, which
contain the numbers beyond periodic faces. The neighbours of all nodes at an offset are then the
values of the same places in a part of the array that begins elsewhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.layouts.cells import FluidCells, Nodes

Part = tuple[str, int, NDArray[np.int32]]  # table, index of the first value, values
MISSING = -1  # in arrays of node numbers


@dataclass(frozen=True, eq=False)
class _Plane:
    """The nodes of a plane.

    cells    int64 (nodes,), row * nx + x
    places   int64 (nodes,), row * (nx + 2) + x
    numbers  int32 (rows + 2, nx + 2), the number of the node at each cell, or MISSING
    """

    cells: NDArray[np.int64]
    places: NDArray[np.int64]
    numbers: NDArray[np.int32]

    @classmethod
    def of(cls, fluid: NDArray[np.bool_], wraps: tuple[bool, bool]) -> "_Plane":
        """Number the fluid cells of a plane; wraps: whether rows are periodic, and whether x is."""
        padded = np.pad(fluid, 1)
        at = np.flatnonzero(padded)
        numbers = np.full(padded.shape, MISSING, np.int32)
        numbers.reshape(-1)[at] = np.arange(at.size, dtype=np.int32)
        for wrapped, array in zip(wraps, (numbers, numbers.T), strict=True):
            if wrapped:
                array[0], array[-1] = array[-2], array[1]
        return cls(np.flatnonzero(fluid), at - padded.shape[1] - 1, numbers)

    def neighbours(self, nodes: "_Plane", offset: tuple[int, int, int], found: Any) -> None:
        """Set `found` to the numbers, in this plane, of the neighbours of the nodes of a plane."""
        first = (1 + offset[1]) * self.numbers.shape[1] + 1 + offset[2]
        np.take(self.numbers.reshape(-1)[first:], nodes.places, out=found, mode="clip")


def parts(grid: Nodes, geometry: FluidCells) -> Iterator[Part]:
    """Yield the tables of owned planes and ghost planes in parts; other values are 0.

    The tables of a ghost plane equal those of the slab that owns it, except for neighbours in
    planes that this slab does not hold.

    node_next[plane][table, node]  location of the neighbour in its plane
    node_cell[plane][node]         row * nx + x
    node_row[plane, row]           number of nodes of the plane in lower rows
    """
    planes = [_plane(grid, geometry, local) for local in (-2, -1)]
    for local in range(-1, grid.planes + 1):
        plane = local + grid.ghost
        planes = [*planes[-2:], _plane(grid, geometry, local + 1)]
        own = planes[1]
        assert own is not None  # owned planes and those next to them are held
        start, stride = int(grid.start[plane]), int(grid.stride[plane])
        rows = np.searchsorted(own.cells, np.arange(grid.rows + 1) * grid.nx)
        following = np.zeros((len(grid.offsets), stride), np.int32)
        for number, offset in enumerate(grid.offsets):
            target = planes[1 + offset[0]]
            if target is not None:
                there = following[number, : own.cells.size]
                target.neighbours(own, offset, there)
                _complete(grid, plane, number, there)
        yield "node_next", len(grid.offsets) * start, following.reshape(-1)
        yield "node_cell", start, own.cells.astype(np.int32)
        yield "node_row", plane * (grid.rows + 1), rows.astype(np.int32)


def _plane(grid: Nodes, geometry: FluidCells, local: int) -> _Plane | None:
    """The nodes of a local plane; None if it is not held."""
    if not -grid.ghost <= local < grid.planes + grid.ghost:
        return None
    return _Plane.of(geometry.fluid(local), geometry.wraps)


def _complete(grid: Nodes, plane: int, table: int, there: NDArray[np.int32]) -> None:
    """Replace missing neighbours in `there` by separate locations.

    Locations count from the start of the slot in the neighbour's plane.
    """
    missing = np.flatnonzero(there < 0)
    target = plane + grid.offsets[table][0]
    if grid.turned and grid.together(plane, target):
        slot, back = grid.turned[table]
        there[missing] = missing + (grid.piece(plane, back, 1)[0] - grid.piece(target, slot, 1)[0])
    elif missing.size:
        # there are at least as many free locations as missing neighbours; MISSING is the last one
        free = np.ones(max(there.size, int(grid.count_of[target])) + 1, bool)
        free[there] = False
        there[missing] = np.flatnonzero(free[: there.size])[: missing.size]
