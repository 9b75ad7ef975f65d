"""The plan of `check`: memory, disk space and stability of a run, computed without running it."""

import shutil
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm import codegen
from mpilbm.case import case_findings
from mpilbm.case.model import Case
from mpilbm.case.starts import crossings_in, ramps
from mpilbm.case.velocity_bounds import initial_ranges, largest_speed, require_forces
from mpilbm.core.files import hdf5
from mpilbm.core.registry import plugin_errors
from mpilbm.core.units import counted, in_words, tau_from_viscosity
from mpilbm.model.findings import in_order
from mpilbm.parallel.slabs import Slab
from mpilbm.run.preflight import inspection, layout_choice
from mpilbm.run.preflight.expected_speed import Estimate, bandwidth
from mpilbm.run.preflight.rank_memory import large_arrays, memory_lines, rank_lines, sent_in_a_step
from mpilbm.run.preflight.report import GIVEN, Line, Report, fluid_lines, scalar_lines, unit_lines
from mpilbm.run.preflight.slabs import COPY, idle_threads, thin_slabs
from mpilbm.run.proposal.of_case import proposal_lines
from mpilbm.solids import build, diagnose, geometry_findings, plane_costs
from mpilbm.solids.entry_list import EntryList
from mpilbm.solids.masks import mask_contents, require_masks
from mpilbm.solids.plane_costs import require_planes
from mpilbm.solids.shares import Shares
from mpilbm.solver.memory_plan import bytes_needed, limits, more_bytes, weighed_in_cells


@plugin_errors()
def plan(case: Case, ranks: int = 1, gpu_memory: float | None = None) -> Report:
    """Plan a run on `ranks` ranks with `gpu_memory` GB (10^9 bytes) each; may raise CaseError.

    The default of `gpu_memory` is the memory of this machine. Arrays that cannot fit are reported
    before the cells are inspected, which would take minutes for a mistyped size.
    """
    hdf5.require()
    report = Report(case.title or case.path.name)
    equal = plane_costs.slabs(case, ranks)
    device = case.backend.device_kind() if gpu_memory is None else "cuda"
    sweeps = case.backend.sweeps() if gpu_memory is None else layout_choice.would_sweep(case)
    room = case.backend.room() if gpu_memory is None else gpu_memory * 1e9
    given = case
    layout, why_layout = layout_choice.choose(case, device, ranks, room, sweeps)
    case = case.model_copy(update={"layout": layout})
    if not _fits(case, equal, gpu_memory, report):
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
    survey, parts, more = _inspected(case)
    initial = initial_ranges(case)
    fluid_cells = [survey.fluid_cells[slab.begin : slab.end].sum() for slab in slabs]
    found = inspection.inspect(case, parts, initial)
    halo = sent_in_a_step(case, slabs, survey)
    found += thin_slabs(case, slabs, halo[0], gpu_memory) + idle_threads(case, slabs)
    found += [] if gpu_memory else large_arrays(case, slabs, survey)
    report.findings = in_order(found + geometry_findings.idle(fluid_cells))
    report.sections["box"] = box_lines(case, survey, why_layout)
    speed, key = largest_speed(case, initial)
    if device == "cuda":
        counts = int(survey.fluid_cells.sum()), plane_costs.listed(case, survey.body_links)
        report.sections["box"] += _speed_lines(
            (case, given), counts, speed if sweeps else None, slabs, gpu_memory
        )
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
    report.sections["ranks"] = rank_lines(
        case, slabs, halo, survey, more, gpu_memory, report.problems
    )
    report.sections["disk"] = disk_lines(case, report.problems)
    if report.runs:
        codegen.generate(case)
    return report


def _speed_lines(
    cases: tuple[Case, Case],
    counts: tuple[int, int],
    speed: float | None,
    slabs: tuple[Slab, ...],
    gpu_memory: float | None,
) -> list[Line]:
    """The expected speed on GPUs, and what would be faster.

    cases, speed: see Estimate.gain; no speed: the GPU does not sweep. counts: fluid cells, links.
    """
    copy = bandwidth(cases[0].backend) if gpu_memory is None else COPY
    if copy is None:
        return []
    estimate = Estimate(copy * len(slabs), *counts)
    copies = "this GPU" if gpu_memory is None else "an H200"
    lines = estimate.lines(cases[0], f"{copies}, which copies {copy / 1e12:.2g} TB/s", slabs)
    return lines if speed is None else [*lines, *estimate.gain(*cases, speed)]


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


def _inspected(case: Case) -> tuple[build.Survey, list[diagnose.Diagnosis], np.ndarray]:
    """The survey of all cells, the diagnoses, and memory_plan.more_bytes of all planes.

    Raises CaseError for an invalid geometry.
    """
    parts, more = [], []

    def look(
        case: Case,
        slab: Slab,
        ids: NDArray[Any],
        lists: tuple[EntryList, ...],
        overlaps: dict[tuple[int, int], int],
    ) -> None:
        parts.append(diagnose.find(case, slab, ids, lists, overlaps))
        shares = Shares.find(case, slab, ids[1:-1]) if weighed_in_cells(case) else None
        more.append(more_bytes(case, slab, lists, shares))

    survey = build.survey(case, look=look)
    build.require_fluid(case, int(survey.fluid_cells.sum()))
    geometry_findings.refuse(case, parts)
    return survey, parts, np.concatenate(more)


def _cells_text(case: Case) -> str:
    size = " x ".join(map(str, case.domain.size)) + " / 2" * case.lattice.staggered
    return f"{size} = {prod(case.shape):,}"


def box_lines(case: Case, survey: build.Survey, why_layout: str = "") -> list[Line]:
    """Cells, layout, the links of each boundary and body, ramps and sponges."""
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
    return lines + _far_field_lines(case)


def _far_field_lines(case: Case) -> list[Line]:
    """The ramps, in crossings of the box by sound, and the largest tau in each sponge."""
    lines, cs2 = [], case.lattice.cs2
    for key, steps in ramps(case):
        crossings = f"{crossings_in(case, steps):.3g} crossings of the box by sound"
        lines.append(Line(key, counted(steps, "step"), crossings))
    for sponge in case.sponge:
        tau = tau_from_viscosity(case.fluids[0].viscosity + sponge.viscosity, cs2)
        depth = f"{sponge.thickness:g} cells"
        lines.append(Line(f"sponge {' '.join(sponge.where)}", depth, f"tau up to {tau:.4g}"))
    return lines


def _body_line(case: Case, survey: build.Survey, number: int) -> Line:
    body, cells = case.bodies[number], survey.solid_cells[number]
    lost = sum(n for (below, _), n in survey.overlaps.items() if below == number)
    count = f"{counted(cells, 'cell')}, {counted(survey.body_links[number], 'link')}"
    if body.motion is not None:
        return Line(f"body {body.label}", f"moves: {body.motion.name}", body.boundary.name)
    if not cells:
        return Line(f"body {body.label}", count, "has no cells", "poor")
    shared = f"{counted(lost, 'more cell')} of it in a later body" if lost else body.boundary.name
    return Line(f"body {body.label}", count, shared)


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
