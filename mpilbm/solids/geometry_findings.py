"""Findings about the geometry of the whole box, from the diagnoses of all slabs (diagnose.py).

Each function of CHECKS takes a case and the diagnoses of all slabs in order, and returns a list of
findings. Except for `idle`, the findings do not depend on the number of ranks.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mpilbm.core.errors import CaseError
from mpilbm.core.units import counted
from mpilbm.model.case import Case
from mpilbm.model.findings import NOTE, SERIOUS, WARNING, Finding
from mpilbm.physics.boundary_capabilities import FaceFlow
from mpilbm.physics.lattices import AXES
from mpilbm.solids import isolated_fluid as regions
from mpilbm.solids.diagnose import WIDEST, Diagnosis
from mpilbm.solids.solid_cells import NO_CELLS, CellCount

Parts = Sequence[Diagnosis]

# share of the fluid cells that lie in narrow channels: not reported below, serious above
NEGLIGIBLE, MANY = 0.001, 0.1


def refuse(case: Case, parts: Parts) -> None:
    """Raise CaseError for shapes that the cells do not show, and for walls that move inwards.

    The latter are bodies whose wall velocity leads through their surface.
    """
    unseen = [f"body.{body.label}.shape: {problem}"
              for body in case.bodies if body.shape is not None
              for problem in body.shape.problems_in_cells(case)]  # fmt: skip
    if unseen:
        raise CaseError(unseen, path=case.path)
    first: dict[int, str] = {}
    for part in parts:
        for number, (_, sentence) in sorted(part.through.items()):
            first.setdefault(number, sentence)
    if first:
        labels = [case.bodies[number].label for number in sorted(first)]
        lines = [f"body.{label}.boundary.velocity: {first[number]}"
                 for label, number in zip(labels, sorted(first), strict=True)]  # fmt: skip
        raise CaseError(lines, path=case.path)


def findings(case: Case, parts: Parts) -> list[Finding]:
    """Return the findings of all CHECKS; parts: the diagnoses of all slabs, in order."""
    return [found for check in CHECKS for found in check(case, parts)]


def lost_bodies(case: Case, parts: Parts) -> list[Finding]:
    """Bodies without cells."""
    if not case.bodies:
        return []
    cells = np.sum([part.bodies for part in parts], axis=0)
    covered: dict[int, int] = {}
    for (below, _), taken in _summed(part.overlaps for part in parts):
        covered[below] = covered.get(below, 0) + taken
    return [
        Finding(
            SERIOUS, f"body.{body.label}",
            f"has no cells: later bodies cover all of its {counted(covered[k], 'cell')}; remove "
            "it, or move it to the end of the file"
            if k in covered
            else "has no cells: no cell centre lies inside it; enlarge or move it, or refine the "
            "box",
        )
        for k, body in enumerate(case.bodies)
        if not cells[k] and not (body.shape and body.shape.cuts)  # open sheets have none
    ]  # fmt: skip


def overlaps(case: Case, parts: Parts) -> list[Finding]:
    """Bodies that share cells."""
    labels = [body.label for body in case.bodies]
    return [
        Finding(
            NOTE, f"body.{labels[above]}",
            f"shares {counted(count, 'cell')} with body '{labels[below]}': they belong to "
            f"'{labels[above]}', which is later in the file",
        )
        for (below, above), count in _summed(part.overlaps for part in parts)
    ]  # fmt: skip


def bodies_at_faces(case: Case, parts: Parts) -> list[Finding]:
    """Bodies next to faces; serious if they cover a face through which the fluid flows."""
    found: list[Finding] = []
    covered: dict[str, int] = {}
    beside: dict[int, list[str]] = {}
    for (face, number), count in _summed(part.faces for part in parts):
        covered[face] = covered.get(face, 0) + count
        beside.setdefault(number, []).append(f"{counted(count, 'cell')} next to the face {face}")
    for number, cells in sorted(beside.items()):
        label = case.bodies[number].label
        found.append(Finding(
            NOTE, f"body.{label}",
            f"has {', '.join(cells)}: the boundary of a face holds in fluid cells only",
        ))  # fmt: skip
    for index, boundary in enumerate(case.boundaries):
        for face in boundary.where if boundary.face_flow.crosses else ():
            layer = face_cells(case, face)
            if covered.get(face) == layer:
                found.append(Finding(
                    SERIOUS, f"boundary.{index}.where",
                    f"bodies cover all {counted(layer, 'cell')} next to the face {face}: no fluid "
                    f"passes there; leave fluid between the body and the face",
                ))  # fmt: skip
    return found


def face_cells(case: Case, face: str) -> int:
    """The number of stored cells in the layer next to a face."""
    planes, rows, nx = case.shape
    layer = {"x": planes * rows, "y": planes * nx if case.dimensions == 3 else nx, "z": rows * nx}
    return layer[face[0]]


def narrow_passages(case: Case, parts: Parts) -> list[Finding]:
    """Narrow channels, with their share of the fluid, and gaps of one cell; one finding."""
    gaps = sum((part.gaps for part in parts), NO_CELLS)
    narrow = sum((part.narrow for part in parts), NO_CELLS)
    fluid = sum(part.fluid for part in parts)
    gap = f"{counted(gaps.cells, 'fluid cell')} between two solids or faces, {_first(case, gaps)}"
    if narrow.cells <= NEGLIGIBLE * fluid:
        if not gaps.cells:
            return []
        return [Finding(
            WARNING, "gaps",
            f"{gap}: in a gap of one cell no flow is resolved; refine the box, or move the solids "
            "or close the gap",
        )]  # fmt: skip
    unresolved = f"; {gap}, where no flow is resolved" if gaps.cells else ""
    return [Finding(
        SERIOUS if narrow.cells > MANY * fluid else WARNING, "channels",
        f"{counted(narrow.cells, 'fluid cell')} ({narrow.cells / fluid:.1%} of the fluid) in "
        f"channels 1 to {WIDEST} cells wide, {_first(case, narrow)}{unresolved}: "
        "where the flow must pass them, errors of tens of percent are usual; refine the box until "
        "channels are 5 cells wide or more",
    )]  # fmt: skip


def isolated_fluid(case: Case, parts: Parts) -> list[Finding]:
    """Isolated fluid that nothing drives, and fluid with an inlet but no outlet."""
    known = [part.part for part in parts if part.part is not None]
    if len(known) < len(parts):
        return []
    pieces, found = regions.joined(case, known), []
    count, cells = regions.blocked(pieces)
    if count and any(boundary.face_flow is FaceFlow.FREE for boundary in case.boundaries):
        found.append(Finding(
            SERIOUS, "boundary",
            f"a velocity is given at a face of {counted(cells.cells, 'fluid cell')} without a "
            f"connection to a face that lets the fluid out, {_first(case, cells)}: the mass there "
            "grows or falls without bound; open a passage between the bodies",
        ))  # fmt: skip
    count, cells = regions.isolated(pieces)
    if count and not _moves_anywhere(case):
        found.append(Finding(
            WARNING, "isolated fluid",
            f"{counted(count, 'region')}, {counted(cells.cells, 'cell')} in all, without a link to "
            f"the flow, {_first(case, cells)}: nothing moves there; fill them with a solid, or "
            "open them",
        ))  # fmt: skip
    return found


def fallbacks(case: Case, parts: Parts) -> list[Finding]:
    """Links or cells for which a boundary uses a fallback."""
    return [
        Finding(WARNING, f"'{name}' in {counted(count, 'place')}", fallback)
        for (name, fallback), count in _summed(part.fallbacks for part in parts)
    ]


CHECKS = (lost_bodies, bodies_at_faces, isolated_fluid, narrow_passages, fallbacks, overlaps)


def _moves_anywhere(case: Case) -> bool:
    """Whether non-uniform forces or interactions of fluids may move isolated fluid."""
    forces = [value for fluid in case.fluids if fluid.force for value in fluid.force.value]
    uniform = all(isinstance(value, int | float) for value in forces)
    return case.coupling is not None or not uniform


def idle(fluid_cells: Sequence[int]) -> list[Finding]:
    """Ranks without fluid; fluid_cells: the number of fluid cells of each rank."""
    ranks = [str(rank) for rank, count in enumerate(fluid_cells) if not count]
    if not ranks or len(ranks) == len(fluid_cells):
        return []
    return [Finding(
        WARNING, "ranks",
        f"the slabs of {len(ranks)} of {len(fluid_cells)} ranks ({', '.join(ranks[:8])}"
        f"{', …' if len(ranks) > 8 else ''}) hold no fluid and only wait; start fewer, or turn "
        "the box so that fluid lies all along its last axis",
    )]  # fmt: skip


def _first(case: Case, count: CellCount) -> str:
    """Text for the first cell of a count."""
    return "" if count.first is None else f"the first at {place(case, count.first)}"


def place(case: Case, cell: int) -> str:
    """Text for the coordinates of a cell of the box."""
    plane, row, k = (int(n) for n in np.unravel_index(cell, case.shape))
    x = case.lattice.x(plane, row, k)
    at = (x, plane) if case.dimensions == 2 else (x, row, plane)
    return ", ".join(f"{a}={n}" for a, n in zip(AXES, at, strict=False)) + " (counted from 0)"


def _summed(counts: Iterable[Mapping[Any, int]]) -> list[tuple[Any, int]]:
    """The sorted items of the sum of several dicts of counts."""
    total: dict = {}
    for each in counts:
        for key, count in each.items():
            total[key] = total.get(key, 0) + count
    return sorted(total.items())
