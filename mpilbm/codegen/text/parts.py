"""Parts of the C text of a kernel: loads, statements, and the place of a cell."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from mpilbm.layouts import Offset
from mpilbm.layouts.grid import CellNames
from mpilbm.layouts.packed_cells import packed_node, packed_plane, packed_row, packed_x
from mpilbm.model.expressions import Expression

Index = Callable[[CellNames], str]  # C text of the number of a cell along an axis


@dataclass(frozen=True)
class Load:
    """A value of an array, loaded by a macro of the prelude: the C expression is `str(load)`.

    `address_if`: the address as a function of a condition, 0 or 1 in C, and of the offset of a
    neighbour that is then missing, or None. If the condition is 0, so is the address, where there
    is a value, too. None: only the address of a value that is needed can be computed.
    """

    macro: str
    pointer: str
    address: str
    more: tuple[str | int, ...] = ()
    address_if: Callable[[str, Offset | None], str] | None = None

    def __str__(self) -> str:
        return f"{self.macro}({', '.join(map(str, (self.pointer, self.address, *self.more)))})"

    def where(self, condition: str, missing: Offset | None = None) -> "Load | None":
        """This load, or that of any other value if the condition is 0; None if it cannot be."""
        if self.address_if is None or self.more:
            return None
        return replace(self, address=self.address_if(condition, missing))


class Statement(NamedTuple):
    """C text with {0}, {1}, … for expressions, and the array that it writes, or ""."""

    text: str
    expressions: tuple[Expression, ...]
    writes: str = ""


class Sent(NamedTuple):
    """A store that bypasses the cache of a CPU, from line buffers `line`, …, one for each slot."""

    pointer: str
    address: str
    line: int
    width: int

    def __str__(self) -> str:
        count = f"{self.width} * count" if self.width > 1 else "count"
        return f"stream_out({self.pointer} + {self.address}, line[{self.line}], {count});"


def centre(index: str) -> str:
    """C text of the coordinate of a cell's centre."""
    return f"(real)({index}) + R(0.5)"


def entry_place(over: str, cell: CellNames, packed: str) -> str:
    """C text that unpacks a cell index into plane, row and x, or into plane and node.

    `over`: "cells" or "nodes"; `packed`: the C text of the index.
    """
    if over == "nodes":
        return (
            f"const int {cell.node} = {packed_node(packed)};\n"
            f"const int64 {cell.plane} = {packed_plane(packed)};"
        )
    place, row, x = cell.cell, cell.row, cell.x
    return (
        f"const int64 {place} = {packed};\n"
        f"const int {x} = {packed_x(place)}, {row} = {packed_row(place)};\n"
        f"const int64 {cell.plane} = {packed_plane(place)};\n"
        f"MAYBE_UNUSED const int {cell.x_m} = X_BEFORE({x}), {cell.x_p} = X_AFTER({x});\n"
        f"MAYBE_UNUSED const int {cell.row_m} = BEFORE({row}, rows), "
        f"{cell.row_p} = AFTER({row}, rows);"
    )
