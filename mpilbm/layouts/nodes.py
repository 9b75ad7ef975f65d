"""Memory of a field over the fluid cells of a slab, and the tables of neighbours.

    f[plane][slot, node]      nodes: the fluid cells of a plane in the order of row and x

For a neighbour that is solid or beyond a wall, the table contains a location that no other cell
uses: each cell that lacks a neighbour in one direction leaves a location unused in the opposite
one. In some layouts it can be the slot of the opposite direction of the node itself: the step then
reads the outgoing population, which is half-way bounce-back without a boundary list, except in
planes to which other slabs write.

Tables are computed plane by plane. Node numbers are kept in an array with one more row and column
on each side, for the numbers beyond periodic faces; so the neighbours of all nodes at an offset are
the same places of a part that begins elsewhere.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mpilbm.layouts.cells import CELL, CellNames, FluidCells, Offset, PackedCells
from mpilbm.layouts.grid import LINE, Part, own_planes, turns

MISSING = -1  # in arrays of node numbers
Following = Callable[[int, int], np.ndarray]
TABLES = {"node_start": "int64*", "node_stride": "int64*", "node_count": "int32*"}


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


@dataclass(frozen=True, eq=False)
class NodeGrid:
    """A field of `len(slots)` values per fluid cell, with the methods of Grid; values have no
    tails.

    fluid    number of fluid cells of each plane, of the ghost planes and of one more plane on each
             side (0 beyond a wall)
    offsets  offsets at which a kernel uses neighbours
    turned   for each offset the slot of the value that is read there, and the slot of the node
             that replaces it at a missing neighbour; empty if boundary lists are needed
    """

    name: str
    planes: int
    rows: int
    nx: int
    slots: tuple[int, ...]
    offsets: tuple[tuple[int, int, int], ...]
    turned: tuple[tuple[int, int], ...]
    fluid: np.ndarray
    ghost: int = 1
    wraps: bool | None = False
    type: str = "store"

    over: ClassVar[str] = "nodes"

    @cached_property
    def count_of(self) -> np.ndarray:
        """Number of nodes of each plane of the array, including ghost planes."""
        return np.asarray(self.fluid[1:-1], np.int64)

    @cached_property
    def stride(self) -> np.ndarray:
        """Number of locations of a slot in each plane: an odd number of whole lines."""
        fluid = np.asarray(self.fluid, np.int64)
        most = np.maximum(np.maximum(fluid[:-2], fluid[1:-1]), fluid[2:])
        lines = -(-most // LINE)
        return (lines + (lines + 1) % 2 * (lines > 0)) * LINE

    @cached_property
    def start(self) -> np.ndarray:
        """Number of locations of a slot in all lower planes, for each plane."""
        return np.cumsum(self.stride) - self.stride

    @property
    def places(self) -> int:
        return int(self.stride.sum())

    @property
    def count(self) -> int:
        return len(self.slots) * self.places

    @property
    def interior(self) -> tuple[int, int]:
        return self.ghost, self.ghost + self.planes

    @property
    def within(self) -> int:
        """Upper bound of the numbers in the tables, which are offsets of locations."""
        return 2 * len(self.slots) * self.rows * self.nx

    @property
    def table_bytes(self) -> int:
        return 4 * sum(self.table_sizes.values()) + 20 * len(self.stride)

    def beside(self, name: str, count: int) -> "NodeGrid":
        slots = tuple(range(count))
        return replace(self, name=name, slots=slots, offsets=(), turned=(), type="real")

    def planes_of(self, values: np.ndarray, local: int, geometry: FluidCells) -> Iterator[Part]:
        plane, fluid = local + self.ghost, geometry.fluid(local)
        for k, rows in enumerate(values):
            place = len(self.slots) * self.start[plane] + self.slots[k] * self.stride[plane]
            yield int(place), rows[fluid]

    def width(self, value: int) -> int:
        return 1

    def tail_of(self, value: int) -> None:
        """None: nodes store populations, whose formats have no tails."""

    def tail_in(self, value: int) -> None:
        """None, as for `tail_of`: no value carries the tail of another one."""

    def occupied(self, value: int) -> tuple[int, ...]:
        return (self.slots[value],)

    def piece(self, plane: int, slot: int, count: int) -> tuple[int, int]:
        stride = int(self.stride[plane])
        return len(self.slots) * int(self.start[plane]) + slot * stride, count * stride

    def types(self) -> dict[str, str]:
        return (
            TABLES | {"node_most": "int"} | dict.fromkeys(own_planes(self) | turns(self), "int64")
        )

    def arguments(self) -> dict:
        return {
            "node_start": self.start,
            "node_stride": self.stride,
            "node_count": self.count_of.astype(np.int32),
            "node_most": int(self.count_of.max(initial=0)),
            **own_planes(self),
            **turns(self),
        }

    def address(self, slot: int, offset: tuple[int, int, int], cell: CellNames = CELL) -> str:
        base, entry = self.found(slot, offset, cell)
        return f"{base} + {f'node_next[{entry}]' if any(offset) else cell.node}"

    def address_if(
        self, slot: int, offset: Offset, cell: CellNames, condition: str, missing: Offset | None
    ) -> str:
        """The `address` if a condition, 0 or 1 in C, is 1, else 0; computed without branches.

        `missing`: the offset of a neighbour that is missing if the condition is 1. Its replacement
        in the cell itself is known without the table, see `turned`.
        """
        base, entry = self.found(slot, offset, cell)
        if not any(offset):
            return f"({base} + {cell.node}) * {condition}"
        read, back = self.turned[self.offsets.index(offset)] if self.turned else (None, 0)
        if offset != missing or read != self.slots[slot]:
            return f"({base} + node_next[({entry}) * {condition}]) * {condition}"
        own = f"{self._base(back, 0, cell)} + {cell.node}"
        if not offset[0]:
            return f"({own}) * {condition}"
        limit = f">= {self.name}_first" if offset[0] < 0 else f"<= {self.name}_last"
        kept = f"({cell.plane} + ({offset[0]}) {limit})"
        elsewhere = self.address_if(slot, offset, cell, f"({condition} & !{kept})", None)
        return f"({own}) * ({condition} & {kept}) + {elsewhere}"

    def found(self, slot: int, offset: Offset, cell: CellNames = CELL) -> tuple[str, str]:
        """C texts: start of the slot in the neighbour's plane, and index of the table entry."""
        own, base = self._plane(0, cell), self._base(self.slots[slot], offset[0], cell)
        if not any(offset):
            return base, ""
        tables, number = len(self.offsets), self.table(offset)
        table = f"{tables} * node_start[{own}] + {number} * node_stride[{own}]"
        return base, f"{table} + {cell.node}"

    def _base(self, slot: int, step: int, cell: CellNames) -> str:
        """C text of the start of a slot in the plane `step` planes from the cell."""
        plane = self._plane(step, cell)
        return f"{len(self.slots)} * node_start[{plane}] + {slot} * node_stride[{plane}]"

    def _plane(self, step: int, cell: CellNames) -> str:
        """C text of the number of the plane `step` planes from the cell."""
        there = f"{cell.plane} + ({step})" if step else cell.plane
        turn = cell.turn(step, self)
        return f"{there} + {turn}" if turn else there

    def table(self, offset: Offset) -> int | None:
        return self.offsets.index(offset) if any(offset) else None

    def packed(self, cells: NDArray[np.int64], geometry: FluidCells) -> PackedCells:
        planes, within = np.divmod(cells, self.rows * self.nx)
        order = np.argsort(planes, kind="stable")  # fast for cells in order
        once, first = np.unique(planes[order], return_index=True)
        nodes = np.empty_like(within)
        for plane, mine in zip(once.tolist(), np.split(order, first[1:]), strict=False):
            fluid = geometry.fluid(plane).reshape(-1)
            before = np.cumsum(fluid, dtype=np.int32) - fluid
            nodes[mine] = before[within[mine]]
        return PackedCells.of_nodes(planes, nodes)

    def places_of(
        self, cells: PackedCells, slot: int, offset: Offset, following: Following
    ) -> np.ndarray:
        """Indices in the array of a value of packed cells, or of their neighbours at an offset.

        following: a function that returns a part of the table node_next, from its begin and end.
        """
        plane, node = self._wrapped(cells.plane + self.ghost), cells.node
        number, there = self.table(offset), self._wrapped(plane + offset[0])
        if number is not None:
            for one in np.unique(plane):
                mine = np.flatnonzero(plane == one)
                first = len(self.offsets) * self.start[one] + number * self.stride[one]
                node[mine] = following(first, first + self.stride[one])[node[mine]]
        return len(self.slots) * self.start[there] + self.slots[slot] * self.stride[there] + node

    def _wrapped(self, planes: np.ndarray) -> np.ndarray:
        """The numbers in the array of planes that may wrap around."""
        return (planes - self.ghost) % self.planes + self.ghost if self.wraps else planes

    @property
    def table_sizes(self) -> dict[str, int]:
        return {
            "node_next": len(self.offsets) * self.places,
            "node_cell": self.places,
            "node_row": len(self.stride) * (self.rows + 1),
        }

    def table_parts(self, geometry: FluidCells) -> Iterator[tuple[str, int, np.ndarray]]:
        """Yield the tables of owned and ghost planes in parts: name, first index, values.

        Other values are 0. The tables of a ghost plane equal those of the slab that owns it, except
        for neighbours in planes that this slab does not hold.

        node_next[plane][table, node]  location of the neighbour in its plane
        node_cell[plane][node]         row * nx + x
        node_row[plane, row]           number of nodes of the plane in lower rows
        """
        lowest = -self.ghost
        planes = [self._held(geometry, local) for local in (lowest - 1, lowest)]
        for local in range(lowest, self.planes + self.ghost):
            plane = local + self.ghost
            planes = [*planes[-2:], self._held(geometry, local + 1)]
            own = planes[1]
            assert own is not None  # owned planes and ghost planes are held
            start, stride = int(self.start[plane]), int(self.stride[plane])
            rows = np.searchsorted(own.cells, np.arange(self.rows + 1) * self.nx)
            following = np.zeros((len(self.offsets), stride), np.int32)
            for number, offset in enumerate(self.offsets):
                target = planes[1 + offset[0]]
                if target is not None:
                    there = following[number, : own.cells.size]
                    target.neighbours(own, offset, there)
                    self._complete(plane, number, there)
            yield "node_next", len(self.offsets) * start, following.reshape(-1)
            yield "node_cell", start, own.cells.astype(np.int32)
            yield "node_row", plane * (self.rows + 1), rows.astype(np.int32)

    def _held(self, geometry: FluidCells, local: int) -> _Plane | None:
        """The nodes of a local plane; None if it is not held."""
        if not -self.ghost <= local < self.planes + self.ghost:
            return None
        return _Plane.of(geometry.fluid(local), geometry.wraps)

    def _complete(self, plane: int, table: int, there: NDArray[np.int32]) -> None:
        """Replace missing neighbours in `there` by separate locations.

        Locations count from the start of the slot in the neighbour's plane.
        """
        missing = np.flatnonzero(there < 0)
        target = plane + self.offsets[table][0]
        if self.turned and self._together(plane, target):
            slot, back = self.turned[table]
            moved = self.piece(plane, back, 1)[0] - self.piece(target, slot, 1)[0]
            there[missing] = missing + moved
        elif missing.size:
            # as many locations are free as neighbours are missing, or more; MISSING is the last one
            free = np.ones(max(there.size, int(self.count_of[target])) + 1, bool)
            free[there] = False
            there[missing] = np.flatnonzero(free[: there.size])[: missing.size]

    def _together(self, plane: int, target: int) -> bool:
        """Whether the owner of a plane also owns this neighbouring plane."""
        first, end = self.interior
        if plane < first:
            return target < first
        return target >= end if plane >= end else self.keeps(target)

    def keeps(self, plane: Any) -> Any:
        """Whether a plane of the array is owned, so that no other slab writes to it."""
        first, end = self.interior
        return (plane >= first) & (plane < end)
