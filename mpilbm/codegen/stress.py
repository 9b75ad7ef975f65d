"""A kernel over the cells next to bodies: pressure and viscous stress in the current step."""

from mpilbm.codegen.boundary_kernels import EntryText
from mpilbm.codegen.kernels import FluidKernels
from mpilbm.physics.algebra import dot, pairs


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
