"""What a kernel reads, defines and writes, collected during its generation."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import ClassVar

from sympy import Symbol, sympify

from mpilbm.codegen.printer import symbol
from mpilbm.codegen.program import OF, Access, Phase
from mpilbm.codegen.text.parts import Index, Load, Sent, Statement
from mpilbm.layouts import HERE, AnyGrid, Offset
from mpilbm.layouts.grid import CELL, CellNames
from mpilbm.model.expressions import Expression


class KernelValues:
    """The arguments, loads, named values, statements and stores of a kernel.

    With `unit` other than 1, values are loaded and stored unscaled, as multiples of 1 / unit.
    """

    cell: ClassVar[CellNames] = CELL  # the cell for which it is called

    def __init__(
        self, role: str, over: str, equations: str, unit: int = 1, *,
        parity: int | None = None, phase: Phase = "other",
    ):  # fmt: skip
        self.role, self.over, self.equations, self.unit = role, over, equations, unit
        self.parity, self.phase = parity, phase
        self.fluid: int | None = None  # number of the coupled fluid that it belongs to
        self.optional = False  # whether only some runs use it
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

    def sizes(self, grid: AnyGrid) -> None:
        """Declare the arguments that addresses of this grid need."""
        for name, type in grid.types().items():
            self.argument(name, type)

    def address(
        self, grid: AnyGrid, slot: int, offset: Offset, cell: CellNames | None = None
    ) -> str:
        """C text of the index of a value of a cell, by default the kernel's own.

        Declares the arguments and the table that the address needs.
        """
        self.sizes(grid)
        number = grid.table(offset)
        if number is not None:
            self.argument("node_next", "int32*")
            table = Access("node_next", number, HERE)
            if table not in self.reads:
                self.reads.append(table)
        return grid.address(slot, offset, cell or self.cell)

    def read(
        self, name: str, pointer: str, type: str, grid: AnyGrid, slot: int, offset: Offset,
        cell: CellNames | None = None,
    ) -> Symbol:  # fmt: skip
        """Load a value of a field; returns the symbol `name`."""
        self.argument(pointer, f"{type}*")
        value = symbol(name)
        load = self.load_of(
            pointer, type, grid, slot, lambda k: self.address(grid, k, offset, cell)
        )
        there = slot, offset, cell or self.cell
        if value not in self.loads:
            self.loads[value] = replace(load, address_if=partial(grid.address_if, *there))
            self.record(grid, slot, offset)
            self.touched[0].add(pointer)
        return value

    def record(self, grid: AnyGrid, slot: int, offset: Offset) -> None:
        """Record that the kernel reads a value, and its tail if it has one."""
        tail = grid.tail_of(slot)
        for k in (slot, tail.carrier) if tail else (slot,):
            self.reads.append(Access(grid.name, k, offset))

    def load_of(
        self, pointer: str, type: str, grid: AnyGrid, slot: int, address: Callable[[int], str]
    ) -> Load:
        """The load of a value of a field; `address(slot)` is the C text of the index of a value."""
        macro = self.macro("LOAD", type, grid, slot)
        more: tuple[str | int, ...] = ()
        if tail := grid.tail_of(slot):
            more = address(tail.carrier), tail.bits
        elif tail := grid.tail_in(slot):
            more = (tail.bits,)
        return Load(macro, pointer, address(slot), more)

    def macro(self, access: str, type: str, grid: AnyGrid, slot: int) -> str:
        """The macro of the prelude that loads or stores a value: `access` and a suffix."""
        if type == "real":
            return f"{access}_REAL"
        if grid.tail_of(slot):
            return f"{access}_HEAD"
        if grid.tail_in(slot):
            return f"{access}_CARRIER"
        return f"{access}{'_WIDE' if grid.width(slot) > 1 else self._own}"

    def load(self, name: str, text: str) -> Symbol:
        """Load a value from a list or a plain array; `text` is its C text."""
        value = symbol(name)
        if self.loads.get(value) != text:
            self._new(name)
            self.loads[value] = text
        return value

    def coordinate(self, name: str, index: Index, cell: CellNames | None = None) -> Symbol:
        """The coordinate of a cell's centre, from the cell's number along an axis."""
        value = symbol(name)
        self.coordinates[value] = index, cell or self.cell
        return value

    def _new(self, name: str) -> Symbol:
        """The symbol of a new name; ValueError if the kernel already has a value of this name."""
        value = symbol(name)
        if value in self.loads or value in self.definitions or name in self.arguments:
            raise ValueError(f"kernel {self.name}: two values are called '{name}'")
        return value

    def let(self, name: str, expression: Expression) -> Symbol:
        """Define a value with the name that it has in the literature; returns its symbol."""
        value = self._new(name)
        self.definitions[value] = sympify(expression)
        return value

    def write(
        self, pointer: str, type: str, grid: AnyGrid, slot: int, offset: Offset,
        expression: Expression, cell: CellNames | None = None, head: Expression = None,
    ) -> None:  # fmt: skip
        """Store a value of a field; `head`: the value whose tail it carries, if any."""
        address = self.address(grid, slot, offset, cell)
        self.argument(pointer, f"{type}*")
        self.writes.append(Access(grid.name, slot, offset))
        self.touched[1].add(pointer)
        store = self.macro("STORE", type, grid, slot)
        self._add_store(store, pointer, [address], grid, slot, expression, head)

    def _add_store(
        self, macro: str, pointer: str, place: list[str | int], grid: AnyGrid, slot: int,
        expression: Expression, head: Expression,
    ) -> None:  # fmt: skip
        """Add the statement of a store; `place`: the address, and the line of a line buffer."""
        tail = grid.tail_of(slot) or grid.tail_in(slot)
        values = [expression] if head is None else [expression, head]
        given = [pointer, *place, *("{0}", "{1}")[: len(values)], *([tail.bits] if tail else [])]
        self.do(f"{macro}({', '.join(map(str, given))});", *values, writes=pointer)

    def send(
        self, pointer: str, type: str, grid: AnyGrid, slot: int, expression: Expression,
        head: Expression = None,
    ) -> None:  # fmt: skip
        """Store a value of the cell in an array that this kernel does not read.

        A CPU collects these values of a row and writes them with stores that bypass the caches: a
        cached store would first read the memory that it overwrites.
        """
        address = self.address(grid, slot, HERE)
        self.argument(pointer, f"{type}*")
        self.writes.append(Access(grid.name, slot, HERE))
        store, line = self.macro("STORE_LINE", type, grid, slot), self._sent_slots()
        self._add_store(store, pointer, [address, line], grid, slot, expression, head)
        self.sent.append(Sent(pointer, address, line, grid.width(slot)))

    def do(self, text: str, *expressions: Expression, writes: str = "") -> None:
        """Add a statement; {0}, {1}, … in its text are replaced by the expressions.

        `writes`: the array that the statement writes. Statements that write come after all others,
        because in-place layouts must read all values of a cell before they write any of them.
        """
        self.statements.append(Statement(text, tuple(map(sympify, expressions)), writes))
        if writes:
            self.written.add(writes)

    def in_place(self) -> bool:
        """Whether it writes an array that it also reads."""
        return bool(self.touched[0] & self.touched[1])

    def _sent_slots(self) -> int:
        return sum(sent.width for sent in self.sent)
