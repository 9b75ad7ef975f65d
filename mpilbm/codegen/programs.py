"""Makes the program of a case: the text of all of its kernels."""

from dataclasses import replace

from mpilbm.codegen import boundary_kernels, points
from mpilbm.codegen.boundary_cell import Listed
from mpilbm.codegen.cell_values import CellBody
from mpilbm.codegen.coupled_kernels import CoupledDiagnostics, CoupledKernels
from mpilbm.codegen.diagnostics import Diagnostics
from mpilbm.codegen.forces import (
    CellForceText,
    force_kernel,
    state_kernel,
    stress_kernel,
    sums_kernel,
)
from mpilbm.codegen.kernel_text import KernelText
from mpilbm.codegen.kernels import FieldKernels, FluidKernels, Options
from mpilbm.codegen.model import Model
from mpilbm.codegen.moving_bodies import (
    FreeForceText,
    MovingDiagnostics,
    MovingForceText,
    clear_kernel,
    move_kernel,
    moving_text,
    next_kernel,
)
from mpilbm.codegen.program import WHOLE, Program
from mpilbm.codegen.scalar_kernels import CarryingDiagnostics, CarryingKernels, carrying_kernels
from mpilbm.codegen.statistics import Samples
from mpilbm.codegen.structure import (
    SCALE,
    averaged,
    boundaries,
    cell_boundary,
    effects_on,
    head,
    list_name,
    options,
    prelude,
    start,
    weighed_boundaries,
)
from mpilbm.codegen.sums import flux_kernel
from mpilbm.layouts import HERE
from mpilbm.layouts.cells import CellNames
from mpilbm.model.case import BoundedLattice, Case
from mpilbm.physics.boundaries import in_cells
from mpilbm.physics.boundary_capabilities import Reads
from mpilbm.physics.motions import moving, responding
from mpilbm.solids.box_walls import mirrored_faces, rows_end_in_walls
from mpilbm.solids.windows import REACH, cut_axes, has_windows

THERE = CellNames(plane="there_plane", row="there_row", x="there_x")  # a cell of the slab
TYPES = {"plane": "int64", "row": "int", "x": "int"}


def build(case: Case) -> Program:
    """Generate the kernels of a case."""
    texts, model = _coupled(case) if case.coupling else _single(case)
    top, compute = head(case) + prelude(), case.precision.compute
    top += moving_text() if moving(case) else ""
    bodies = {kernel.name: kernel.text() for kernel in texts}
    described = {kernel.name: kernel.kernel() for kernel in texts}
    sweep, sizes = "", None
    if case.layout.sweeps(case):
        from mpilbm.codegen.sweep.kernel import sweep_sizes, sweep_text

        sizes = sweep_sizes(case.lattice, case.formats)
        general, mirrors = described["collide_stream_0"], mirrored_faces(case)
        sweep = top + sweep_text(model, case.formats, sizes, general, mirrors)
    unit, widest = case.formats.unit, case.formats.widest
    wide = "" if widest == unit else widest
    return Program(top, bodies, described, compute, unit, sweep, sizes, wide)


def _options_of(case: BoundedLattice) -> Options:
    """The options of FluidKernels that follow from the box and the precision."""
    half = case.formats.unit == "float16"
    return Options(
        paired=case.precision.compute == "float32",
        unit=SCALE if half else 1,
        rounded=half,
        walled=rows_end_in_walls(case),
        storage=case.precision.storage,
        periodic=case.domain.periodic[-1],
    )


def _single(case: Case) -> tuple[list[KernelText], Model]:
    """The kernels of a single fluid and of the scalars that it carries, and its equations."""
    (fluid,) = case.fluids
    stressed, held = start(fluid).values()
    options = replace(_options_of(case), stressed=stressed, held=held)
    if case.scalars:
        kernels: FluidKernels = carrying_kernels(case, options, _options_of)
        diagnostics: Diagnostics = CarryingDiagnostics(kernels, case.sloped)
    else:
        body = cell_boundary(case)
        model = Model(
            case.lattice,
            fluid.collision,
            fluid.force,
            case.precision.offset,
            body=CellBody(body, moves=bool(moving(case))) if body else None,
            nu=case.viscosity_value,
            cut=cut_axes(case),
        )
        kernels = FluidKernels(model, case.layout, options)
        diagnostics = (MovingDiagnostics if moving(case) else Diagnostics)(kernels)
    texts = [*kernels.all(), *diagnostics.all(), *optional_kernels(case, diagnostics)]
    texts += window_copies(kernels) if has_windows(case) else []
    texts += [next_kernel(), clear_kernel(), move_kernel(kernels)] if moving(case) else []
    for parity in range(case.layout.parities):
        texts += list_kernels(case, kernels, parity) + body_kernels(case, kernels, parity)
        if isinstance(kernels, CarryingKernels):
            texts += _of_scalars(case, kernels, parity)
    return texts, kernels.model


def _of_scalars(case: Case, kernels: CarryingKernels, parity: int) -> list[KernelText]:
    """The kernels of each scalar alone; their names end in its number."""
    found: list[KernelText] = []
    for k, scalar in enumerate(kernels.scalars):
        bounded = case.of_scalar(k)
        own = scalar.own(parity) + list_kernels(bounded, scalar, parity)
        if k in case.needs.transported:
            own += map(flux_kernel, _lists(bounded, scalar, parity))
            own += [sums_kernel()] if parity == 0 else []
        for kernel in own:
            kernel.fluid = k + 1
        found += own
    return found


def _coupled(case: Case) -> tuple[list[KernelText], Model]:
    """The kernels of coupled fluids; names of those of one fluid end in its number."""
    kernels = CoupledKernels(case, averaged(case))
    texts = [*kernels.once(), *optional_kernels(case, CoupledDiagnostics(kernels))]
    for parity in range(case.layout.parities):
        texts += kernels.of_all(parity)
        for k, fluid in enumerate(kernels.fluids):
            own = kernels.of_each(k, parity) + list_kernels(case, fluid, parity)
            own += body_kernels(case, fluid, parity)
            for kernel in own:
                kernel.fluid = k
            texts += own
    return texts, kernels.fluids[0].model


def optional_kernels(case: Case, diagnostics: Diagnostics) -> list[KernelText]:
    """The diagnostic kernels that only some cases need: they take seconds to compile."""
    parities = range(case.layout.parities)
    changes, fluxes, at_points = options(case)[1:]
    found: list[KernelText] = [diagnostics.change(parity) for parity in parities if changes]
    found += [diagnostics.flux(parity) for parity in parities if fluxes]
    found += [points.fields(diagnostics, parity) for parity in parities]
    if at_points:
        outputs = range(diagnostics.output_count)
        found.append(points.gather())
        found += [points.output(diagnostics, k, parity) for parity in parities for k in outputs]
    found += [diagnostics.transport(case.needs.transported)] if case.needs.transported else []
    return found + (Samples(diagnostics).all() if case.needs.sampled else [])


def _lists(case: BoundedLattice, kernels: FieldKernels, parity: int) -> list[Listed]:
    """The boundary lists of a fluid or scalar, one for each structure."""
    return [
        Listed(kernels, b, list_name(case, b), parity, effects_on(b, case))
        for b in boundaries(case)
    ]


def _lowest(case: BoundedLattice) -> int:
    """The lowest direction whose population a boundary supplies: 0 is the one at rest."""
    return 0 if any(boundary.capabilities.sets_rest for boundary in boundaries(case)) else 1


def list_kernels(case: BoundedLattice, kernels: FieldKernels, parity: int) -> list[KernelText]:
    """The kernels over boundary lists, for steps of this parity."""
    found: list[KernelText] = []
    for each in _lists(case, kernels, parity):
        found.append(boundary_kernels.stage_kernel(each))
        if each.boundary.capabilities.reads is Reads.SAME_LINK and case.layout.dense:
            found.append(boundary_kernels.at_once_kernel(each))
            if each.boundary.reflects:
                found.append(boundary_kernels.exchange_kernel(each))
        if each.boundary.capabilities.velocities_at is not None:
            found.append(boundary_kernels.near_kernel(each))
        if each.boundary.state(case.lattice):
            found.append(boundary_kernels.begin_kernel(each))
    if case.layout.populations:
        return [*found, boundary_kernels.enter_kernel(kernels, parity, _lowest(case))]
    assert isinstance(kernels, FluidKernels)  # scalars are stored as populations
    return [*found, boundary_kernels.again_kernel(kernels, parity, _lowest(case))]


def body_kernels(case: Case, kernels: FluidKernels, parity: int) -> list[KernelText]:
    """The kernels of the forces on bodies, for steps of this parity."""
    needs = case.needs
    found: list[KernelText] = [
        force_kernel(
            Listed(kernels, boundary, name, parity, effects_on(boundary, case)),
            needs.split,
            needs.framed,
        )
        for name, boundary in weighed_boundaries(case).items()
    ]
    free = responding(case)
    found += [sums_kernel(), state_kernel()] if (needs.weighed or free) and parity == 0 else []
    if {*needs.weighed} & {*in_cells(case)} - {*moving(case)}:
        found.append(CellForceText(kernels, parity, _lowest(case), needs.framed))
    if {*needs.weighed} & {*moving(case)} - {*free}:
        found.append(MovingForceText(kernels, parity, _lowest(case), framed=False))
    if free:
        found.append(FreeForceText(kernels, parity, _lowest(case)))
    return found + ([stress_kernel(kernels, parity, _lowest(case))] if needs.split else [])


def window_copies(fluid: FluidKernels) -> list[KernelText]:
    """Kernels over a window (solids/windows.py): `gather` from the slab, `scatter` back to it.

    Near the cut, where values are wrong after two steps, `scatter` copies nothing.
    """
    near = " || ".join(
        f"({name} + {REACH} >= cut_{name} && {name} < cut_{name} + {REACH})" for name in TYPES
    )
    gather = _copy(fluid, "gather", "f = whole", "")
    scatter = _copy(fluid, "scatter", "whole = f", f"if ({near}) return;")
    return [gather, scatter]


def _copy(fluid: FluidKernels, role: str, equations: str, first: str) -> KernelText:
    kernel, grid = KernelText(role, fluid.grid.over, equations, phase="copy"), fluid.grid
    whole = replace(grid, name=WHOLE, wraps=None)
    kernel.optional = True
    kernel.sizes(grid)
    kernel.sizes(whole)
    kernel.declare(f="store*", whole="store*")
    if first:
        kernel.do(first)
    for name, type in TYPES.items():
        cut = kernel.argument(f"cut_{name}", type), kernel.argument(f"skipped_{name}", type)
        kernel.do(f"const {type} there_{name} = {name} + ({name} >= {cut[0]} ? {cut[1]} : 0);")
    for slot, _ in fluid.stored_places(0):
        here, there = grid.address(slot, HERE), whole.address(slot, HERE, THERE)
        ends = (WHOLE, there, "f", here) if role == "scatter" else ("f", here, WHOLE, there)
        suffix = kernel.macro("", grid, slot)
        text = "PUT_BITS{0}({1}, {2}, BITS{0}({3}, {4}));".format(suffix, *ends)
        kernel.do(text, writes=ends[0])
    return kernel
