"""Kernels of a step whose text is not that of one cell after another: of nodes, and of pairs."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from sympy import Symbol

from mpilbm.codegen.kernel_text import HEAD, KernelText
from mpilbm.codegen.program import Access
from mpilbm.codegen.values import Statement, centre
from mpilbm.layouts import HERE, AnyGrid, Place
from mpilbm.layouts.cells import CELL, CellNames
from mpilbm.layouts.grid import Grid
from mpilbm.layouts.nodes import NodeGrid
from mpilbm.model.expressions import Expression


class NodeText(KernelText):
    """A step of the nodes.

    A CPU gathers the values of neighbours into line buffers, and scatters results from them, so
    that the computation uses whole vectors. A GPU reads and writes directly.
    """

    line_parameters = "NODE_LINE_PARAMETERS"

    def __init__(self, role: str, equations: str, unit: int, parity: int):
        super().__init__(role, "nodes", equations, unit, parity=parity, phase="collide")
        self.fetched: list[str] = []  # C statements that fill line 0, 1, …
        self.scattered: list[str] = []  # C statements that scatter line 0, 1, …

    def read(self, name: str, pointer: str, grid: AnyGrid, place: Place) -> Symbol:
        """Load a value; if it belongs to a neighbour, from a line buffer."""
        value = super().read(name, pointer, grid, place)
        if place.offset != HERE:
            line = len(self.fetched)
            self.loads[value] = f"LOAD_LINE{self._own}({pointer}, {grid.address(*place)}, {line})"
            assert isinstance(grid, NodeGrid)  # a step of nodes has no dense fields
            base, entry = grid.found(*place)
            self.fetched.append(f"FETCH({pointer}, {base}, {entry}, {line});")
        return value

    def write(self, pointer: str, grid: AnyGrid, place: Place, *values: Expression) -> None:
        """Store a value; if it belongs to a neighbour, in a line buffer."""
        super().write(pointer, grid, place, *values)
        if place.offset != HERE:
            line, (_, expressions, _) = len(self.scattered), self.statements.pop()
            there = f"{pointer}, {grid.address(*place)}, {line}"
            self.do(f"STORE_LINE{self._own}({there}, {{0}});", *expressions, writes=pointer)
            assert isinstance(grid, NodeGrid)  # a step of nodes has no dense fields
            base, entry = grid.found(*place)
            self.scattered.append(f"SCATTER({pointer}, {base}, {entry}, {line});")

    def lines(self) -> int:
        """The number of lines: as many as are gathered or scattered."""
        return max(len(self.fetched), len(self.scattered), self._sent_slots())

    def functions(self, declared: str) -> str:
        """On CPUs, the functions that gather and scatter the lines of `count` nodes."""
        if not self.lines():
            return ""
        sent = [str(one) for one in self.sent]
        place = f"{self.line_parameters} int count, {HEAD['nodes']}, {declared}"
        texts = [
            f"INLINE void {self.name}_{way}({place})\n{{\n  {body}\n}}\n"
            for way, body in (
                ("fetch", "\n  ".join(self.fetched)),
                ("send", "\n  ".join(self.scattered + sent)),
            )
        ]
        return f"#ifndef ON_GPU\n{''.join(texts)}#endif\n"

    def driver(self) -> str:
        """The loop over nodes, in lines if there are line buffers."""
        name, lines = self.name, self.lines()
        if not lines:
            return super().driver()
        return f"FOR_NODE_LINES({name}_at, {name}_fetch, {name}_send, {lines})"


class Field(NamedTuple):
    """An array that a kernel accesses, and its memory."""

    pointer: str
    grid: Grid


class PairText(KernelText):
    """A kernel over cells that reads and writes places of dense fields, each value once.

    A GPU thread updates the cells x and x + 1, x even. Rows are aligned, so one access loads the
    same value of both cells, unless it belongs to a neighbour along x; this reduces addresses and
    accesses, which limit the speed with one cell per thread and 16-bit storage. Both cells use one
    function with the equations, so the bits are those of a kernel with one cell per thread. In
    every other staggered row, neighbours along x have the same x as the cell; all threads of a warp
    take the same branch.
    """

    parts = ("at", "pair")

    def __init__(self, role: str, equations: str, unit: int, parity: int):
        super().__init__(role, "pairs", equations, unit, parity=parity, phase="collide")
        self.fields: dict[tuple[str, str], Field] = {}  # by the way of access and the grid's name

    def read(self, name: str, pointer: str, grid: AnyGrid, place: Place) -> Symbol:
        """Load a value; keeps the field that holds it."""
        self._keep("read", pointer, grid)
        return super().read(name, pointer, grid, place)

    def write(self, pointer: str, grid: AnyGrid, place: Place, *values: Expression) -> None:
        """Store a value; keeps the field that holds it."""
        self._keep("write", pointer, grid)
        super().write(pointer, grid, place, *values)

    def send(self, pointer: str, grid: AnyGrid, place: Place, *values: Expression) -> None:
        """Store a value past the cache of a CPU; keeps the field that holds it."""
        self._keep("write", pointer, grid)
        super().send(pointer, grid, place, *values)

    def _keep(self, way: str, pointer: str, grid: AnyGrid) -> None:
        """Keep the field of an access; its grid is dense, because pairs are cells of a row."""
        assert isinstance(grid, Grid)
        self.fields[way, grid.name] = Field(pointer, grid)

    def functions(self, declared: str) -> str:
        """Add the functions of the equations, from array to array, and of the pair of cells."""
        reals = [name for name in self._sorted() if self.arguments[name] == "real"]
        numbers = "".join(f", real {name}" for name in (*reals, *self.coordinates))
        values = f"{self.name}_values(const real* RESTRICT arrives, real* RESTRICT leaves{numbers})"
        lines = [f"real arrives[2][{len(self.reads)}], leaves[2][{len(self.writes)}];"]
        lines += self._by_parity(self._load, self.reads)
        for k in (0, 1):
            given = "".join(f", {value}" for value in (*reals, *self._centres(k)))
            lines.append(f"{self.name}_values(arrives[{k}], leaves[{k}]{given});")
        lines += ["FORGET_ADDRESSES"] if self.in_place() else []
        lines += self._by_parity(self._store, self.writes)
        pair = f"{self.name}_pair({HEAD['pairs']}, {declared})"
        text = _function(values, self._values()) + _function(pair, lines)
        return f"{super().functions(declared)}#ifdef ON_GPU\n{text}#endif\n"

    def _values(self) -> list[str]:
        """The body, with all values read from one array and stored in another."""
        inner = KernelText(self.name, self.over, self.equations)
        inner.definitions = self.definitions
        inner.loads = {value: f"arrives[{k}]" for k, value in enumerate(self.loads)}
        inner.statements = [
            Statement(f"leaves[{k}] = {{0}};", statement.expressions)
            for k, statement in enumerate(self.statements)
        ]
        inner.shared = self.shared  # the same expressions
        return inner.body()

    def _centres(self, k: int) -> list[str]:
        """C text of the coordinates of one of the two cells."""
        cell = CellNames(x=f"x + {k}")
        return [centre(index(cell)) for index, _ in self.coordinates.values()]

    def _by_parity(
        self, access: Callable[[int, Access, int], str], places: Sequence[Access]
    ) -> list[str]:
        """C lines that load or store all places, for both kinds of rows if there are two."""
        staggered = any(field.grid.staggered for field in self.fields.values())
        level = (-1, 1) if staggered and any(p.offset[2] for p in places) else (0,)
        odd, *even = ([access(k, p, side) for k, p in enumerate(places)] for side in level)
        return ["if (ODD) {", *odd, "} else {", *even[0], "}"] if even else odd

    def _load(self, k: int, place: Access, level: int) -> str:
        pointer, grid = self.fields["read", place.buffer]
        one, other = self._addresses(grid, place, level)
        if other is None:
            return f"load_pair({pointer} + ({one}), arrives[0][{k}], arrives[1][{k}]);"
        return (
            f"arrives[0][{k}] = LOAD_OWN({pointer}, {one}), "
            f"arrives[1][{k}] = LOAD_OWN({pointer}, {other});"
        )

    def _store(self, k: int, place: Access, level: int) -> str:
        pointer, grid = self.fields["write", place.buffer]
        one, other = self._addresses(grid, place, level)
        if other is None:
            store = "send_pair" if self.sent else "store_pair"
            return f"{store}({pointer} + ({one}), leaves[0][{k}], leaves[1][{k}]);"
        return (
            f"STORE_OWN({pointer}, {one}, leaves[0][{k}]), "
            f"STORE_OWN({pointer}, {other}, leaves[1][{k}]);"
        )

    @staticmethod
    def _addresses(grid: Grid, place: Access, level: int) -> tuple[str, str | None]:
        """The addresses for both cells; None for the second if it follows the first.

        `level`: the step along x to the neighbours that have the numbers of the cells.
        """
        plane, row, beside = place.offset
        first = grid.address(place.slot, (plane, row, 0))
        cell = CellNames(x="(x + 1)") if beside > 0 else CELL
        outside = grid.address(place.slot, place.offset, cell)
        if beside == level:
            return first, None
        return {0: (first, None), -1: (outside, first), +1: (f"{first} + 1", outside)}[beside]


def _function(head: str, lines: list[str]) -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"INLINE void {head}\n{{\n{body}\n}}\n"
