"""What a kernel reads, defines and writes, collected during its generation."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Self

from sympy import Symbol, sympify

from mpilbm.codegen.printer import symbol
from mpilbm.codegen.program import OF, Access, Phase
from mpilbm.layouts import HERE, AnyGrid, Offset, Place
from mpilbm.layouts.cells import CELL, CellNames, packed_node, packed_plane, packed_row, packed_x
from mpilbm.model.expressions import Expression

Index = Callable[[CellNames], str]  # C text of the number of a cell along an axis


@dataclass(frozen=True)
class Load:
    """A value of an array, loaded by a macro of the prelude: the C expression is `str(load)`.

    `address_if`: the address as a function of a condition, 0 or 1 in C, and of the offset of a
    neighbour that is then missing, or None; without the condition the address is 0, where there is
    a value, too. None: only the address of a value that is needed can be computed.
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
    """A store past the cache of a CPU, from line buffers `line`, …, one for each slot."""

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


class KernelValues:
    """The arguments, loads, named values, statements and stores of a kernel.

    With `unit` other than 1, values are loaded and stored unscaled, as multiples of 1 / unit.
    """

    cell: CellNames = CELL  # the cell whose values it uses
    end: str = ""  # of the names of these values

    def __init__(
        self,
        role: str,
        over: str,
        equations: str,
        unit: int = 1,
        *,
        parity: int | None = None,
        phase: Phase = "other",
    ):
        self.role, self.over, self.equations, self.unit = role, over, equations, unit
        self.parity, self.phase = parity, phase
        self.fluid: int | None = None  # number of the coupled fluid that it belongs to
        self.optional = False  # whether only some runs use it
        self.blocks = 0  # of a multiprocessor for whose threads registers must suffice; 0: any
        self._own = "" if unit == 1 else "_OWN"
        self.listed = over.startswith("node")  # cells are found in tables
        self.arguments: dict[str, str] = {}
        self.loads: dict[Symbol, Load | str] = {}  # the value loaded, or its C text
        self.coordinates: dict[Symbol, tuple[Index, CellNames]] = {}  # along an axis
        self.definitions: dict[Symbol, Expression] = {}
        self.statements: list[Statement] = []
        self.written: set[str] = set()  # all arrays that statements write
        self.touched: tuple[set[str], set[str]] = set(), set()  # arrays read, arrays written
        self.reads: list[Access] = []
        self.writes: list[Access] = []
        self.known: dict[str, Expression] = {}  # values of scalars in a step, by label
        self.sent: list[Sent] = []  # stores that bypass the cache

    @property
    def name(self) -> str:
        """The name of the C function: the role, the parity and the fluid, if it has them."""
        parity = "" if self.parity is None else f"_{self.parity}"
        return f"{self.role}{parity}{'' if self.fluid is None else OF.format(self.fluid)}"

    def argument(self, name: str, type: str) -> Symbol:
        """Declare a parameter of the kernel; returns its symbol."""
        self.arguments.setdefault(name, type)
        return symbol(name)

    def declare(self, **types: str) -> None:
        """Declare parameters, by name."""
        for name, type in types.items():
            self.argument(name, type)

    def sizes(self, grid: AnyGrid) -> None:
        """Declare the arguments that addresses of this grid need."""
        self.declare(**grid.types())

    def at(self, cell: CellNames, end: str = "") -> Self:
        """This kernel with another cell as its own; the names of its values have this end."""
        other = copy(self)  # shares the values and statements
        other.cell, other.end = cell, end
        return other

    def address(self, grid: AnyGrid, place: Place) -> str:
        """C text of the index of a value; declares the arguments and the table that it needs."""
        self.sizes(grid)
        number = grid.table(place.offset)
        if number is not None:
            self.argument("node_next", "int32*")
            table = Access("node_next", number, HERE)
            if table not in self.reads:
                self.reads.append(table)
        return grid.address(*place, self.cell)

    def read(self, name: str, pointer: str, grid: AnyGrid, place: Place) -> Symbol:
        """Load a value of a field; returns its symbol."""
        self.argument(pointer, f"{grid.type}*")
        value = symbol(name + self.end)
        load = self.load_of(pointer, grid, place)
        if value not in self.loads:
            address_if = partial(grid.address_if, *place, self.cell)
            self.loads[value] = replace(load, address_if=address_if)
            self.record(grid, place)
            self.touched[0].add(pointer)
        return value

    def record(self, grid: AnyGrid, place: Place) -> None:
        """Record that the kernel reads a value, and its tail if it has one."""
        tail = grid.tail_of(place.slot)
        for k in (place.slot, tail.carrier) if tail else (place.slot,):
            self.reads.append(Access(grid.name, k, place.offset))

    def load_of(self, pointer: str, grid: AnyGrid, place: Place) -> Load:
        """The load of a value of a field."""
        more: tuple[str | int, ...] = ()
        if tail := grid.tail_of(place.slot):
            more = self.address(grid, Place(tail.carrier, place.offset)), tail.bits
        elif tail := grid.tail_in(place.slot):
            more = (tail.bits,)
        return Load(self.macro("LOAD", grid, place.slot), pointer, self.address(grid, place), more)

    def macro(self, access: str, grid: AnyGrid, slot: int) -> str:
        """The macro of the prelude that loads or stores a value: `access` and a suffix."""
        if grid.type == "real":
            return f"{access}_REAL"
        if grid.tail_of(slot):
            return f"{access}_HEAD"
        if grid.tail_in(slot):
            return f"{access}_CARRIER"
        return f"{access}{'_WIDE' if grid.width(slot) > 1 else self._own}"

    def load(self, name: str, text: str) -> Symbol:
        """Load a value from a list or a plain array; `text` is its C text."""
        value = symbol(name + self.end)
        if self.loads.get(value) != text:
            self._require_new(value)
            self.loads[value] = text
        return value

    def coordinate(self, name: str, index: Index) -> Symbol:
        """The coordinate of the cell's centre, from the cell's number along an axis."""
        value = symbol(name + self.end)
        self.coordinates[value] = index, self.cell
        return value

    def let(self, name: str, expression: Expression) -> Symbol:
        """Define a value with the name that it has in the literature; returns its symbol."""
        value = symbol(name + self.end)
        self._require_new(value)
        self.definitions[value] = sympify(expression)
        return value

    def _require_new(self, value: Symbol) -> None:
        """ValueError if the kernel already has a value of this name."""
        if value in self.loads or value in self.definitions or str(value) in self.arguments:
            raise ValueError(f"kernel {self.name}: two values are called '{value}'")

    def write(self, pointer: str, grid: AnyGrid, place: Place, *values: Expression) -> None:
        """Store a value of a field; the second of `values` is the one whose tail it carries."""
        address = self.address(grid, place)
        self.argument(pointer, f"{grid.type}*")
        self.writes.append(Access(grid.name, *place))
        self.touched[1].add(pointer)
        self._add_store("STORE", [pointer, address], grid, place.slot, values)

    def send(self, pointer: str, grid: AnyGrid, place: Place, *values: Expression) -> None:
        """Store a value of the cell in an array that this kernel does not read.

        A CPU collects these values of a row and writes them past the caches: a cached store would
        first read the memory that it overwrites.
        """
        address, line = self.address(grid, place), self._sent_slots()
        self.argument(pointer, f"{grid.type}*")
        self.writes.append(Access(grid.name, *place))
        self._add_store("STORE_LINE", [pointer, address, line], grid, place.slot, values)
        self.sent.append(Sent(pointer, address, line, grid.width(place.slot)))

    def _add_store(
        self,
        access: str,
        to: list[str | int],
        grid: AnyGrid,
        slot: int,
        values: Sequence[Expression],
    ) -> None:
        """Add the statement of a store; `to`: array, address, and the line of a line buffer."""
        tail = grid.tail_of(slot) or grid.tail_in(slot)
        given = [*to, *("{0}", "{1}")[: len(values)], *([tail.bits] if tail else [])]
        text = f"{self.macro(access, grid, slot)}({', '.join(map(str, given))});"
        self.do(text, *values, writes=str(to[0]))

    def do(self, text: str, *expressions: Expression, writes: str = "") -> None:
        """Add a statement; {0}, {1}, … in its text are replaced by the expressions.

        `writes`: the array that it writes. Such statements come last, because in-place layouts must
        read all values of a cell before they write any.
        """
        self.statements.append(Statement(text, tuple(map(sympify, expressions)), writes))
        if writes:
            self.written.add(writes)

    def in_place(self) -> bool:
        """Whether it writes an array that it also reads."""
        return bool(self.touched[0] & self.touched[1])

    def _sent_slots(self) -> int:
        return sum(sent.width for sent in self.sent)
