"""Kernels over the entries of a boundary list."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Self

from sympy import Symbol

from mpilbm.codegen.kernel_text import KernelText, share
from mpilbm.codegen.kernels import FieldKernels
from mpilbm.codegen.printer import c_text
from mpilbm.codegen.program import Phase
from mpilbm.codegen.values import Load, entry_place
from mpilbm.layouts import Offset
from mpilbm.layouts.cells import LISTED, CellNames
from mpilbm.model.expressions import Expression

OWN = "own"  # the position of the entry in the arrays of its own list
LINKS = "const int64 staged = start[{0}]; const uint32 links = missing[{0}];"
LIST = {"cells": "int64*", "missing": "uint32*", "start": "int64*", "first": "int64"}

Blocks = dict[int, tuple[list[str], list[Expression]]]


def staged(i: int) -> str:
    """C text of the place of direction i in the staging array; links of an entry are in order."""
    return f"staged + POPCOUNT(links & {(1 << i) - 1}u)"


def listed(i: int) -> str:
    """C text: whether the entry supplies direction i."""
    return f"(links >> {i} & 1)"


class EntryText(KernelText):
    """A kernel over entries; `incoming` of a direction is computed only if its link is listed."""

    cell: CellNames = LISTED
    ahead = False  # whether the values of all directions are loaded before any is used
    head = "entry"  # C text of the place of a cell in the array `head`, see `arrived`

    def __init__(
        self,
        role: str,
        equations: str,
        fluid: FieldKernels,
        parity: int,
        phase: Phase = "boundary",
        over: str = "entries",
    ):
        super().__init__(role, over, equations, parity=parity, phase=phase)
        self.sizes(fluid.grid)
        self.listed = fluid.grid.over == "nodes"
        self.directions = fluid.lattice.Q
        self.grid_over = fluid.grid.over  # "cells" or "nodes": what `cells` lists
        self.entry = entry_place(self.grid_over, self.cell, "cells[entry]").splitlines()
        self.incoming: dict[int, Expression] = {}
        self.put: dict[int, str] = {}  # C text that stores an incoming population, {} its name
        self.target = ""  # the array that `put` writes
        # index of a value of the state: its value for the next step
        self.following: dict[str, Expression] = {}
        self.links = LINKS.format("entry")
        self.declare(**LIST)

    def unstaged(self) -> None:
        """Remove the places in the staging array, for entries that are written directly."""
        self.links = "const uint32 links = missing[entry];"
        del self.arguments["start"]

    def arrived(
        self, fluid: FieldKernels, parity: int, lowest: int, pointer: str = "f", prefix: str = "f"
    ) -> list[Symbol]:
        """The incoming populations of a cell; of i >= `lowest` what its entries have staged.

        The first of these entries is at the place `self.head` of the array `head`.
        """
        stored = fluid.layout.populations
        value = "LOAD(staging, {})" if stored else "staging[{}]"
        self.declare(staging="store*" if stored else "real*", head="int32*", following="int32*")
        for i, f_i in enumerate(fluid.incoming(self, parity, pointer, prefix)):
            self.do(f"real arrives_{i} = {{0}};", f_i)
        self.do(f"for (int32 k = head[{self.head}]; k >= 0; k = following[k]) {{{{")
        self.do(LINKS.format("k"))
        for i in range(lowest, self.directions):
            self.do(f"if ({listed(i)}) arrives_{i} = {value.format(staged(i))};")
        self.do("}}")
        return [self.load(f"arrived_{i}", f"arrives_{i}") for i in range(self.directions)]

    def per_entry(self, name: str, type: str) -> str:
        """Declare an array of the list's own; returns the C text of the entry's value."""
        if "own_first" not in self.arguments:
            self.argument("own_first", "int64")
            self.entry.insert(0, f"const int64 {OWN} = entry - own_first;")
        self.argument(name + self.end, type)
        return f"{name}{self.end}[{OWN}]"

    def inwards(self, k: int) -> Self:
        """This kernel with the k-th cell inwards as its cell; names of its values end in `_in1` or
        `_in2`.

        Accesses are recorded as those of the entry's own cell: both cells belong to the same slab.
        """
        inner = self.at(CellNames.suffixed(f"_in{k}"), f"_in{k}")
        cells = inner.per_entry("cells", "int64*")
        self.entry += entry_place(self.grid_over, inner.cell, cells).splitlines()
        return inner

    def state(self, k: int, count: int) -> str:
        """C text of the index of value k of the entry's state."""
        self.per_entry("state", "real*")
        return f"{OWN} * {count} + {k}"

    def body(self) -> list[str]:
        """Values that only one direction uses are computed inside its block."""
        lines = [*self.entry, self.links]
        if not self.incoming:
            return lines + super().body()
        each = {i: [value] for i, value in self.incoming.items()}
        more, blocks, following = self.by_direction(each, list(self.following.values()))
        lines += more
        for i, (block, (value,)) in blocks.items():
            body = " ".join([*block, f"enters_{i} = {c_text(value)};"])
            lines.append(f"real enters_{i} = R(0); if ({listed(i)}) {{ {body} }}")
        for i in blocks:
            lines.append(f"if ({listed(i)}) {self.put[i].format(f'enters_{i}')}")
        stores = zip(self.following, following, strict=True)
        return lines + [f"STORE_REAL(state, {k}, {c_text(value)});" for k, value in stores]

    def by_direction(
        self, wanted: Mapping[int, Sequence[Expression]], always: Sequence[Expression] = ()
    ) -> tuple[list[str], Blocks, list[Expression]]:
        """Definitions for all directions; {i: (definitions, values)}; the values of `always`.

        What only one direction uses is among its own definitions.
        """
        names = list(self.definitions)
        flat = [value for values in wanted.values() for value in values]
        temporaries, reduced = share((*(self.definitions[n] for n in names), *flat, *always))
        known = dict(temporaries) | dict(zip(names, reduced, strict=False))
        remaining = iter(reduced[len(names) :])
        each = {i: [next(remaining) for _ in values] for i, values in wanted.items()}
        common = list(remaining)
        users = Counter(s for values in each.values() for s in _used(values, known))
        shared = sorted((s for s, count in users.items() if count > 1), key=str)
        done: set[Symbol] = set()
        lines: list[str] = []
        for value in (*shared, *common):
            self._define(value, known, done, lines)
        blocks: Blocks = {}
        for i, values in each.items():
            mine: list[str] = []
            own = set(done)
            if self.ahead:
                lines += self._loaded_ahead(i, _used(values, known), own)
            for value in values:
                self._define(value, known, own, mine)
            blocks[i] = mine, values
        return lines, blocks, common

    def missing(self, i: int) -> Offset | None:
        """The offset of the neighbour that is missing if direction i is listed; None: unknown."""
        return None

    def _loaded_ahead(self, i: int, names: set[Symbol], done: set[Symbol]) -> Iterator[str]:
        """Definitions of the values that only direction i loads, without a branch around them."""
        for name in sorted(names - done, key=str):
            load = self.loads.get(name)
            if isinstance(load, Load) and (always := load.where(listed(i), self.missing(i))):
                done.add(name)
                yield f"const real {name} = {always};"

    def wrap(self, body: str) -> str:
        """Declare the writes of incoming populations and of the state."""
        self.written |= {self.target} if self.incoming else set()
        self.written |= {"state"} if self.following else set()
        return super().wrap(body)


def _used(expressions: Sequence[Expression], known: Mapping[Symbol, Expression]) -> set[Symbol]:
    """All symbols that expressions need, through the definitions of others."""
    needed: set[Symbol] = set()
    todo = [name for expression in expressions for name in expression.free_symbols]
    while todo:
        name = todo.pop()
        if name not in needed:
            needed.add(name)
            todo += known[name].free_symbols if name in known else ()
    return needed


def mirror_of(
    kernel: EntryText, fluid: FieldKernels, i: int, slipped: str
) -> tuple[Symbol, Expression]:
    """The population from the mirror image along c_i, and the condition that there is one."""
    place = f"mirrors[{slipped} * {fluid.lattice.Q} + {i}]"
    value = f"{'LOAD' if fluid.layout.populations else 'LOAD_REAL'}(staging, {place})"
    mirror = kernel.load(f"mirror_{i}", f"{place} < 0 ? R(0) : {value}")
    return mirror, kernel.load(f"slips_{i}", f"(real)({place} >= 0)") > 0
