"""Kernels over boundary entries, which compute and write the incoming populations.

They are staged and written by another kernel or, where no other entry accesses their places,
written directly.
"""

from dataclasses import replace

from sympy import sympify

from mpilbm.codegen.boundary_cell import BoundaryCell, CellView, Listed
from mpilbm.codegen.entries import EntryText, listed, staged
from mpilbm.codegen.kernels import FieldKernels, FluidKernels
from mpilbm.codegen.program import Access
from mpilbm.layouts import HERE


def stage_kernel(of: Listed) -> EntryText:
    """Compute the incoming populations of a list into the staging array."""
    fluid, title = of.fluid, f"{of.boundary.name}: {type(of.boundary).__doc__}"
    kernel = EntryText(of.name, title, fluid, of.parity)
    array, store = ("store*", "STORE_HERE") if fluid.layout.populations else ("real*", "STORE_REAL")
    kernel.argument("staging", array)
    kernel.target = "staging"
    kernel.put = {i: f"{store}(staging, {staged(i)}, {{}});" for i in range(fluid.lattice.Q)}
    return _incoming(kernel, of)


def at_once_kernel(of: Listed) -> EntryText:
    """Write the incoming populations directly to where the next step gathers them."""
    title = f"{of.boundary.name}: outgoing populations return along their links"
    kernel, fluid = EntryText(f"{of.name}_at_once", title, of.fluid, of.parity), of.fluid
    kernel.unstaged()
    kernel.argument("f", "store*")
    kernel.target = "f"
    for i in range(1, fluid.lattice.Q):
        address = kernel.address(fluid.grid, fluid.layout.gather(fluid.lattice, i, of.parity))
        kernel.put[i] = f"STORE_HERE(f, {address}, {{}});"
    return _incoming(kernel, replace(of, beside=()))


def exchange_kernel(of: Listed) -> EntryText:
    """Exchange the outgoing populations of the cells at both ends of a link."""
    end = "outgoing populations return at both ends of a link that wraps around"
    kernel = EntryText(f"{of.name}_exchange", f"{of.boundary.name}: {end}", of.fluid, of.parity)
    kernel.unstaged()
    kernel.argument("f", "store*")
    lattice, layout, grid = of.fluid.lattice, of.fluid.layout, of.fluid.grid
    for i in (i for i in range(1, lattice.Q) if max(lattice.offset(i)[1:]) > 0):
        here = kernel.address(grid, layout.f_out(lattice, lattice.opp[i], of.parity))
        there = kernel.address(grid, layout.gather(lattice, i, of.parity))
        kernel.do(f"const store here_{i} = {listed(i)} ? f[{here}] : (store)0;")
        kernel.do(f"const store there_{i} = {listed(i)} ? f[{there}] : (store)0;")
        kernel.do(f"if ({listed(i)}) COPY(f, {there}, here_{i});", writes="f")
        kernel.do(f"if ({listed(i)}) COPY(f, {here}, there_{i});", writes="f")
    return kernel


def _incoming(kernel: EntryText, of: Listed) -> EntryText:
    """Let a kernel compute the incoming populations, and the state for the next step."""
    kernel.declare(values="real*", value="int32*")
    cell = BoundaryCell(kernel, of)
    kernel.incoming = {i: sympify(e) for i, e in of.boundary.incoming(cell).items()}
    names = of.boundary.state(of.fluid.lattice)
    following = of.boundary.follow(cell, kernel.incoming) if names else {}
    for k, name in enumerate(names):
        kernel.following[kernel.state(k, len(names))] = sympify(following[name])
    return kernel


def near_kernel(of: Listed) -> EntryText:
    """u of cells, which may lie in the next planes of another slab; for samples also inertia."""
    fluid, title = of.fluid, "u of the outgoing populations of cells away from the wall"
    reach = of.boundary.capabilities.velocities_at or 0
    kernel = EntryText(f"{of.name}_near", title, fluid, of.parity)
    kernel.links = ""
    kernel.argument("near", "real*")
    view = CellView(kernel, of)
    found = [*view.u, *([view.inertia] if of.boundary.capabilities.samples is not None else [])]
    for k, value in enumerate(found):
        kernel.do(f"STORE_REAL(near, entry * {len(found)} + {k}, {{0}});", value, writes="near")
    away = [_read_away(kernel, field, reach) for field in fluid.fields]
    kernel.reads += [access for accesses in away for access in accesses]
    return kernel


def _read_away(kernel: EntryText, field: FieldKernels, reach: int) -> list[Access]:
    """The accesses to a field by a kernel whose cells lie up to `reach` planes from the slab."""
    grid, lattice = field.grid, field.lattice
    seen = [(a.slot, a.offset) for a in kernel.reads if a.buffer == grid.name]
    if grid.turned:  # populations that left towards a solid lie there
        seen += [(lattice.opp[slot], HERE) for slot, _ in seen]
    return [
        Access(grid.name, slot, (plane + side, row, x))
        for slot, (plane, row, x) in seen
        for side in range(-reach, reach + 1)
    ]


def begin_kernel(of: Listed) -> EntryText:
    """The state of a list before the first step, from the outgoing populations of the cells."""
    title = f"{of.boundary.name}: the state before the first step"
    kernel = EntryText(f"{of.name}_begin", title, of.fluid, of.parity)
    kernel.links = ""
    kernel.declare(values="real*", value="int32*")
    names = of.boundary.state(of.fluid.lattice)
    begins = of.boundary.begin(BoundaryCell(kernel, of))
    for k, each in enumerate(names):
        text = f"STORE_REAL(state, {kernel.state(k, len(names))}, {{0}});"
        kernel.do(text, begins[each], writes="state")
    return kernel


def enter_kernel(fluid: FieldKernels, parity: int, lowest: int) -> EntryText:
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


def again_kernel(fluid: FluidKernels, parity: int, lowest: int) -> EntryText:
    """Compute listed cells a second time, in layouts without places for incoming populations."""
    text = "as collide_stream, with the populations that enter at boundaries"
    kernel = EntryText("again", text, fluid, parity, "collide")
    kernel.links = ""
    arrived = kernel.arrived(fluid, parity, lowest, "f_in")
    fluid.store(kernel, parity, fluid.collide(kernel, arrived), "f_out")
    return kernel
