"""The plan of `check`: memory, disk space and stability of a run, computed without running it."""

import shutil
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm import codegen
from mpilbm.case import case_findings
from mpilbm.case.model import Case, Fluid
from mpilbm.case.velocity_bounds import largest_speed, require_forces
from mpilbm.case.wall_units import forced_channel
from mpilbm.core.files import hdf5
from mpilbm.core.registry import plugin_errors
from mpilbm.core.units import (
    LENGTH,
    PRESSURE,
    TIME,
    VELOCITY,
    VISCOSITY,
    Units,
    counted,
    in_words,
    reynolds,
)
from mpilbm.model.findings import in_order
from mpilbm.model.fluids import of_fluid
from mpilbm.model.limits import Usable
from mpilbm.parallel.slabs import Slab
from mpilbm.run.preflight import inspection, layout_choice
from mpilbm.run.preflight.idle_threads import idle_threads
from mpilbm.run.preflight.proposal import proposal_lines
from mpilbm.run.preflight.rank_memory import large_arrays, memory_lines, rank_lines, sent_in_a_step
from mpilbm.run.preflight.report import Line, Report
from mpilbm.run.preflight.scalars import scalar_lines
from mpilbm.run.preflight.slab_thickness import thin_slabs
from mpilbm.solids import build, diagnose, geometry_findings, plane_costs
from mpilbm.solids.entry_list import EntryList
from mpilbm.solids.masks import mask_contents, require_masks
from mpilbm.solids.plane_costs import require_planes
from mpilbm.solids.surfaces.findings import VISCOUS
from mpilbm.solver.memory.plan import bytes_needed, limits, more_bytes

GIVEN = "the largest given"  # of the speeds of a case


@plugin_errors()
def plan(case: Case, ranks: int = 1, gpu_memory: float | None = None) -> Report:
    """Plan a run on `ranks` ranks with `gpu_memory` GB (10^9 bytes) each; may raise CaseError.

    The default of `gpu_memory` is the memory of this machine. Arrays that cannot fit are reported
    before the cells are inspected, which would take minutes for a mistyped size.
    """
    hdf5.require()
    report = Report(case.title or case.path.name)
    case, why_layout = _settled(case, ranks, gpu_memory)
    if not _fits(case, plane_costs.slabs(case, ranks), gpu_memory, report):
        report.findings = in_order(case_findings.of_case(case))
        return report
    _require_inputs(case)
    slabs = _slabs(case, ranks)
    cells = _inspect_cells(case)
    initial = inspection.initial_ranges(case)
    fluid_cells = [cells.survey.fluid_cells[slab.begin : slab.end].sum() for slab in slabs]
    found = inspection.inspect(case, cells.parts, initial)
    halo = sent_in_a_step(case, slabs, cells.survey)
    found += thin_slabs(case, slabs, halo[0], gpu_memory) + idle_threads(case, slabs)
    found += [] if gpu_memory else large_arrays(case, slabs, cells.survey)
    report.findings = in_order(found + geometry_findings.idle(fluid_cells))
    report.sections["box"] = box_lines(case, cells.survey, why_layout)
    speed, key = largest_speed(case, initial)
    for fluid in case.fluids:
        usable = partial(inspection.is_usable, case, fluid)
        lines = fluid_lines(case, fluid, speed, f"{GIVEN}: {key}", usable)
        report.sections[f"fluid {fluid.label}".strip()] = lines
    for scalar in case.scalars:
        report.sections[f"scalar {scalar.label}"] = scalar_lines(case, scalar)
    if case.units:
        report.sections["units"] = unit_lines(case, case.units, speed)
        report.sections["proposal"] = proposal_lines(case, case.units, speed, ranks, gpu_memory)
    report.problems += limits(case)
    needs = cells.survey, cells.more_bytes, gpu_memory
    report.sections["ranks"] = rank_lines(case, slabs, halo, *needs, report.problems)
    report.sections["disk"] = disk_lines(case, report.problems)
    if report.runs:
        codegen.generate(case)
    return report


def _fits(case: Case, slabs: tuple[Slab, ...], gpu_memory: float | None, report: Report) -> bool:
    """Whether the arrays of the largest of equal slabs fit the memory; reports it if not."""
    problems: list[str] = []
    lines = memory_lines(case, len(slabs), bytes_needed(case, slabs[0]), gpu_memory, problems)
    if not problems:
        return True
    build.check(case)
    unseen = "not inspected, they do not fit the memory"
    report.sections["box"] = [Line("cells", _cells_text(case), unseen, "poor")]
    report.sections["ranks"] = lines
    report.problems += limits(case) + problems
    return False


def _settled(case: Case, ranks: int, gpu_memory: float | None) -> tuple[Case, str]:
    """The case with the layout that `auto` stands for, and the reason."""
    device = case.backend.device_kind() if gpu_memory is None else "cuda"
    room = case.backend.room() if gpu_memory is None else gpu_memory * 1e9
    largest = max(plane_costs.slabs(case, ranks), key=lambda slab: slab.planes)
    layout, why = layout_choice.choose(case, device, largest, room)
    return layout_choice.with_layout(case, layout), why


def _require_inputs(case: Case) -> None:
    """CaseError for forces that are not finite, and for invalid masks and snapshots."""
    require_forces(case, 0, case.shape[0])
    require_masks(case)
    for fluid in case.fluids:
        fluid.initial.require()


def _slabs(case: Case, ranks: int) -> tuple[Slab, ...]:
    """The slabs of a run; CaseError if one has too few planes."""
    costs = plane_costs.plane_costs(case, 0, case.shape[0]) if ranks > 1 else None
    slabs = plane_costs.slabs(case, ranks, costs)
    for slab in (slabs[0], slabs[-1]):
        require_planes(case, slab)
    return slabs


@dataclass(frozen=True)
class Cells:
    """The results of the inspection of all cells of the box.

    `parts`: see diagnose.find; `more_bytes`: see memory.plan.more_bytes.
    """

    survey: build.Survey
    parts: list
    more_bytes: np.ndarray


def _inspect_cells(case: Case) -> Cells:
    """Inspect all cells; CaseError for an invalid geometry."""
    parts, more = [], []

    def look(
        case: Case,
        slab: Slab,
        ids: NDArray[Any],
        lists: tuple[EntryList, ...],
        overlaps: dict[tuple[int, int], int],
    ) -> None:
        parts.append(diagnose.find(case, slab, ids, lists, overlaps))
        more.append(more_bytes(case, slab, lists))

    survey = build.survey(case, look=look)
    build.require_fluid(case, int(survey.fluid_cells.sum()))
    geometry_findings.refuse(case, parts)
    return Cells(survey, parts, np.concatenate(more))


def _cells_text(case: Case) -> str:
    """The sides of the box and its number of cells."""
    size = " x ".join(map(str, case.domain.size)) + " / 2" * case.lattice.staggered
    return f"{size} = {prod(case.shape):,}"


def box_lines(case: Case, survey: build.Survey, why_layout: str = "") -> list[Line]:
    """Cells, layout, and the links of each boundary and body."""
    cells, fluid = prod(case.shape), int(survey.fluid_cells.sum())
    periodic = [axis for axis, closed in zip("xyz", case.domain.periodic, strict=False) if closed]
    lines = [
        Line("cells", _cells_text(case), case.lattice.name),
        Line("layout", case.layout.name, why_layout),
        Line("fluid", f"{fluid:,}", f"{fluid / cells:.1%} of the box"),
        Line("periodic", ", ".join(periodic) or "no direction"),
    ]
    for boundary, links in zip(case.boundaries, survey.links, strict=True):
        where = " ".join(boundary.where)
        lines.append(Line(f"boundary {where}", counted(links, "link"), boundary.name))
    for k, body in enumerate(case.bodies):
        lines.append(_body_line(case, survey, k))
        masks = [mask_contents(body.mask, case, f"body.{k}.mask")] if body.mask else []
        contents = body.shape.contents() if body.shape else masks
        lines += [Line(f"values of {body.label}", *each) for each in contents]
    return lines


def _body_line(case: Case, survey: build.Survey, number: int) -> Line:
    """Cells and links of a body."""
    body, cells = case.bodies[number], survey.solid_cells[number]
    lost = sum(n for (below, _), n in survey.overlaps.items() if below == number)
    count = f"{counted(cells, 'cell')}, {counted(survey.body_links[number], 'link')}"
    if not cells:
        return Line(f"body {body.label}", count, "has no cells", "poor")
    shared = f"{counted(lost, 'more cell')} of it in a later body" if lost else body.boundary.name
    return Line(f"body {body.label}", count, shared)


def fluid_lines(case: Case, fluid: Fluid, speed: float, source: str, usable: Usable) -> list[Line]:
    """Viscosity, rates, Mach and Reynolds numbers with verdicts; `source`: of what the speed is.

    `usable`: whether advice may name a collision on a lattice.
    """
    judged = {what: Line(what, *rest) for what, *rest in of_fluid(case, fluid, speed, usable)}
    lines = [Line("viscosity", f"{fluid.viscosity:.6g}", "cells^2 per step")]
    lines += [*rheology_lines(case, fluid, speed), judged["tau"]]
    for name, rate in fluid.collision.rates(fluid.viscosity, case.lattice).items():
        lines.append(Line(name, f"{float(rate):.6g}", fluid.collision.name))
    lines += wall_lines(case)
    if not speed:
        return [*lines, Line("speed", "none is given", "Mach and Reynolds number unknown")]
    lines.append(Line("speed", f"{speed:.4g}", f"cells per step, {source}"))
    return [*lines, judged["Mach"], _reynolds_line(case, fluid, speed), judged["grid Reynolds"]]


def rheology_lines(case: Case, fluid: Fluid, speed: float) -> list[Line]:
    """The range of the viscosity of a non-Newtonian fluid, and its viscosity at U / L.

    tau and the grid Reynolds number are those of the least viscosity.
    """
    closure = fluid.collision.closure
    limits = closure.limits() if closure else None
    if closure is None or limits is None:
        return []
    low, high = limits
    note = f"{closure.name}; tau and grid Reynolds for the least, rates for the one above"
    lines = [Line("viscosity range", f"{low:.4g} to {high:.4g}", note)]
    if speed:
        length = fluid.length or min(case.domain.size)
        nu = closure.viscosity(
            case.lattice, {(0, 1): np.array(speed / length / 2)}, fluid.viscosity
        )
        note = f"with the viscosity {nu:.4g} at the shear rate U/L, L = {length:g}"
        lines.append(Line("generalised Re", f"{speed * length / nu:.4g}", note))
    return lines


def wall_lines(case: Case) -> list[Line]:
    """u_tau, Re_tau and y+ of the first cell of a channel that a constant force drives."""
    channel = forced_channel(case)
    if channel is None:
        return []
    coarse = channel.first_y_plus > VISCOUS
    note = f"above {VISCOUS}: the viscous sublayer is not resolved" if coarse else ""
    return [
        Line("u_tau", f"{channel.u_tau:.4g}", "cells per step, from the driving force"),
        Line("Re_tau", f"{channel.re_tau:.4g}", f"u_tau h / nu, h = {channel.h:g} cells"),
        Line("y+ of the first cell", f"{channel.first_y_plus:.3g}", note, "fair" if coarse else ""),
    ]


def _reynolds_line(case: Case, fluid: Fluid, speed: float) -> Line:
    """The Reynolds number of the case or, if none is given, of the shortest side of the box."""
    if fluid.length and fluid.velocity:
        number = reynolds(fluid.viscosity, fluid.length, fluid.velocity)
        note = f"length {fluid.length:g}, velocity {fluid.velocity:g}"
    else:
        number = reynolds(fluid.viscosity, min(case.domain.size), speed)
        note = "of the box: its shortest side, the speed above"
    return Line("Reynolds", f"{number:.6g}", note)


def unit_lines(case: Case, units: Units, speed: float, source: str = GIVEN) -> list[Line]:
    """The lattice units in SI, and the box, the run and the fluids in SI; see fluid_lines."""
    box = " x ".join(f"{units.to_si(n, LENGTH):.6g}" for n in case.domain.size)
    lines = [
        Line("cell", f"{units.cell:.6g} m", f"the box: {box} m"),
        Line("step", f"{units.step:.6g} s", f"the run: {units.to_si(case.run.steps, TIME):.6g} s"),
        Line("velocity 1", f"{units.unit(VELOCITY):.6g} m/s", "one cell per step"),
        Line("rho 1", f"{units.density:.6g} kg/m^3"),
        Line("pressure 1", f"{units.unit(PRESSURE):.6g} Pa", "p = cs2 (rho - 1)"),
    ]
    if speed:
        lines.append(Line("speed", f"{units.to_si(speed, VELOCITY):.6g} m/s", source))
    for fluid in case.fluids:
        nu = units.to_si(fluid.viscosity, VISCOSITY)
        lines.append(Line(f"viscosity {fluid.label}".strip(), f"{nu:.6g} m^2/s"))
    return lines


def disk_lines(case: Case, problems: list[str]) -> list[Line]:
    """The bytes that each output writes until the last step, and whether they fit this disk."""
    lines, total = [], 0
    for output in case.outputs:
        count = output.disk_bytes(case, output.times(0, case.run.steps))
        total += count
        lines.append(Line(output.name, in_words(count), output.how_often(case.run.steps)))
    free = shutil.disk_usage(Path.cwd()).free
    fits = total <= free
    if not fits:
        problems.append(
            f"{case.path}: output: the files need {in_words(total)}, {Path.cwd()} has "
            f"{in_words(free)} free; write less often, or to another disk with --output"
        )
    note = f"{in_words(free)} free here"
    return [*lines, Line("total", in_words(total), note, "good" if fits else "poor")]
