"""Kernels over the fluid nodes of planes: on a CPU neighbours are accessed through line buffers."""

from sympy import Symbol

from mpilbm.codegen.kernel_text import HEAD, KernelText
from mpilbm.layouts import HERE, AnyGrid, Offset
from mpilbm.layouts.grid import CellNames
from mpilbm.layouts.nodes import NodeGrid
from mpilbm.model.expressions import Expression


class NodeText(KernelText):
    """A step of the nodes.

    A CPU gathers the values of neighbours into line buffers and scatters results from them, so that
    the computation in between uses whole vectors. A GPU reads and writes directly.
    """

    line_parameters = "NODE_LINE_PARAMETERS"

    def __init__(self, role: str, equations: str, unit: int, parity: int):
        super().__init__(role, "nodes", equations, unit, parity=parity, phase="collide")
        self.fetched: list[str] = []  # C statements that fill line 0, 1, …
        self.scattered: list[str] = []  # C statements that scatter line 0, 1, …

    def read(
        self, name: str, pointer: str, type: str, grid: AnyGrid, slot: int, offset: Offset,
        cell: CellNames | None = None,
    ) -> Symbol:  # fmt: skip
        """Load a value; if it belongs to a neighbour, from a line buffer."""
        value = super().read(name, pointer, type, grid, slot, offset, cell)
        if offset != HERE:
            line = len(self.fetched)
            self.loads[value] = (
                f"LOAD_LINE{self._own}({pointer}, {grid.address(slot, offset)}, {line})"
            )
            assert isinstance(grid, NodeGrid)  # a step of nodes has no dense fields
            base, entry = grid.found(slot, offset)
            self.fetched.append(f"FETCH({pointer}, {base}, {entry}, {line});")
        return value

    def write(
        self, pointer: str, type: str, grid: AnyGrid, slot: int, offset: Offset,
        expression: Expression, cell: CellNames | None = None, head: Expression = None,
    ) -> None:  # fmt: skip
        """Store a value; if it belongs to a neighbour, in a line buffer."""
        super().write(pointer, type, grid, slot, offset, expression, cell, head)
        if offset != HERE:
            line, (_, expressions, _) = len(self.scattered), self.statements.pop()
            place = f"{pointer}, {grid.address(slot, offset)}, {line}"
            self.do(f"STORE_LINE{self._own}({place}, {{0}});", *expressions, writes=pointer)
            assert isinstance(grid, NodeGrid)  # a step of nodes has no dense fields
            base, entry = grid.found(slot, offset)
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
