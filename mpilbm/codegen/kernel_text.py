"""The text of a kernel: the values that it collected, in an order that is valid in C."""

from collections.abc import Mapping
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import ClassVar

from sympy import Mul, Symbol
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanFunction

from mpilbm.codegen.common_parts import common_parts
from mpilbm.codegen.printer import c_text
from mpilbm.codegen.program import Argument, Kernel
from mpilbm.codegen.values import KernelValues, Load, centre
from mpilbm.model.expressions import Expression

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
Shared = tuple[tuple[tuple[Symbol, Expression], ...], tuple[Expression, ...]]  # see `share`
ORDER = ("*", "int64", "int", "real", "double")


class KernelText(KernelValues):
    """Prints the collected values and statements of a kernel, and its driver."""

    line_parameters = "LINE_PARAMETERS"  # of functions that use line buffers on a CPU
    parts: ClassVar[tuple[str, ...]] = ("at",)  # the functions that the driver calls

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
    def shared(self) -> Shared:
        """`share` of all definitions and of the expressions of all statements."""
        wanted = [e for statement in self.statements for e in statement.expressions]
        return share((*self.definitions.values(), *wanted))

    def _define(
        self,
        expression: Expression,
        known: Mapping[Symbol, Expression],
        done: set[Symbol],
        lines: list[str],
    ) -> None:
        """Append definitions of all values that an expression uses, in an order valid in C."""
        for name in _symbols(expression):
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
                kind = "int" if isinstance(known[name], Relational | BooleanFunction) else "real"
                lines.append(f"const {kind} {name} = {c_text(known[name])};")

    @property
    def exchanges(self) -> bool:
        """Whether its CUDA text can be compiled so that it exchanges edge planes itself."""
        return bool(self.sent) and self.over in ("cells", "pairs")

    def wrap(self, body: str) -> str:
        """The cell function with this body, and the driver that calls it."""
        names = self._sorted()
        declared = ", ".join(self._declare(name) for name in names)
        given = ", ".join(self._declare(name, "ARRAY") for name in names)
        title = "\n   ".join(line.strip() for line in self.equations.strip().splitlines())
        line = f"{self.line_parameters} " if self.lines() else ""
        faces = "FACES_PARAMETER " if self.exchanges else ""
        threads = THREADS[self.over]
        kernel = f"DENSE_KERNEL({threads}, {self.blocks})" if self.blocks else f"KERNEL({threads})"
        return (
            f"/* {title} */\n"
            f"INLINE void {self.name}_at({line}{HEAD[self.over]}, {declared})\n{{\n{body}\n}}\n"
            f"{self.functions(declared)}"
            f"#define PASSED {', '.join(map(self._passed, names))}\n"
            f"{kernel} {self.name}"
            f"({faces}int64 begin, int64 end, int64 stride, {given})\n"
            f"{{\n  {self.driver()}\n}}\n#undef PASSED\n"
        )

    def lines(self) -> int:
        """The number of line buffers of a CPU: one for each slot that it collects."""
        return self._sent_slots()

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
        return f"#ifndef ON_GPU\n{head}\n{{\n{lines}}}\n#endif\n"

    def driver(self) -> str:
        """The prelude's loop over all cells (or rows, entries, …), which passes PASSED on."""
        functions = ", ".join(f"{self.name}_{part}" for part in self.parts)
        if self.sent:
            functions += f", {self.name}_send, {self.lines()}"
        return f"FOR_{self.over.upper()}{'_SENT' if self.sent else ''}({functions})"

    def _sorted(self) -> list[str]:
        def rank(name: str) -> tuple[int, str]:
            kind = self.arguments[name]
            return next(k for k, end in enumerate(ORDER) if kind.endswith(end)), name

        return sorted(self.arguments, key=rank)

    def _declare(self, name: str, macro: str = "POINTER") -> str:
        """The declaration of an argument: POINTER of a function, ARRAY of a kernel."""
        kind = self.arguments[name]
        if not kind.endswith("*"):
            return f"{kind} {name}"
        return f"{macro}({'' if name in self.written else 'const '}{kind}, {name})"

    def _passed(self, name: str) -> str:
        """What the driver passes to a function for an argument of its kernel."""
        return f"FIRST({name})" if self.arguments[name].endswith("*") else name


@lru_cache(100_000)
def _symbols(expression: Expression) -> tuple[Symbol, ...]:
    """The symbols of an expression, by name."""
    return tuple(sorted(expression.free_symbols, key=attrgetter("name")))


@lru_cache(1000)  # kernels of both parities, of other layouts and of other cases share expressions
def share(expressions: tuple[Expression, ...]) -> Shared:
    """(name, expression) of each common part, and the expressions in terms of these names.

    If a common part a*(b + c) is only a term of sums, b + c gets the name: a*name + d then costs no
    more than an addition.
    """
    names, wanted = common_parts(expressions)
    values = [*(value for _, value in names), *wanted]
    symbols = [value.free_symbols for value in values]
    for k, (name, _) in enumerate(names):
        value = values[k]
        sums = [factor for factor in value.args if factor.is_Add] if value.is_Mul else []
        if len(sums) != 1:
            continue
        users = [n for n, used in enumerate(symbols) if name in used]
        if not all(_adds(values[n], name) for n in users):
            continue
        scaled = {name: Mul(*(factor for factor in value.args if not factor.is_Add)) * name}
        values[k] = sums[0]
        for n in users:
            values[n] = values[n].xreplace(scaled)
        for n in (k, *users):
            symbols[n] = values[n].free_symbols
    parts = tuple((name, value) for (name, _), value in zip(names, values, strict=False))
    return parts, tuple(values[len(names) :])


def _adds(expression: Expression, name: Symbol) -> bool:
    """Whether a name occurs only as a term of a sum."""
    terms = expression.args if expression.is_Add else ()
    return any(term in (name, -name) for term in terms) and all(
        term in (name, -name) or name not in term.free_symbols for term in terms
    )
