"""Makes the program of a case: the text of all of its kernels."""

from mpilbm.codegen.diagnostics import Diagnostics
from mpilbm.codegen.kernel_text import KernelText
from mpilbm.codegen.kernels import FluidKernels, Options
from mpilbm.codegen.model import Model
from mpilbm.codegen.program import Program
from mpilbm.codegen.scalars.kernels import CarryingDiagnostics, CarryingKernels, ScalarKernels
from mpilbm.codegen.structure import (
    SCALE,
    averaged,
    boundaries,
    head,
    list_name,
    options,
    prelude,
    start,
    wall_effects,
    weighed_boundaries,
)
from mpilbm.model.case import Case
from mpilbm.physics.boundary_capabilities import Behind, Reads
from mpilbm.solids.box_walls import rows_end_in_walls


def build(case: Case) -> Program:
    """Generate the kernels of a case."""
    if case.coupling:
        return _build_coupled(case)
    (fluid,), precision = case.fluids, case.precision
    kernels, diagnostics = _carrying(case) if case.scalars else _single(case)
    texts = [*kernels.all(), *diagnostics.all(), *optional_kernels(case, diagnostics)]
    for parity in range(case.layout.parities):
        texts += list_kernels(case, kernels, parity)
        if isinstance(kernels, CarryingKernels):
            texts += _of_scalars(case, kernels, parity)
    top = head(case) + prelude()
    bodies = {kernel.name: kernel.text() for kernel in texts}
    described = {kernel.name: kernel.kernel() for kernel in texts}
    sweep, sizes = "", None
    if case.layout.sweep and not (fluid.force and fluid.force.by_cell):
        from mpilbm.codegen.sweep.kernel import sweep_sizes, sweep_text

        sizes = sweep_sizes(case.lattice, case.formats)
        sweep = top + sweep_text(kernels.model, case.formats, sizes, described["collide_stream_0"])
    unit, wide = case.formats.unit, case.formats.widest
    more = {} if wide == unit else {"wide": wide}
    return Program(top, bodies, described, precision.compute, unit, sweep, sizes, **more)


def _options_of(case: Case) -> Options:
    """The options of FluidKernels that follow from the box and the precision."""
    half = case.formats.unit == "float16"
    return {
        "paired": case.precision.compute == "float32",
        "unit": SCALE if half else 1,
        "rounded": half,
        "walled": rows_end_in_walls(case),
        "storage": case.precision.storage,
        "periodic": case.domain.periodic[-1],
    }


def _single(case: Case) -> tuple[FluidKernels, Diagnostics]:
    """The kernels of a single fluid."""
    (fluid,), precision = case.fluids, case.precision
    model = Model(case.lattice, fluid.collision, fluid.force, precision.offset)
    options: Options = {**start(fluid), **_options_of(case)}
    kernels = FluidKernels(model, case.layout, **options)
    return kernels, Diagnostics(kernels)


def _carrying(case: Case) -> tuple[CarryingKernels, CarryingDiagnostics]:
    """The kernels of a fluid that carries scalars."""
    from mpilbm.codegen.scalars.build import carrying_kernels

    (fluid,) = case.fluids
    options: Options = {**start(fluid), **_options_of(case)}
    kernels = carrying_kernels(case, options, _options_of)
    return kernels, CarryingDiagnostics(kernels, case.sloped)


def _of_scalars(case: Case, kernels: CarryingKernels, parity: int) -> list[KernelText]:
    """The kernels of each scalar alone; their names end in its number."""
    found: list[KernelText] = []
    for k, scalar in enumerate(kernels.scalars):
        view = case.of_scalar(k)
        own = scalar.own(parity) + list_kernels(view, scalar, parity)
        own += _flux_kernels(view, scalar, parity) if k in case.needs.transported else []
        for kernel in own:
            kernel.fluid = k + 1
        found += own
    return found


def _flux_kernels(view: Case, scalar: ScalarKernels, parity: int) -> list[KernelText]:
    """The kernels of the fluxes of a scalar through the links of each of its boundaries."""
    from mpilbm.codegen.bodies.forces import sums_kernel
    from mpilbm.codegen.scalars.fluxes import flux_kernel

    found: list[KernelText] = [
        flux_kernel(scalar, boundary, list_name(view, boundary), parity, wall_effects(view))
        for boundary in boundaries(view)
    ]
    return found + ([sums_kernel()] if parity == 0 else [])


def _build_coupled(case: Case) -> Program:
    """Generate the kernels of coupled fluids; names of those of one fluid end in its number."""
    from mpilbm.codegen.coupled.kernels import CoupledDiagnostics, CoupledKernels

    kernels, precision = CoupledKernels(case, averaged(case)), case.precision
    texts = [*kernels.once(), *optional_kernels(case, CoupledDiagnostics(kernels))]
    for parity in range(case.layout.parities):
        texts += kernels.of_all(parity)
        for k, fluid in enumerate(kernels.fluids):
            own = kernels.of_each(k, parity) + list_kernels(case, fluid, parity)
            for kernel in own:
                kernel.fluid = k
            texts += own
    bodies = {kernel.name: kernel.text() for kernel in texts}
    described = {kernel.name: kernel.kernel() for kernel in texts}
    return Program(head(case) + prelude(), bodies, described, precision.compute, precision.storage)


def optional_kernels(case: Case, diagnostics: Diagnostics) -> list[KernelText]:
    """The diagnostic kernels that only some cases need: they take seconds to compile."""
    from mpilbm.codegen.points.kernels import PointKernels
    from mpilbm.codegen.statistics import Samples

    parities = range(case.layout.parities)
    changes, fluxes, points = options(case)[1:]
    found: list[KernelText] = [diagnostics.change(parity) for parity in parities if changes]
    found += [diagnostics.flux(parity) for parity in parities if fluxes]
    at_points = PointKernels(diagnostics)
    found += at_points.basic() + (at_points.others() if points else [])
    found += [diagnostics.transport(case.needs.transported)] if case.needs.transported else []
    return found + (Samples(diagnostics).all() if case.needs.sampled else [])


def list_kernels(case: Case, kernels: FluidKernels, parity: int) -> list[KernelText]:
    """The kernels over boundary lists, for steps of this parity."""
    from mpilbm.codegen import boundary_kernels
    from mpilbm.codegen.bodies import cell_values, forces

    lowest = 0 if any(boundary.capabilities.sets_rest for boundary in boundaries(case)) else 1
    found: list[KernelText] = []
    walls = wall_effects(case)
    for boundary in boundaries(case):
        name = list_name(case, boundary)
        found.append(boundary_kernels.stage_kernel(kernels, boundary, name, parity, walls))
        if boundary.capabilities.reads is Reads.SAME_LINK and case.layout.dense:
            found.append(boundary_kernels.at_once_kernel(kernels, boundary, name, parity))
            if boundary.reflects:
                found.append(boundary_kernels.exchange_kernel(kernels, boundary, name, parity))
        if boundary.capabilities.behind is Behind.VELOCITY:
            found.append(boundary_kernels.near_kernel(kernels, name, parity))
        if boundary.state(case.lattice):
            found.append(boundary_kernels.begin_kernel(kernels, boundary, name, parity, walls))
    take_in = (
        boundary_kernels.enter_kernel if case.layout.populations else boundary_kernels.again_kernel
    )
    found.append(take_in(kernels, parity, lowest))
    for name, boundary in weighed_boundaries(case).items():
        asked = case.needs.split, case.needs.framed
        found.append(forces.force_kernel(kernels, boundary, name, parity, walls, *asked))
    if case.needs.weighed and parity == 0:
        found += [forces.sums_kernel(), cell_values.state_kernel()]
    return found + (
        [cell_values.stress_kernel(kernels, parity, lowest)] if case.needs.split else []
    )
