"""What a case would need and how it would behave: a plan with verdicts, and nothing runs."""

import shutil
from dataclasses import dataclass, field
from math import ceil, prod
from pathlib import Path

import numpy as np

from mpilbm import codegen
from mpilbm.case import case_findings
from mpilbm.case.input_fields import require_masks
from mpilbm.case.velocity_bounds import largest_speed, require_forces
from mpilbm.geometry import build, diagnose, geometry_findings, plane_costs
from mpilbm.links.boundary_links import require_planes
from mpilbm.preflight import inspection
from mpilbm.preflight.message_sizes import halo_bytes
from mpilbm.printable import one_line
from mpilbm.registry import plugin_errors
from mpilbm.solver.memory_plan import bytes_needed, limits, more_bytes
from mpilbm.units import (
    LENGTH,
    PRESSURE,
    TIME,
    VELOCITY,
    VISCOSITY,
    counted,
    in_words,
    reynolds,
)
from mpilbm.verdicts.findings import NOTE, SERIOUS, WARNING, Finding, in_order
from mpilbm.verdicts.fluids import of_fluid


@dataclass(frozen=True)
class Line:
    """What, how much, and what to think of it; `level` is good, fair, poor or none."""

    what: str
    value: str
    verdict: str = ""
    level: str = ""


@dataclass
class Report:
    """Lines by section; `problems` are what would stop the run."""

    title: str
    sections: dict[str, list[Line]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def runs(self) -> bool:
        """Whether nothing stands in the way."""
        return not self.problems


@plugin_errors()
def plan(case, ranks: int = 1, gpu_memory: float | None = None) -> Report:
    """Plan a run on so many ranks with `gpu_memory` GB (10^9 bytes) each; may raise CaseError.

    Without it with what this machine has. Arrays that cannot fit are reported before any cell is
    looked at, which would take minutes where a size is mistyped.
    """
    report = Report(case.title or case.path.name)
    if too_large(case, plane_costs.slabs(case, ranks), gpu_memory, report):
        report.findings = in_order(case_findings.of_case(case))
        return report
    require_forces(case, 0, case.shape[0])
    require_masks(case)
    for fluid in case.fluids:
        fluid.initial.require()
    costs = plane_costs.plane_costs(case, 0, case.shape[0]) if ranks > 1 else None
    slabs = plane_costs.slabs(case, ranks, costs)
    for slab in (slabs[0], slabs[-1]):
        require_planes(case, slab)
    parts, more = [], []

    def look(case, slab, ids, lists, overlaps):
        parts.append(diagnose.find(case, slab, ids, lists, overlaps))
        more.append(more_bytes(case, slab, lists))

    survey = build.survey(case, look=look)
    build.require_fluid(case, int(survey.fluid_cells.sum()))
    geometry_findings.refuse(case, parts)
    initial = inspection.initial_ranges(case)
    fluid_cells = [survey.fluid_cells[slab.begin : slab.end].sum() for slab in slabs]
    idle = geometry_findings.idle(fluid_cells)
    report.findings = in_order(inspection.inspect(case, parts, initial) + idle)
    report.sections["box"] = box_lines(case, survey)
    speed = largest_speed(case, initial)
    for fluid in case.fluids:
        report.sections[f"fluid {fluid.label}".strip()] = fluid_lines(case, fluid, speed)
    if case.units:
        report.sections["units"] = unit_lines(case, speed)
    report.problems += limits(case)
    report.sections["ranks"] = rank_lines(
        case, slabs, survey, np.concatenate(more), gpu_memory, report.problems
    )
    report.sections["disk"] = disk_lines(case, report.problems)
    if report.runs:
        codegen.generate(case)
    return report


def too_large(case, slabs, gpu_memory, report: Report) -> bool:
    """Whether the arrays of the largest of equal slabs do not fit; then the report says so."""
    problems: list[str] = []
    lines = memory_lines(case, len(slabs), bytes_needed(case, slabs[0]), gpu_memory, problems)
    if not problems:
        return False
    build.check(case)
    unseen = "not looked at, they do not fit the memory"
    report.sections["box"] = [Line("cells", cells_in_words(case), unseen, "poor")]
    report.sections["ranks"] = lines
    report.problems += limits(case) + problems
    return True


# ------------------------------------------------------------------------------------------- box


def cells_in_words(case) -> str:
    """The box and its cells."""
    size = " x ".join(map(str, case.domain.size)) + " / 2" * case.lattice.staggered
    return f"{size} = {prod(case.shape):,}"


def box_lines(case, survey) -> list[Line]:
    """Cells, and links of each boundary and body."""
    cells, fluid = prod(case.shape), int(survey.fluid_cells.sum())
    periodic = [axis for axis, closed in zip("xyz", case.domain.periodic, strict=False) if closed]
    lines = [
        Line("cells", cells_in_words(case), f"{case.lattice.name}, {case.layout.name}"),
        Line("fluid", f"{fluid:,}", f"{fluid / cells:.1%} of the box"),
        Line("periodic", ", ".join(periodic) or "no direction"),
    ]
    for boundary, links in zip(case.boundaries, survey.links, strict=True):
        where = " ".join(boundary.where)
        lines.append(Line(f"boundary {where}", counted(links, "link"), boundary.name))
    for k, body in enumerate(case.bodies):
        count = f"{counted(survey.solid_cells[k], 'cell')}, {counted(survey.body_links[k], 'link')}"
        lost = sum(n for (below, _), n in survey.overlaps.items() if below == k)
        verdict = (
            f"{counted(lost, 'more cell')} of it in a later body" if lost else body.boundary.name
        )
        if not survey.solid_cells[k]:
            verdict = "has no cells"
        level = "" if survey.solid_cells[k] else "poor"
        lines.append(Line(f"body {body.label}", count, verdict, level))
    return lines


# ----------------------------------------------------------------------------------------- fluid


def fluid_lines(case, fluid, speed: float) -> list[Line]:
    """Viscosity, rates, Mach and Reynolds numbers with verdicts."""
    judged = {what: Line(what, *rest) for what, *rest in of_fluid(case, fluid, speed)}
    lines = [Line("viscosity", f"{fluid.viscosity:.6g}", "cells^2 per step"), judged["tau"]]
    for name, rate in fluid.collision.rates(fluid.viscosity, case.lattice).items():
        lines.append(Line(name, f"{float(rate):.6g}", fluid.collision.name))
    if not speed:
        return [*lines, Line("speed", "none is given", "Mach and Reynolds number unknown")]
    lines.append(judged["Mach"])
    if fluid.length:
        number = reynolds(fluid.viscosity, fluid.length, fluid.velocity)
        note = f"length {fluid.length:g}, velocity {fluid.velocity:g}"
        lines.append(Line("Reynolds", f"{number:.6g}", note))
    else:
        number = reynolds(fluid.viscosity, min(case.domain.size), speed)
        lines.append(Line("Reynolds", f"{number:.6g}", "of the box: its shortest side, this speed"))
    return [*lines, judged["grid Reynolds"]]


def unit_lines(case, speed: float) -> list[Line]:
    """What lattice units are in SI, and what the case is in them."""
    units = case.units
    box = " x ".join(f"{units.to_si(n, LENGTH):.6g}" for n in case.domain.size)
    lines = [
        Line("cell", f"{units.cell:.6g} m", f"the box: {box} m"),
        Line("step", f"{units.step:.6g} s", f"the run: {units.to_si(case.run.steps, TIME):.6g} s"),
        Line("velocity 1", f"{units.unit(VELOCITY):.6g} m/s", "one cell a step"),
        Line("rho 1", f"{units.density:.6g} kg/m^3"),
        Line("pressure 1", f"{units.unit(PRESSURE):.6g} Pa", "p = cs2 (rho - 1)"),
    ]
    if speed:
        lines.append(Line("speed", f"{units.to_si(speed, VELOCITY):.6g} m/s", "the largest given"))
    for fluid in case.fluids:
        nu = units.to_si(fluid.viscosity, VISCOSITY)
        lines.append(Line(f"viscosity {fluid.label}".strip(), f"{nu:.6g} m^2/s"))
    return lines


# ----------------------------------------------------------------------------------------- ranks


def rank_lines(case, slabs, survey, more, gpu_memory, problems: list[str]) -> list[Line]:
    """Planes and bytes of the largest slab, what it sends in a step, and whether it fits."""
    planes = [slab.planes for slab in slabs]
    spread = counted(max(planes), "plane")
    spread = spread if len(set(planes)) == 1 else f"{min(planes)} to {spread}"
    needs = [memory(case, slab, survey, more) for slab in slabs]
    need = max(needs, key=lambda each: sum(each.values()))
    across = f"{spread} across {'xyz'[case.dimensions - 1]}"
    *arrays, total = memory_lines(case, len(slabs), need, gpu_memory, problems)
    middle = slabs[len(slabs) // 2]
    sends, messages = halo_bytes(case, middle, around(middle, survey, case.ghost))
    halo = Line("halo", in_words(sends), f"sent a step, messages: {messages}")
    return [Line("slabs", f"{len(slabs)}", across), *arrays, halo, total]


def memory_lines(case, ranks: int, need, gpu_memory, problems: list[str]) -> list[Line]:
    """Bytes of a rank by what they hold, then in all: do they fit `gpu_memory`, or this machine?"""
    given, total = gpu_memory is not None, sum(need.values())
    room = gpu_memory * 1e9 if given else case.backend.room()
    verdict, level = (f"fits {gpu_memory:g} GB", "good") if given else ("", "")
    if room is not None and total > room:
        verdict, level = "does not fit", "poor"
        has = f"of {gpu_memory:g} GB" if given else f"of {in_words(room)} that this machine has"
        elsewhere = "" if given else "; --gpu-memory GB plans for another one"
        enough = ceil(total / room) * ranks
        more = f"{enough} ranks or more, " if enough <= case.shape[0] else ""
        problems.append(
            f"{case.path}: domain.size: a rank needs {in_words(total)} {has}; use {more}the "
            f"layout 'aa', or a smaller box{elsewhere}"
        )
    lines = [Line(what, in_words(count), "per rank at most") for what, count in need.items()]
    return [*lines, Line("memory", in_words(total), verdict, level)]


def memory(case, slab, survey, more=None) -> dict[str, int]:
    """Bytes of a rank's arrays; without `more`, memory_plan.more_bytes of all planes of the box,
    those of boundaries are left out."""
    need = bytes_needed(case, slab, around(slab, survey, case.ghost))
    if more is not None:
        lists, forces, walls = (int(n) for n in more[slab.begin : slab.end].sum(axis=0))
        need["boundary lists"] = lists
        need |= {"wall cells": walls} if case.coupling else {}
        need |= {"forces on bodies": forces} if case.weighed else {}
    for output in case.outputs:
        if count := output.device_bytes(case, slab.planes):
            need[output.name] = need.get(output.name, 0) + count
    return need


def around(slab, survey, ghost: int) -> list[int]:
    """Fluid cells of each plane of a slab and of some on either side, as Geometry.around."""
    planes = [slab.global_plane(local) for local in range(-ghost - 1, slab.planes + ghost + 1)]
    return [0 if plane is None else int(survey.fluid_cells[plane]) for plane in planes]


# ------------------------------------------------------------------------------------------ disk


def disk_lines(case, problems: list[str]) -> list[Line]:
    """What each output writes until the last step, and whether this disk has room."""
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
    return [*lines, Line("in all", in_words(total), note, "good" if fits else "poor")]


# ------------------------------------------------------------------------------------------ show

COLOURS = {"good": "green", "fair": "yellow", "poor": "red", "": ""}
SEVERITIES = {SERIOUS: "red", WARNING: "yellow", NOTE: ""}


def show(report: Report) -> None:
    """Print the plan, in colours on a terminal; names of the case are printed as they are."""
    from rich.console import Console
    from rich.table import Table

    literal = {"highlight": False, "markup": False, "emoji": False}
    console = Console(**literal)
    if not console.is_terminal:
        console = Console(**literal, width=200)
    console.print(one_line(report.title), style="bold")
    for title, lines in report.sections.items():
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        for line in lines:
            cells = map(one_line, (f"  {line.what}", line.value, line.verdict))
            table.add_row(*cells, style=COLOURS[line.level])
        console.print(one_line(title), style="bold")
        console.print(table)
    for found in report.findings:
        console.print(one_line(found.line), style=SEVERITIES[found.severity])
    for text in report.problems:
        console.print(one_line(f"problem: {text}"), style="red")
    console.print("it would run" if report.runs else "it would not run", style="bold")
