"""Kernels for the values of cells next to bodies from which forces are computed."""

from mpilbm.codegen.kernel_text import KernelText
from mpilbm.codegen.kernels import FluidKernels
from mpilbm.codegen.text.entries import EntryText
from mpilbm.physics.algebra import dot, pairs


def state_kernel() -> KernelText:
    """Copy the state of the entries `state_rows` of a list; entry = row * names + name."""
    kernel = KernelText("copy_state", "entries", "state[entry, k] = state_of_step[row, k]")
    more = {"state_rows": "int32*", "state_of_step": "real*", "state": "real*"}
    for name, type in (more | {"names": "int"}).items():
        kernel.argument(name, type)
    kernel.do("const int64 there = state_rows[entry / names] * (int64)names + entry % names;")
    kernel.do("state[entry] = state_of_step[there];", writes="state")
    return kernel


def stress_kernel(fluid: FluidKernels, parity: int, lowest: int) -> EntryText:
    """rho - 1 and the stresses xx, xy, … of each listed cell, with the staged incoming populations.

    sigma_ab = -sum_i c_a c_b (g_i - feq_i(rho, u)), g_i = (f_out_i + f_in_i) / 2, with rho and u of
    g. The mean g includes half of the change of the moments in a collision. Therefore its second
    moments are the momentum flux of the fluid at any relaxation rates, with half of the force.
    """
    model, lattice = fluid.model, fluid.lattice
    text = "rho - 1, -sum c_a c_b (g - feq), g = (f_out + f_in) / 2"
    kernel = EntryText("stress", text, fluid, parity, "other")
    kernel.links = ""
    kernel.argument("staging", "store*" if fluid.layout.populations else "real*")
    kernel.argument("stress", "double*")
    staged = "LOAD(staging, {})" if fluid.layout.populations else "staging[{}]"
    left = fluid.outgoing(kernel, parity)
    for i, f_i in enumerate(fluid.incoming(kernel, parity, "f", "streams")):
        kernel.do(f"real arrives_{i} = {{0}};", f_i)
    kernel.enter_all(lowest, staged)
    g = [kernel.let(f"g_{i}", (out + kernel.load(f"arrived_{i}", f"arrives_{i}")) / 2)
         for i, out in enumerate(left)]  # fmt: skip
    density = kernel.let("density", sum(g))
    rho = kernel.let("rho", model.rest(density))
    momentum = [dot([c[a] for c in lattice.c], g) for a in range(lattice.D)]
    u = model.collision.velocity(momentum, rho)
    u = [kernel.let(f"u_{a}", v) for a, v in zip(model.axes, u, strict=True)]
    feq = model.collision.feq(lattice, density, rho, u)
    lack = [kernel.let(f"lack_{i}", b - a) for i, (a, b) in enumerate(zip(g, feq, strict=True))]
    found = [density if model.offset else density - 1]
    for a, b in pairs(lattice.D):
        found.append(dot([c[a] * c[b] for c in lattice.c], lack))
    for k, value in enumerate(found):
        text = f"COPY(stress, entry * {len(found)} + {k}, (double)({{0}}));"
        kernel.do(text, value, writes="stress")
    return kernel
