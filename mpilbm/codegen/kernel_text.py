"""A kernel during generation: the values it reads, defines and writes, and its text."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

from sympy import Symbol, sympify

from mpilbm.codegen.cse import share
from mpilbm.codegen.printer import c_text, symbol
from mpilbm.codegen.program import OF, Access, Argument, Kernel, Phase
from mpilbm.layouts.grid import CELL, CellNames, Grid
from mpilbm.layouts.packed_cells import packed_node, packed_plane, packed_row, packed_x

CELL_HEAD = "int64 plane, int row, int row_m, int row_p, int x, int x_m, int x_p"
HEAD = {
    "cells": CELL_HEAD,
    "pairs": CELL_HEAD,
    "rows": f"{CELL_HEAD}, double* total",
    "columns": f"{CELL_HEAD}, double* total",
    "entries": "int64 entry",
    "chunks": "int64 entry, double* total",
    "planes": "int column, double value, double* total",
    "nodes": "int64 plane, int node",
    "node_rows": "int64 plane, int node, double* total",
}
THREADS = {over: "ROW_THREADS" if over.endswith("rows") else 256 for over in HEAD}
THREADS |= {"chunks": "CHUNK_THREADS", "planes": "PLANE_THREADS"}
ORDER = ("*", "int64", "int", "real", "double")
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
    more: tuple = ()
    address_if: Callable[[str, Any], str] | None = None

    def __str__(self):
        return f"{self.macro}({', '.join(map(str, (self.pointer, self.address, *self.more)))})"

    def where(self, condition: str, missing=None) -> "Load | None":
        """This load, or that of any other value if the condition is 0; None if it cannot be."""
        if self.address_if is None or self.more:
            return None
        return replace(self, address=self.address_if(condition, missing))


class Statement(NamedTuple):
    """C text with {0}, {1}, … for expressions, and the array that it writes, or ""."""

    text: str
    expressions: tuple
    writes: str = ""


class Sent(NamedTuple):
    """A store that bypasses the cache of a CPU, from line buffers `line`, …, one for each slot."""

    pointer: str
    address: str
    line: int
    width: int

    def __str__(self):
        count = f"{self.width} * count" if self.width > 1 else "count"
        return f"stream_out({self.pointer} + {self.address}, line[{self.line}], {count});"


class KernelText:
    """Collects reads, named values and statements, and prints them in an order that is valid in C.

    With `unit` other than 1, values are loaded and stored unscaled, as multiples of 1 / unit.
    """

    line_parameters = "LINE_PARAMETERS"  # of functions that use line buffers on a CPU
    parts: ClassVar[tuple[str, ...]] = ("at",)  # the functions that the driver calls
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
        self.definitions: dict = {}  # symbol -> expression
        self.statements: list[Statement] = []
        self.written: set[str] = set()  # all arrays that statements write
        self.touched: tuple[set[str], set[str]] = set(), set()  # arrays read, arrays written
        self.reads: list[Access] = []
        self.writes: list[Access] = []
        self.sent: list[Sent] = []  # stores that bypass the cache

    @property
    def name(self) -> str:
        """The name of the C function: the role, the parity and the fluid, if it has them."""
        parity = "" if self.parity is None else f"_{self.parity}"
        return f"{self.role}{parity}{'' if self.fluid is None else OF.format(self.fluid)}"

    def argument(self, name: str, type: str):
        """Declare a parameter of the kernel; returns its symbol."""
        self.arguments.setdefault(name, type)
        return symbol(name)

    def sizes(self, grid: Grid) -> None:
        """Declare the arguments that addresses of this grid need."""
        for name, type in grid.types().items():
            self.argument(name, type)

    def address(self, grid: Grid, slot: int, offset, cell: CellNames | None = None) -> str:
        """C text of the index of a value of a cell, by default the kernel's own.

        Declares the arguments and the table that the address needs.
        """
        self.sizes(grid)
        number = grid.table(offset)
        if number is not None:
            self.argument("node_next", "int32*")
            table = Access("node_next", number, (0, 0, 0))
            if table not in self.reads:
                self.reads.append(table)
        return grid.address(slot, offset, cell or self.cell)

    def read(
        self, name: str, pointer: str, type: str, grid: Grid, slot: int, offset,
        cell: CellNames | None = None,
    ):  # fmt: skip
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

    def record(self, grid: Grid, slot: int, offset) -> None:
        """Record that the kernel reads a value, and its tail if it has one."""
        tail = grid.tail_of(slot)
        for k in (slot, tail.carrier) if tail else (slot,):
            self.reads.append(Access(grid.name, k, offset))

    def load_of(
        self, pointer: str, type: str, grid: Grid, slot: int, address: Callable[[int], str]
    ) -> Load:
        """The load of a value of a field; `address(slot)` is the C text of the index of a value."""
        macro = self.macro("LOAD", type, grid, slot)
        more: tuple = ()
        if tail := grid.tail_of(slot):
            more = address(tail.carrier), tail.bits
        elif tail := grid.tail_in(slot):
            more = (tail.bits,)
        return Load(macro, pointer, address(slot), more)

    def macro(self, access: str, type: str, grid: Grid, slot: int) -> str:
        """The macro of the prelude that loads or stores a value: `access` and a suffix."""
        if type == "real":
            return f"{access}_REAL"
        if grid.tail_of(slot):
            return f"{access}_HEAD"
        if grid.tail_in(slot):
            return f"{access}_CARRIER"
        return f"{access}{'_WIDE' if grid.width(slot) > 1 else self._own}"

    def load(self, name: str, text: str):
        """Load a value from a list or a plain array; `text` is its C text."""
        value = symbol(name)
        if self.loads.get(value) != text:
            self._new(name)
            self.loads[value] = text
        return value

    def coordinate(self, name: str, index: "Index", cell: CellNames | None = None):
        """The coordinate of a cell's centre, from the cell's number along an axis."""
        value = symbol(name)
        self.coordinates[value] = index, cell or self.cell
        return value

    def _new(self, name: str):
        """The symbol of a new name; ValueError if the kernel already has a value of this name."""
        value = symbol(name)
        if value in self.loads or value in self.definitions or name in self.arguments:
            raise ValueError(f"kernel {self.name}: two values are called '{name}'")
        return value

    def let(self, name: str, expression):
        """Define a value with the name that it has in the literature; returns its symbol."""
        value = self._new(name)
        self.definitions[value] = sympify(expression)
        return value

    def write(
        self, pointer: str, type: str, grid: Grid, slot: int, offset, expression,
        cell: CellNames | None = None, head=None,
    ) -> None:  # fmt: skip
        """Store a value of a field; `head`: the value whose tail it carries, if any."""
        address = self.address(grid, slot, offset, cell)
        self.argument(pointer, f"{type}*")
        self.writes.append(Access(grid.name, slot, offset))
        self.touched[1].add(pointer)
        store = self.macro("STORE", type, grid, slot)
        self._add_store(store, [pointer, address], grid, slot, expression, head)

    def _add_store(self, macro: str, place: list, grid: Grid, slot: int, expression, head) -> None:
        """Add the statement of a store; `place`: the pointer and the other numbers of the place."""
        tail = grid.tail_of(slot) or grid.tail_in(slot)
        values = [expression] if head is None else [expression, head]
        given = [*place, *("{0}", "{1}")[: len(values)], *([tail.bits] if tail else [])]
        self.do(f"{macro}({', '.join(map(str, given))});", *values, writes=place[0])

    def send(self, pointer: str, type: str, grid: Grid, slot: int, expression, head=None) -> None:
        """Store a value of the cell in an array that this kernel does not read.

        A CPU collects these values of a row and writes them with stores that bypass the caches: a
        cached store would first read the memory that it overwrites.
        """
        address = self.address(grid, slot, (0, 0, 0))
        self.argument(pointer, f"{type}*")
        self.writes.append(Access(grid.name, slot, (0, 0, 0)))
        store, line = self.macro("STORE_LINE", type, grid, slot), self._sent_slots()
        self._add_store(store, [pointer, address, line], grid, slot, expression, head)
        self.sent.append(Sent(pointer, address, line, grid.width(slot)))

    def do(self, text: str, *expressions, writes: str = "") -> None:
        """Add a statement; {0}, {1}, … in its text are replaced by the expressions.

        `writes`: the array that the statement writes. Statements that write come after all others,
        because in-place layouts must read all values of a cell before they write any of them.
        """
        self.statements.append(Statement(text, tuple(map(sympify, expressions)), writes))
        if writes:
            self.written.add(writes)

    def kernel(self) -> Kernel:
        """The description of the kernel for its launchers."""
        arguments = tuple(Argument(name, self.arguments[name]) for name in self._sorted())
        return Kernel(
            name=self.name,
            over=self.over,
            arguments=arguments,
            reads=tuple(self.reads),
            writes=tuple(self.writes),
            parity=self.parity,
            fluid=self.fluid,
            phase=self.phase,
            role=self.role,
            optional=self.optional,
            exchanges=self.exchanges,
        )

    def text(self) -> str:
        """The cell function and its driver."""
        return self.wrap("\n".join(f"  {line}" for line in self.body()))

    def body(self) -> list[str]:
        """Loads, values and statements, with common subexpressions as separate values."""
        names = list(self.definitions)
        temporaries, reduced = self.shared
        known = dict(temporaries) | dict(zip(names, reduced, strict=False))
        remaining = iter(reduced[len(names) :])
        lines: list[str] = []
        stores: list[str] = []
        done: set[Symbol] = set()
        for text, expressions, writes in self.statements:
            values = [next(remaining) for _ in expressions]
            for value in values:
                self._define(value, known, done, lines)
            (stores if writes else lines).append(text.format(*(c_text(v) for v in values)))
        forget = ["FORGET_ADDRESSES"] if self.in_place() and self.over in ("cells", "pairs") else []
        return [*lines, *forget, *stores]

    @cached_property
    def shared(self) -> tuple[list, list]:
        """`share` of all definitions and of the expressions of all statements."""
        wanted = [e for statement in self.statements for e in statement.expressions]
        return share([*self.definitions.values(), *wanted])

    def _define(self, expression, known, done, lines) -> None:
        """Append definitions of all values that an expression uses, in an order valid in C."""
        for name in sorted(expression.free_symbols, key=str):
            if name in done:
                continue
            done.add(name)
            if name in self.loads:
                lines.append(f"const real {name} = {self.loads[name]};")
            elif name in self.coordinates:
                index, cell = self.coordinates[name]
                lines.append(f"const real {name} = {centre(index(cell))};")
            elif name in known:
                self._define(known[name], known, done, lines)
                lines.append(f"const real {name} = {c_text(known[name])};")

    @property
    def exchanges(self) -> bool:
        """Whether its CUDA text can be compiled so that it exchanges edge planes itself."""
        return bool(self.sent) and self.over in ("cells", "pairs")

    def in_place(self) -> bool:
        """Whether it writes an array that it also reads."""
        return bool(self.touched[0] & self.touched[1])

    def wrap(self, body: str) -> str:
        """The cell function with this body, and the driver that calls it."""
        names = self._sorted()
        declared = ", ".join(self._declare(name, name in self.written) for name in names)
        title = "\n   ".join(line.strip() for line in self.equations.strip().splitlines())
        line = f"{self.line_parameters} " if self.lines() else ""
        faces = "FACES_PARAMETER " if self.exchanges else ""
        return (
            f"/* {title} */\n"
            f"INLINE void {self.name}_at({line}{HEAD[self.over]}, {declared})\n{{\n{body}\n}}\n"
            f"{self.functions(declared)}"
            f"KERNEL({THREADS[self.over]}) {self.name}"
            f"({faces}int64 begin, int64 end, int64 stride, {declared})\n"
            f"{{\n  {self.driver(', '.join(names))}\n}}\n"
        )

    def lines(self) -> int:
        """The number of line buffers of a CPU: one for each slot that it collects."""
        return self._sent_slots()

    def _sent_slots(self) -> int:
        return sum(sent.width for sent in self.sent)

    def functions(self, declared: str) -> str:
        """Further functions for the driver: on CPUs, one that stores collected values of cells."""
        if not self.sent:
            return ""
        lines = "".join(
            f"  ahead(&{load.pointer}[{load.address}]);\n"
            for load in self.loads.values()
            if isinstance(load, Load)
        )
        lines += "".join(f"  {sent}\n" for sent in self.sent)
        place = f"{self.line_parameters} int count, {HEAD[self.over]}"
        head = f"INLINE void {self.name}_send({place}, {declared})"
        return f"#ifndef __CUDACC__\n{head}\n{{\n{lines}}}\n#endif\n"

    def driver(self, names: str) -> str:
        """The call of the prelude's loop over all cells (or rows, entries, …) of the kernel."""
        functions = ", ".join(f"{self.name}_{part}" for part in self.parts)
        if self.sent:
            functions += f", {self.name}_send, {self.lines()}"
        return f"FOR_{self.over.upper()}{'_SENT' if self.sent else ''}({functions}, {names})"

    def _sorted(self) -> list[str]:
        def rank(name):
            kind = self.arguments[name]
            return next(k for k, end in enumerate(ORDER) if kind.endswith(end)), name

        return sorted(self.arguments, key=rank)

    def _declare(self, name: str, written: bool) -> str:
        kind = self.arguments[name]
        if not kind.endswith("*"):
            return f"{kind} {name}"
        return f"{'' if written else 'const '}{kind} RESTRICT {name}"


def centre(index: str) -> str:
    """C text of the coordinate of a cell's centre."""
    return f"(real)({index}) + R(0.5)"


class RowSums(KernelText):
    """A kernel over rows that computes sums (or maxima) of values of the cells of a row.

    They are stored in `sums`, or with `adds` added to it.
    """

    def __init__(
        self, role: str, equations: str, over: str = "rows", *,
        parity: int | None = None, adds: bool = False,
    ):  # fmt: skip
        super().__init__(role, over, equations, parity=parity)
        self.assign = "+=" if adds else "="
        self.columns = 0
        self.maxima = 0
        self.argument("sums", "double*")
        self.argument("origin", "int64")

    def add(self, expression, when: str = "1") -> None:
        """Sum of a value over the cells of the row for which `when` (C text) is true."""
        self.do(f"TOTAL({self.columns}) += ({when}) ? (double)({{0}}) : 0;", expression)
        self.columns += 1

    def maximum(self, expression, when: str = "1") -> None:
        """Largest value in the row, at least zero."""
        k = self.columns
        self.do(f"if ({when} && (double)({{0}}) > TOTAL({k})) TOTAL({k}) = (double)({{0}});",
                expression)  # fmt: skip
        self.maxima |= 1 << k
        self.columns += 1

    def count(self, condition: str, expression, when: str = "1") -> None:
        """Number of cells for which a condition on {0} (C text) is true."""
        self.do(f"if (({when}) && {condition}) TOTAL({self.columns}) += 1;", expression)
        self.columns += 1

    def _declare(self, name, written):
        return super()._declare(name, written or name == "sums")

    def driver(self, names):
        """The loop over rows, with the number of columns and a bit mask of the maxima."""
        how = f"{self.columns}, {self.maxima}, {self.assign}"
        return f"FOR_{self.over.upper()}({self.name}_at, {how}, {names})"


class ColumnSums(KernelText):
    """A kernel that adds sums over the rows of a plane, at each x, to sums[plane, k, x]."""

    def __init__(self, role: str, equations: str, columns: int, *, parity: int | None = None):
        super().__init__(role, "columns", equations, parity=parity)
        self.columns = columns
        self.argument("sums", "double*")
        self.argument("origin", "int64")

    def driver(self, names):
        """The loop over columns, with the number of sums."""
        return f"FOR_COLUMNS({self.name}_at, {self.columns}, {names})"


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
