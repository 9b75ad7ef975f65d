"""Kernels over boundary entries, which compute and write the incoming populations.

The populations are staged in an array and then written by another kernel or, where no other entry
accesses their places, written directly.
"""

from collections.abc import Collection

from sympy import sympify

from mpilbm.codegen.boundary_cell import BoundaryCell
from mpilbm.codegen.entries import EntryText, listed, staged
from mpilbm.codegen.kernels import FluidKernels
from mpilbm.codegen.program import Access
from mpilbm.layouts import HERE
from mpilbm.physics.boundaries import Condition


def stage_kernel(
    fluid: FluidKernels, boundary: Condition, name: str, parity: int, beside: Collection[str] = ()
) -> EntryText:
    """Compute the incoming populations of a list into the staging array; `beside`: wall_effects."""
    kernel = EntryText(name, f"{boundary.name}: {type(boundary).__doc__}", fluid, parity)
    array, store = ("store*", "STORE_HERE") if fluid.layout.populations else ("real*", "STORE_REAL")
    kernel.argument("staging", array)
    kernel.target = "staging"
    kernel.put = {i: f"{store}(staging, {staged(i)}, {{}});" for i in range(fluid.lattice.Q)}
    return _incoming(kernel, fluid, boundary, parity, beside)


def at_once_kernel(fluid: FluidKernels, boundary: Condition, name: str, parity: int) -> EntryText:
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
        i: f"STORE_HERE(f, {kernel.address(fluid.grid, place)}, {{}});"
        for i in range(1, fluid.lattice.Q)
        for place in [fluid.layout.gather(fluid.lattice, i, parity)]
    }
    return _incoming(kernel, fluid, boundary, parity, ())


def exchange_kernel(fluid: FluidKernels, boundary: Condition, name: str, parity: int) -> EntryText:
    """Exchange the outgoing populations of the cells at both ends of a link."""
    text = f"{boundary.name}: outgoing populations return at both ends of a link that wraps around"
    kernel = EntryText(f"{name}_exchange", text, fluid, parity)
    kernel.unstaged()
    kernel.argument("f", "store*")
    lattice, layout, grid = fluid.lattice, fluid.layout, fluid.grid
    for i in (i for i in range(1, lattice.Q) if max(lattice.offset(i)[1:]) > 0):
        here = kernel.address(grid, layout.f_out(lattice, lattice.opp[i], parity))
        there = kernel.address(grid, layout.gather(lattice, i, parity))
        kernel.do(f"const store here_{i} = {listed(i)} ? f[{here}] : (store)0;")
        kernel.do(f"const store there_{i} = {listed(i)} ? f[{there}] : (store)0;")
        kernel.do(f"if ({listed(i)}) COPY(f, {there}, here_{i});", writes="f")
        kernel.do(f"if ({listed(i)}) COPY(f, {here}, there_{i});", writes="f")
    return kernel


def _incoming(
    kernel: EntryText,
    fluid: FluidKernels,
    boundary: Condition,
    parity: int,
    beside: Collection[str],
) -> EntryText:
    """Let a kernel compute the incoming populations, and the state for the next step."""
    kernel.argument("values", "real*")
    kernel.argument("value", "int32*")
    cell = BoundaryCell(kernel, fluid, boundary, parity, beside)
    kernel.incoming = {i: sympify(e) for i, e in boundary.incoming(cell).items()}
    names = boundary.state(fluid.lattice)
    following = boundary.follow(cell, kernel.incoming) if names else {}
    for k, name in enumerate(names):
        kernel.following[kernel.state(k, len(names))] = sympify(following[name])
    return kernel


def near_kernel(fluid: FluidKernels, name: str, parity: int) -> EntryText:
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


def begin_kernel(
    fluid: FluidKernels, boundary: Condition, name: str, parity: int, beside: Collection[str] = ()
) -> EntryText:
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


def enter_kernel(fluid: FluidKernels, parity: int, lowest: int = 1) -> EntryText:
    """Write staged populations, of directions from `lowest` on, to where the step reads them."""
    text = "the population that enters -> where the next step gathers it"
    kernel = EntryText("enter", text, fluid, parity)
    kernel.argument("staging", "store*")
    kernel.argument("f", "store*")
    for i in range(lowest, fluid.lattice.Q):
        place = fluid.layout.gather(fluid.lattice, i, parity)
        address = kernel.address(fluid.grid, place)
        kernel.do(f"const store f_{i} = {listed(i)} ? staging[{staged(i)}] : (store)0;")
        kernel.do(f"if ({listed(i)}) COPY(f, {address}, f_{i});", writes="f")
    return kernel


def again_kernel(fluid: FluidKernels, parity: int, lowest: int = 1) -> EntryText:
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
