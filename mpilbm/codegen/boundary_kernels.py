"""Kernels over boundary entries, which compute and write the incoming populations.

The populations are staged in an array and then written by another kernel or, where no other entry
accesses their places, written directly.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from sympy import sympify

from mpilbm.codegen.boundary_cell import BoundaryCell, staged
from mpilbm.codegen.inner_cell import OWN
from mpilbm.codegen.kernel_text import KernelText
from mpilbm.codegen.kernels import FluidKernels
from mpilbm.codegen.printer import c_text
from mpilbm.codegen.program import Access, Phase
from mpilbm.codegen.text.cse import share
from mpilbm.codegen.text.parts import Load, entry_place
from mpilbm.layouts import HERE
from mpilbm.layouts.grid import LISTED

LINKS = "const int64 staged = start[{0}]; const uint32 links = missing[{0}];"
LIST = {"cells": "int64*", "missing": "uint32*", "start": "int64*", "first": "int64"}


def stage_kernel(fluid: FluidKernels, boundary, name, parity: int, beside=()) -> "EntryText":
    """Compute the incoming populations of a list into the staging array; `beside`: wall_effects."""
    kernel = EntryText(name, f"{boundary.name}: {type(boundary).__doc__}", fluid, parity)
    array, store = ("store*", "STORE_HERE") if fluid.layout.populations else ("real*", "STORE_REAL")
    kernel.argument("staging", array)
    kernel.target = "staging"
    kernel.put = {i: f"{store}(staging, {staged(i)}, {{}});" for i in range(fluid.lattice.Q)}
    return _incoming(kernel, fluid, boundary, parity, beside)


def at_once_kernel(fluid: FluidKernels, boundary, name, parity: int) -> "EntryText":
    """Write the incoming populations directly to where the next step gathers them."""
    kernel = EntryText(
        f"{name}_at_once",
        f"{boundary.name}: outgoing populations return along their links",
        fluid,
        parity,
    )
    kernel.unstaged()
    kernel.argument("f", "store*")
    kernel.target = "f"
    kernel.put = {
        i: f"STORE_HERE(f, {kernel.address(fluid.grid, *place)}, {{}});"
        for i in range(1, fluid.lattice.Q)
        for place in [fluid.layout.gather(fluid.lattice, i, parity)]
    }
    return _incoming(kernel, fluid, boundary, parity, ())


def exchange_kernel(fluid: FluidKernels, boundary, name, parity: int) -> "EntryText":
    """Exchange the outgoing populations of the cells at both ends of a link."""
    text = f"{boundary.name}: outgoing populations return at both ends of a link that wraps around"
    kernel = EntryText(f"{name}_exchange", text, fluid, parity)
    kernel.unstaged()
    kernel.argument("f", "store*")
    lattice, layout, grid = fluid.lattice, fluid.layout, fluid.grid
    for i in (i for i in range(1, lattice.Q) if max(lattice.offset(i)[1:]) > 0):
        here = kernel.address(grid, *layout.f_out(lattice, lattice.opp[i], parity))
        there = kernel.address(grid, *layout.gather(lattice, i, parity))
        kernel.do(f"const store here_{i} = {listed(i)} ? f[{here}] : (store)0;")
        kernel.do(f"const store there_{i} = {listed(i)} ? f[{there}] : (store)0;")
        kernel.do(f"if ({listed(i)}) COPY(f, {there}, here_{i});", writes="f")
        kernel.do(f"if ({listed(i)}) COPY(f, {here}, there_{i});", writes="f")
    return kernel


def _incoming(kernel: "EntryText", fluid: FluidKernels, boundary, parity, beside) -> "EntryText":
    """Let a kernel compute the incoming populations, and the state for the next step."""
    kernel.argument("values", "real*")
    kernel.argument("value", "int32*")
    cell = BoundaryCell(kernel, fluid, boundary, parity, beside)
    kernel.incoming = {i: sympify(e) for i, e in boundary.incoming(cell).items()}
    names = boundary.state(fluid.lattice)
    following = boundary.follow(cell, kernel.incoming) if names else {}
    kernel.following = {kernel.state(k, len(names)): sympify(following[name])
                        for k, name in enumerate(names)}  # fmt: skip
    return kernel


def near_kernel(fluid: FluidKernels, name: str, parity: int) -> "EntryText":
    """u of the outgoing populations of cells, which may lie in the next plane of another slab."""
    kernel = EntryText(
        f"{name}_near", "u of the outgoing populations of cells behind links", fluid, parity
    )
    kernel.links = ""
    kernel.argument("near", "real*")
    _, _, u = fluid.model.macroscopic(kernel, fluid.outgoing(kernel, parity), -1)
    for a, u_a in enumerate(u):
        kernel.do(f"STORE_REAL(near, entry * {len(u)} + {a}, {{0}});", u_a, writes="near")
    seen = [(a.slot, a.offset) for a in kernel.reads if a.buffer == fluid.grid.name]
    if fluid.grid.turned:  # populations that left towards a solid lie there
        seen += [(fluid.lattice.opp[slot], HERE) for slot, _ in seen]
    kernel.reads += [
        Access(fluid.grid.name, slot, (plane + side, row, x))
        for slot, (plane, row, x) in seen
        for side in (-1, 0, 1)
    ]
    return kernel


def begin_kernel(fluid: FluidKernels, boundary, name, parity: int, beside=()) -> "EntryText":
    """The state of a list before the first step, from the outgoing populations of the cells."""
    text = f"{boundary.name}: the state before the first step"
    kernel = EntryText(f"{name}_begin", text, fluid, parity)
    kernel.links = ""
    kernel.argument("values", "real*")
    kernel.argument("value", "int32*")
    names = boundary.state(fluid.lattice)
    begins = boundary.begin(BoundaryCell(kernel, fluid, boundary, parity, beside))
    for k, each in enumerate(names):
        text = f"STORE_REAL(state, {kernel.state(k, len(names))}, {{0}});"
        kernel.do(text, begins[each], writes="state")
    return kernel


def enter_kernel(fluid: FluidKernels, parity: int, lowest: int = 1) -> KernelText:
    """Write staged populations, of directions from `lowest` on, to where the step reads them."""
    text = "the population that enters -> where the next step gathers it"
    kernel = EntryText("enter", text, fluid, parity)
    kernel.argument("staging", "store*")
    kernel.argument("f", "store*")
    for i in range(lowest, fluid.lattice.Q):
        place = fluid.layout.gather(fluid.lattice, i, parity)
        address = kernel.address(fluid.grid, *place)
        kernel.do(f"const store f_{i} = {listed(i)} ? staging[{staged(i)}] : (store)0;")
        kernel.do(f"if ({listed(i)}) COPY(f, {address}, f_{i});", writes="f")
    return kernel


def again_kernel(fluid: FluidKernels, parity: int, lowest: int = 1) -> KernelText:
    """Compute listed cells a second time, in layouts without places for incoming populations."""
    text = "as collide_stream, with the populations that enter at boundaries"
    kernel = EntryText("again", text, fluid, parity, "collide")
    kernel.links = ""
    kernel.argument("staging", "real*")
    for i, f in enumerate(fluid.incoming(kernel, parity, "f_in")):
        kernel.do(f"real arrives_{i} = {{0}};", f)
    kernel.enter_all(lowest, "staging[{}]")
    arrived = [kernel.load(f"arrived_{i}", f"arrives_{i}") for i in range(fluid.lattice.Q)]
    fluid.store(kernel, parity, fluid.collide(kernel, arrived), "f_out")
    return kernel


def listed(i: int) -> str:
    """C text: whether the entry supplies direction i."""
    return f"(links >> {i} & 1)"


class EntryText(KernelText):
    """A kernel over entries; `incoming` of a direction is computed only if its link is listed."""

    cell = LISTED
    ahead = False  # whether the values of all directions are loaded before any is used

    def __init__(
        self, role: str, equations: str, fluid: FluidKernels, parity: int,
        phase: Phase = "boundary", over: str = "entries",
    ):  # fmt: skip
        super().__init__(role, over, equations, parity=parity, phase=phase)
        self.sizes(fluid.grid)
        self.listed = fluid.grid.over == "nodes"
        self.directions = fluid.lattice.Q
        self.grid_over = fluid.grid.over  # "cells" or "nodes": what `cells` lists
        self.entry = entry_place(self.grid_over, self.cell, "cells[entry]")
        self.incoming: dict = {}
        self.put: dict[int, str] = {}  # C text that stores an incoming population, {} its name
        self.target = ""  # the array that `put` writes
        self.following: dict = {}  # index of a value of the state: its value for the next step
        self.links = LINKS.format("entry")
        for argument, type in LIST.items():
            self.argument(argument, type)

    def unstaged(self) -> None:
        """Remove the places in the staging array, for entries that are written directly."""
        self.links = "const uint32 links = missing[entry];"
        del self.arguments["start"]

    def enter_all(self, lowest: int, value: str) -> None:
        """Read what all entries of a cell have staged into arrives_i, i >= `lowest`."""
        self.argument("head", "int32*")
        self.argument("following", "int32*")
        self.do("for (int32 k = head[entry]; k >= 0; k = following[k]) {{")
        self.do(LINKS.format("k"))
        for i in range(lowest, self.directions):
            self.do(f"if ({listed(i)}) arrives_{i} = {value.format(staged(i))};")
        self.do("}}")

    def per_entry(self, name: str, type: str) -> str:
        """Declare an array of the list's own; returns the C text of the entry's value."""
        if "own_first" not in self.arguments:
            self.argument("own_first", "int64")
            self.entry = f"const int64 {OWN} = entry - own_first;\n{self.entry}"
        self.argument(name, type)
        return f"{name}[{OWN}]"

    def state(self, k: int, count: int) -> str:
        """C text of the index of value k of the entry's state."""
        self.per_entry("state", "real*")
        return f"{OWN} * {count} + {k}"

    def body(self):
        """Values that only one direction uses are computed inside its block."""
        lines = [*self.entry.splitlines(), self.links]
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

    def by_direction(self, wanted: dict[int, list], always=()) -> tuple[list[str], dict, list]:
        """Definitions for all directions; {i: (definitions, values)}; the values of `always`.

        `wanted`: the expressions of each direction. What only one direction uses is among its own
        definitions.
        """
        names = list(self.definitions)
        flat = [value for values in wanted.values() for value in values]
        temporaries, reduced = share([self.definitions[n] for n in names] + flat + list(always))
        known = dict(temporaries) | dict(zip(names, reduced, strict=False))
        remaining = iter(reduced[len(names) :])
        each = {i: [next(remaining) for _ in values] for i, values in wanted.items()}
        common = list(remaining)
        users = Counter(s for values in each.values() for s in _used(values, known))
        shared = sorted((s for s, count in users.items() if count > 1), key=str)
        done: set = set()
        lines: list[str] = []
        for value in (*shared, *common):
            self._define(value, known, done, lines)
        blocks: dict[int, tuple[list[str], list]] = {}
        for i, values in each.items():
            mine: list[str] = []
            own = set(done)
            if self.ahead:
                lines += self._loaded_ahead(i, _used(values, known), own)
            for value in values:
                self._define(value, known, own, mine)
            blocks[i] = mine, values
        return lines, blocks, common

    def missing(self, i: int) -> Any:
        """The offset of the neighbour that is missing if direction i is listed; None: unknown."""
        return None

    def _loaded_ahead(self, i: int, names: set, done: set) -> Iterator[str]:
        """Definitions of the values that only direction i loads, without a branch around them."""
        for name in sorted(names - done, key=str):
            load = self.loads.get(name)
            if isinstance(load, Load) and (always := load.where(listed(i), self.missing(i))):
                done.add(name)
                yield f"const real {name} = {always};"

    def wrap(self, body):
        """Declare the writes of incoming populations and of the state."""
        self.written |= {self.target} if self.incoming else set()
        self.written |= {"state"} if self.following else set()
        return super().wrap(body)


def _used(expressions: list, known) -> set:
    """All symbols that expressions need, through the definitions of others."""
    needed: set = set()
    todo = [name for expression in expressions for name in expression.free_symbols]
    while todo:
        name = todo.pop()
        if name not in needed:
            needed.add(name)
            todo += known[name].free_symbols if name in known else ()
    return needed
