"""The properties of a case that determine its kernel text, and the text before all kernels."""

import json
from pathlib import Path
from typing import Any

from mpilbm.codegen.program import POINTS
from mpilbm.codegen.scalar_numbers import buoyant, forcing
from mpilbm.layouts.formats import SCALE, Formats
from mpilbm.model.case import BoundedLattice, Case, Fluid
from mpilbm.physics.boundaries import Condition, in_cells, one_face_each
from mpilbm.physics.couplings import solids
from mpilbm.physics.motions import moving, responding
from mpilbm.solids.box_walls import mirrored_faces, rows_end_in_walls
from mpilbm.solids.windows import cut_axes, has_windows


def structure(case: Case) -> dict[str, Any]:
    """Everything in a case that changes the kernel text, as plain data."""
    if case.coupling:
        return _coupled_structure(case)
    (fluid,) = case.fluids
    more = _scalar_structure(case) if case.scalars else {}
    if case.viscosity_value is not None:
        more["viscosity"] = case.viscosity_value.structure()
    more |= {"windows": cut_axes(case) or True} if has_windows(case) else {}
    if case.layout.sweeps(case) and (mirrors := mirrored_faces(case)):
        more["mirrors"] = mirrors
    return more | {
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
        "framed": case.needs.framed,
        "split": case.needs.split,
        "in_cells": _in_cells(case),
        "optional": options(case),
    }


def _scalar_structure(case: Case) -> dict[str, Any]:
    """The part of `structure` that describes the scalars."""
    scheme, bounded = forcing(case), [case.of_scalar(k) for k in range(len(case.scalars))]
    sources = [each.source_value(k, case.labels) for k, each in enumerate(case.scalars)]
    return {
        "scalars": [
            {
                "lattice": scalar.lattice.name,
                "collision": scalar.collision.structure(),
                "label": scalar.label,
                "source": source and source.structure(),
                "materials": bool(case.conductors),
            }
            for scalar, source in zip(case.scalars, sources, strict=True)
        ],
        "buoyant": buoyant(case),
        "scheme": scheme and scheme.structure(),
        "walls_of_scalars": [[boundary_structures(b), rows_end_in_walls(b)] for b in bounded],
        "transported": case.needs.transported,
    }


def _coupled_structure(case: Case) -> dict[str, Any]:
    """Everything in a case of coupled fluids that changes the kernel text, as plain data."""
    assert case.coupling is not None  # else see `structure`
    forces = [force for fluid in case.fluids if (force := case.coupling.forcing(fluid))]
    assert len(forces) == len(case.fluids), "a coupled fluid has a scheme for its force"
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
        "optional": options(case),
    }


def options(case: Case) -> list[bool]:
    """Which of the kernels of `programs.optional_kernels` a case has."""
    roles = case.needs.roles
    return [case.needs.sampled, case.run.compares_velocity, "flux" in roles, POINTS in roles]


def averaged(case: Case) -> bool:
    """Whether the fields in some walls are means over the neighbouring fluid cells."""
    coupling = case.coupling
    assert coupling is not None  # it defines these fields
    walls = (coupling.wall(case, boundary.wetting or {}) for _, boundary in solids(case))
    return any(scale for wall in walls for scale, _ in wall.values())


def start(fluid: Fluid) -> dict[str, bool]:
    """The options of kernels for the initial state: given stresses, a prescribed velocity."""
    initial = fluid.initial
    return {"stressed": initial.non_equilibrium, "held": initial.iterate > 0}


def boundaries(case: BoundedLattice) -> list[Condition]:
    """One boundary for each structure in a case: faces first, by precedence, layers last."""
    found: dict[str, Condition] = {}
    faces = one_face_each(case.boundaries)
    bodies = [body.boundary for body in case.bodies if not body.boundary.conducts]
    layers = [boundary.layer for boundary in bodies if boundary.layer]
    for boundary in (*faces, *bodies, *layers):
        found.setdefault(json.dumps(boundary.structure(), sort_keys=True), boundary)
    return list(found.values())


def weighed_boundaries(case: Case) -> dict[str, Condition]:
    """One boundary for each structure of the bodies whose forces are measured, by `list_name`."""
    found: list[Condition] = [case.bodies[k].boundary for k in case.needs.weighed]
    found += [boundary.layer for boundary in found if boundary.layer]
    on_links = (boundary for boundary in found if not boundary.capabilities.in_cells)
    return {list_name(case, boundary): boundary for boundary in on_links}


def cell_boundary(case: Case) -> Condition | None:
    """The boundary of the bodies that act in cells, which all of them share; None without any."""
    found = (body.boundary for body in case.bodies if body.boundary.capabilities.in_cells)
    return next(found, None)


def _in_cells(case: Case) -> dict[str, Any] | None:
    """The structure of the boundary of bodies that act in cells, and whether one is weighed."""
    boundary = cell_boundary(case)
    if boundary is None:
        return None
    weighed, moves, free = {*case.needs.weighed}, {*moving(case)}, {*responding(case)}
    at_rest = {*in_cells(case)} - moves
    return boundary.structure() | {
        "weighed": bool(weighed & at_rest),
        "moving": bool(moves),
        "moving_weighed": bool(weighed & moves - free),
        "free": bool(free),
    }


def boundary_structures(case: BoundedLattice) -> list[dict[str, Any]]:
    """The distinct structures of all boundaries."""
    return [boundary.structure() for boundary in boundaries(case)]


def wall_effects(case: BoundedLattice) -> list[str]:
    """The properties of walls that kernels of other boundaries in the same cells must include.

    "move": some half-way wall moves; "slip": some boundary reads what another supplies in the same
    cells, such as a mirror, see Capabilities.read_by_others.
    """
    walls = (*case.boundaries, *(body.boundary for body in case.bodies))
    effects = {
        "move": any(wall.wall_velocity is not None for wall in walls),
        "slip": any(_is_read(wall, case) for wall in walls if wall.read_by_others),
    }
    return [name for name, present in effects.items() if present]


def effects_on(boundary: Condition, case: BoundedLattice) -> list[str]:
    """The `wall_effects` that the kernel of a boundary includes.

    One that others read reads mirrors alone: what others supply may not have been staged yet.
    """
    known, mirrors = wall_effects(case), any(each.mirrors for each in case.boundaries)
    left_out = boundary.read_by_others and not mirrors
    return [name for name in known if name != "slip" or not left_out]


def _is_read(wall: Condition, case: BoundedLattice) -> bool:
    """Whether other boundaries may share cells with it: at mirrors, bodies and edges of faces."""
    axes = {face[0] for face in wall.where}
    readers = (each for each in case.boundaries if each.on_site and not each.read_by_others)
    beside = (not axes or axes - {face[0]} for each in readers for face in each.where)
    return wall.mirrors or any(beside)


def list_name(case: BoundedLattice, boundary: Condition) -> str:
    """Name of the kernel that stages the incoming populations of boundaries of this structure."""
    return f"enter_{boundary.name}_{boundary_structures(case).index(boundary.structure())}"


def definitions(
    compute: str, formats: Formats, staggered: bool = False, intrinsics: bool = False
) -> str:
    """The definitions before the prelude, for numbers and for stored values of these formats."""
    half = formats.unit == "float16"
    head = f"typedef {_C[compute]} real;\ntypedef {_C[formats.unit]} store;\n"
    head += f"#define STORE_TWO {_TWO[formats.unit]}\n"
    head += f"#define WIDE_FORMAT {_C[formats.widest]}\n"
    head += f"#define WIDE_SLOTS {max(formats.widths)}\n"
    head += f"#define STORE_HALF\n#define SCALE {SCALE}\n" if half else "#define SCALE 1\n"
    head += "#define STAGGERED\n" if staggered else ""
    head += "#define REAL_DOUBLE\n" if compute == "float64" else ""
    return head + ("#define INTRINSICS\n" if intrinsics else "")


def head(case: Case) -> str:
    """The definitions of a case."""
    precision = case.precision
    return definitions(
        precision.compute, case.formats, case.lattice.staggered, precision.intrinsics
    )


def prelude() -> str:
    """The text before all kernels: macros, those of a language, functions, and joint kernels."""
    macros, cuda, opencl, c, functions, joint = (
        Path(__file__).with_name(f"prelude{part}.h").read_text("utf-8")
        for part in ("", "_cuda", "_opencl", "_c", "_functions", "_joint")
    )
    cuda = f"{cuda}#ifdef JOINT\n{flags()}#endif\n"
    joint = f"#ifdef JOINT\n{joint}#endif\n"
    own = f"#ifdef CUDA_TEXT\n{cuda}#elif defined(__OPENCL_VERSION__)\n{opencl}#else\n{c}#endif\n"
    return f"{macros}{own}\n{functions}{joint}"


def flags() -> str:
    """CUDA text: flags that GPUs set in each other's memory, and what a joint kernel needs."""
    return Path(__file__).with_name("prelude_flags.h").read_text("utf-8")


_TWO = {"float16": "ushort2", "float32": "float2", "float64": "double2"}
_C = {"float16": "unsigned short", "float32": "float", "float64": "double"}
