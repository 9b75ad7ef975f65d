"""Code generation: from symbolic models and layouts to one kernel text, kept in the user's cache.

The text contains neither sizes nor numbers of a case. A case that differs in viscosity, size or
velocity therefore finds its kernels in the cache, without importing SymPy. Imports only `physics`,
`layouts`, `links` and lower layers. Newcomers rarely change this folder: a new model in `physics`
or a new layout in `layouts` needs no change here. A new diagnostic field is a method of
`diagnostics.Diagnostics`.
"""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpilbm.codegen.program import POINTS, Program
from mpilbm.layouts.formats import Formats
from mpilbm.links.row_ends import rows_end_in_walls
from mpilbm.physics.boundaries import one_face_each
from mpilbm.physics.boundary_capabilities import Behind, Reads
from mpilbm.physics.couplings import solids
from mpilbm.registry import plugin_errors
from mpilbm.system import cache

# SymPy reads it when it is imported. With its default of 1000 expressions it derives many again.
os.environ.setdefault("SYMPY_CACHE_SIZE", "20000")

if TYPE_CHECKING:  # imports SymPy
    from mpilbm.codegen.diagnostics import Diagnostics
    from mpilbm.codegen.kernel_text import KernelText


def structure(case) -> dict:
    """Everything in a case that changes the kernel text, as plain data."""
    if case.coupling:
        return _coupled_structure(case)
    (fluid,) = case.fluids
    return {
        "lattice": case.lattice.model_dump(),
        "collision": fluid.collision.structure(),
        "forcing": fluid.force and fluid.force.structure(),
        "precision": case.precision.model_dump(),
        "layout": case.layout.structure(),
        "boundaries": boundary_structures(case),
        "beside": wall_effects(case),
        "walled": rows_end_in_walls(case),
        "wrapping": case.domain.periodic[-1],
        "initial": start(fluid),
        "weighed": list(weighed_boundaries(case)),
        "framed": case.framed,
        "split": case.split,
        "optional": _options(case),
    }


def _coupled_structure(case) -> dict:
    """`structure` of coupled fluids."""
    forces = [case.coupling.forcing(fluid) for fluid in case.fluids]
    return {
        "lattice": case.lattice.model_dump(),
        "collisions": [fluid.collision.structure() for fluid in case.fluids],
        "forcing": [force.structure() for force in forces],
        "pushed": [fluid.force is not None for fluid in case.fluids],
        "precision": case.precision.model_dump(),
        "layout": case.layout.structure(),
        "boundaries": boundary_structures(case),
        "beside": wall_effects(case),
        "walled": rows_end_in_walls(case),
        "coupling": case.coupling.structure(case),
        "offsets": case.coupling.offsets(case),
        "masses": len(case.coupling.masses(case)),
        "averaged": averaged(case),
        "periodic": case.domain.periodic,
        "optional": _options(case),
    }


def _options(case) -> list[bool]:
    """Which of the kernels of `_optional` a case has."""
    roles = case.kernel_roles
    return [case.sampled, case.run.compares_velocity, "flux" in roles, POINTS in roles]


def averaged(case) -> bool:
    """Whether the fields in some walls are means over the neighbouring fluid cells."""
    walls = (case.coupling.wall(case, boundary.wetting) for _, boundary in solids(case))
    return any(scale for wall in walls for scale, _ in wall.values())


def start(fluid) -> dict:
    """The options of FluidKernels for the initial state: given stresses, a prescribed velocity."""
    initial = fluid.initial
    return {"stressed": initial.non_equilibrium, "held": initial.iterate > 0}


def boundaries(case) -> list:
    """One boundary for each structure in a case: faces first, by precedence."""
    found: dict[str, object] = {}
    faces = one_face_each(case.boundaries)
    for boundary in (*faces, *(body.boundary for body in case.bodies)):
        found.setdefault(json.dumps(boundary.structure(), sort_keys=True), boundary)
    return list(found.values())


def weighed_boundaries(case) -> dict[str, Any]:
    """One boundary for each structure of the bodies whose forces are measured, by `list_name`."""
    found = (case.bodies[k].boundary for k in case.weighed)
    return {list_name(case, boundary): boundary for boundary in found}


def boundary_structures(case) -> list[dict]:
    """The distinct structures of all boundaries."""
    return [boundary.structure() for boundary in boundaries(case)]


def wall_effects(case) -> list[str]:
    """The properties of walls that kernels of other boundaries in the same cells must include.

    "move": some half-way wall moves; "slip": some wall mirrors populations.
    """
    walls = (*case.boundaries, *(body.boundary for body in case.bodies))
    effects = {
        "move": any(wall.wall_velocity is not None for wall in walls),
        "slip": any(wall.mirrors for wall in walls),
    }
    return [name for name, present in effects.items() if present]


def list_name(case, boundary) -> str:
    """Name of the kernel that stages the incoming populations of boundaries of this structure."""
    return f"enter_{boundary.name}_{boundary_structures(case).index(boundary.structure())}"


def generate(case) -> Program:
    """The kernels of a case, from the cache or generated."""
    return cached(structure(case), lambda: build(case))


def cached(form: dict, build: Callable[[], Program]) -> Program:
    """The program that this plain data determines, from the cache or from `build()`."""
    key = json.dumps([form, cache.package_digest()], sort_keys=True)
    digest = hashlib.sha256(key.encode()).hexdigest()
    found = cache.get("text", digest)
    if found is not None:
        return Program.from_json(found.decode())
    with plugin_errors():
        program = build()
    cache.put("text", digest, program.to_json().encode())
    return program


def build(case) -> Program:
    """Generate the kernels of a case."""
    from mpilbm.codegen.diagnostics import Diagnostics
    from mpilbm.codegen.kernels import FluidKernels
    from mpilbm.codegen.model import Model

    if case.coupling:
        return _build_coupled(case)
    (fluid,), precision = case.fluids, case.precision
    model = Model(case.lattice, fluid.collision, fluid.force, precision.offset)
    half = case.formats.unit == "float16"
    paired = precision.compute == "float32"
    unit = SCALE if half else 1
    more = start(fluid) | {"rounded": half, "walled": rows_end_in_walls(case)}
    more |= {"storage": precision.storage, "periodic": case.domain.periodic[-1]}
    kernels = FluidKernels(model, case.layout, paired=paired, unit=unit, **more)
    diagnostics = Diagnostics(kernels)
    texts = [*kernels.all(), *diagnostics.all(), *_optional(case, diagnostics)]
    for parity in range(case.layout.parities):
        texts += _list_kernels(case, kernels, parity)
    head = _head(case) + prelude()
    bodies = {kernel.name: kernel.text() for kernel in texts}
    described = {kernel.name: kernel.kernel() for kernel in texts}
    sweep, sizes = "", None
    if case.layout.sweep and not (fluid.force and fluid.force.by_cell):
        from mpilbm.codegen.sweep.kernel import sweep_sizes, sweep_text

        sizes = sweep_sizes(case.lattice, case.formats)
        sweep = head + sweep_text(model, case.formats, sizes, described["collide_stream_0"])
    unit, wide = case.formats.unit, case.formats.widest
    more = {} if wide == unit else {"wide": wide}
    return Program(head, bodies, described, precision.compute, unit, sweep, sizes, **more)


def _build_coupled(case) -> Program:
    """As `build`, for coupled fluids; names of kernels of a single fluid end in its number."""
    from mpilbm.codegen.coupled.kernels import CoupledDiagnostics, CoupledKernels

    kernels, precision = CoupledKernels(case, averaged(case)), case.precision
    texts = [*kernels.once(), *_optional(case, CoupledDiagnostics(kernels))]
    for parity in range(case.layout.parities):
        texts += kernels.of_all(parity)
        for k, fluid in enumerate(kernels.fluids):
            own = kernels.of_each(k, parity) + _list_kernels(case, fluid, parity)
            for kernel in own:
                kernel.fluid = k
            texts += own
    bodies = {kernel.name: kernel.text() for kernel in texts}
    described = {kernel.name: kernel.kernel() for kernel in texts}
    return Program(_head(case) + prelude(), bodies, described, precision.compute, precision.storage)


def _optional(case, diagnostics: "Diagnostics") -> list:
    """The diagnostic kernels that only some cases need: they take seconds to compile."""
    from mpilbm.codegen.points.kernels import PointKernels
    from mpilbm.codegen.statistics import Samples

    parities = range(case.layout.parities)
    changes, fluxes, points = _options(case)[1:]
    found = [diagnostics.change(parity) for parity in parities if changes]
    found += [diagnostics.flux(parity) for parity in parities if fluxes]
    found += PointKernels(diagnostics).all() if points else []
    return found + (Samples(diagnostics).all() if case.sampled else [])


def _list_kernels(case, kernels, parity: int) -> list:
    """The kernels over boundary lists, for steps of this parity."""
    from mpilbm.codegen import boundary_kernels
    from mpilbm.codegen.bodies import cell_values, forces

    lowest = 0 if any(boundary.capabilities.whole_cell for boundary in boundaries(case)) else 1
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
        asked = case.split, case.framed
        found.append(forces.force_kernel(kernels, boundary, name, parity, walls, *asked))
    if case.weighed and parity == 0:
        found += [forces.sums_kernel(), cell_values.state_kernel()]
    return found + ([cell_values.stress_kernel(kernels, parity, lowest)] if case.split else [])


def definitions(
    compute: str, formats: Formats, staggered: bool = False, intrinsics: bool = False
) -> str:
    """The definitions before the prelude, for numbers and for stored values of these formats."""
    half = formats.unit == "float16"
    head = f"typedef {_C[compute]} real;\ntypedef {_C[formats.unit]} store;\n"
    head += f"#define WIDE_FORMAT {_C[formats.widest]}\n"
    head += f"#define WIDE_SLOTS {max(formats.widths)}\n"
    head += f"#define STORE_HALF\n#define SCALE {SCALE}\n" if half else "#define SCALE 1\n"
    head += "#define STAGGERED\n" if staggered else ""
    head += "#define REAL_DOUBLE\n" if compute == "float64" else ""
    return head + ("#define INTRINSICS\n" if intrinsics else "")


def _head(case) -> str:
    """The definitions of a case."""
    precision = case.precision
    return definitions(
        precision.compute, case.formats, case.lattice.staggered, precision.intrinsics
    )


SCALE = 2**15  # factor of 16-bit values: small deviations then use the whole range of a half


def prelude() -> str:
    """The text before all kernels: macros, those of CUDA or C, functions, and joint kernels."""
    macros, cuda, c, functions, joint = (
        Path(__file__).with_name(f"prelude{part}.h").read_text()
        for part in ("", "_cuda", "_c", "_functions", "_joint")
    )
    cuda = f"{cuda}#ifdef JOINT\n{flags()}#endif\n"
    joint = f"#ifdef JOINT\n{joint}#endif\n"
    return f"{macros}#ifdef __CUDACC__\n{cuda}#else\n{c}#endif\n\n{functions}{joint}"


def flags() -> str:
    """CUDA text: flags that GPUs set in each other's memory, and what a joint kernel needs."""
    return Path(__file__).with_name("prelude_flags.h").read_text()


_C = {"float16": "unsigned short", "float32": "float", "float64": "double"}
