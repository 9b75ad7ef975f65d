"""Findings about the geometry of the whole box, from the diagnoses of all slabs (diagnose.py).

Each function of CHECKS takes a case and the diagnoses of all slabs in order, and yields findings.
Except for `idle`, the findings do not depend on the number of ranks.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    shapes = [(body.label, body.shape) for body in case.bodies if body.shape is not None]
    problems = [
        f"body.{label}.shape: {problem}"
        for label, shape in shapes
        for problem in shape.problems_in_cells(case)
    ]
    if not problems:
        first: dict[int, str] = {}
        for part in parts:
            for number, (_, sentence) in part.through.items():
                first.setdefault(number, sentence)
        problems = [
            f"body.{case.bodies[number].label}.boundary.velocity: {sentence}"
            for number, sentence in sorted(first.items())
        ]
    if problems:
        raise CaseError(problems, path=case.path)


def findings(case: Case, parts: Parts) -> list[Finding]:
    """Return the findings of all CHECKS; parts: the diagnoses of all slabs, in order."""
    return [found for check in CHECKS for found in check(case, parts)]


def lost_bodies(case: Case, parts: Parts) -> Iterator[Finding]:
    """Bodies without cells."""
    covered: Counter[int] = Counter()
    for (below, _), taken in _summed(part.overlaps for part in parts):
        covered[below] += taken
    for k, body in enumerate(case.bodies):
        if any(part.bodies[k] for part in parts) or (body.shape and body.shape.cuts):
            continue  # open sheets have no cells
        if body.motion is not None:
            continue
        why = "no cell centre lies inside it; enlarge or move it, or refine the box"
        if k in covered:
            cells = counted(covered[k], "cell")
            fix = "remove it, or move it to the end of the file"
            why = f"later bodies cover all of its {cells}; {fix}"
        yield Finding(SERIOUS, f"body.{body.label}", f"has no cells: {why}")


def overlaps(case: Case, parts: Parts) -> Iterator[Finding]:
    """Bodies that share cells."""
    for (below, above), count in _summed(part.overlaps for part in parts):
        lower, upper = case.bodies[below].label, case.bodies[above].label
        text = (
            f"shares {counted(count, 'cell')} with body '{lower}': they belong to '{upper}', which "
            "is later in the file"
        )
        yield Finding(NOTE, f"body.{upper}", text)


def bodies_at_faces(case: Case, parts: Parts) -> Iterator[Finding]:
    """Bodies next to faces; serious if they cover a face through which the fluid flows."""
    covered: Counter[str] = Counter()
    beside: dict[int, list[str]] = {}
    for (face, number), count in _summed(part.faces for part in parts):
        covered[face] += count
        beside.setdefault(number, []).append(f"{counted(count, 'cell')} next to the face {face}")
    for number, cells in sorted(beside.items()):
        text = f"has {', '.join(cells)}: the boundary of a face holds in fluid cells only"
        yield Finding(NOTE, f"body.{case.bodies[number].label}", text)
    for index, boundary in enumerate(case.boundaries):
        for face in boundary.where if boundary.face_flow.crosses else ():
            layer = face_cells(case, face)
            if covered[face] == layer:
                text = (
                    f"bodies cover all {counted(layer, 'cell')} next to the face {face}: no fluid "
                    "passes there; leave fluid between the body and the face"
                )
                yield Finding(SERIOUS, f"boundary.{index}.where", text)


def face_cells(case: Case, face: str) -> int:
    """The number of stored cells in the layer next to a face."""
    planes, rows, nx = case.shape
    layer = {"x": planes * rows, "y": planes * nx if case.dimensions == 3 else nx, "z": rows * nx}
    return layer[face[0]]


def narrow_passages(case: Case, parts: Parts) -> Iterator[Finding]:
    """Narrow channels, with their share of the fluid, and gaps of one cell; one finding."""
    gaps = sum((part.gaps for part in parts), NO_CELLS)
    narrow = sum((part.narrow for part in parts), NO_CELLS)
    fluid = sum(part.fluid for part in parts)
    gap = f"{counted(gaps.cells, 'fluid cell')} between two solids or faces, {_first(case, gaps)}"
    if narrow.cells > NEGLIGIBLE * fluid:
        unresolved = f"; {gap}, where no flow is resolved" if gaps.cells else ""
        text = (
            f"{counted(narrow.cells, 'fluid cell')} ({narrow.cells / fluid:.1%} of the fluid) in "
            f"channels 1 to {WIDEST} cells wide, {_first(case, narrow)}{unresolved}: where the "
            "flow must pass them, errors of tens of percent are usual; refine the box until "
            "channels are 5 cells wide or more"
        )
        yield Finding(SERIOUS if narrow.cells > MANY * fluid else WARNING, "channels", text)
    elif gaps.cells:
        text = (
            f"{gap}: in a gap of one cell no flow is resolved; refine the box, or move the solids "
            "or close the gap"
        )
        yield Finding(WARNING, "gaps", text)


def isolated_fluid(case: Case, parts: Parts) -> Iterator[Finding]:
    """Isolated fluid that nothing drives, and fluid with an inlet but no outlet."""
    known = [part.part for part in parts if part.part is not None]
    if len(known) < len(parts):
        return
    pieces = regions.joined(case, known)
    count, cells = regions.blocked(pieces)
    if count and any(boundary.face_flow is FaceFlow.FREE for boundary in case.boundaries):
        text = (
            f"a velocity is given at a face of {counted(cells.cells, 'fluid cell')} without a "
            f"connection to a face that lets the fluid out, {_first(case, cells)}: the mass there "
            "grows or falls without bound; open a passage between the bodies"
        )
        yield Finding(SERIOUS, "boundary", text)
    count, cells = regions.isolated(pieces)
    # non-uniform forces and interactions of fluids may move isolated fluid
    forces = [value for fluid in case.fluids if fluid.force for value in fluid.force.value]
    uniform = all(isinstance(value, int | float) for value in forces)
    if count and case.single_fluid and uniform:
        text = (
            f"{counted(count, 'region')}, {counted(cells.cells, 'cell')} in all, without a link to "
            f"the flow, {_first(case, cells)}: nothing moves there; fill them with a solid, or "
            "open them"
        )
        yield Finding(WARNING, "isolated fluid", text)


def fallbacks(case: Case, parts: Parts) -> Iterator[Finding]:
    """Links or cells for which a boundary uses a fallback."""
    for (name, fallback), count in _summed(part.fallbacks for part in parts):
        yield Finding(WARNING, f"'{name}' in {counted(count, 'place')}", fallback)


CHECKS = (lost_bodies, bodies_at_faces, isolated_fluid, narrow_passages, fallbacks, overlaps)


def idle(fluid_cells: Sequence[int]) -> list[Finding]:
    """Ranks without fluid; fluid_cells: the number of fluid cells of each rank."""
    ranks = [str(rank) for rank, count in enumerate(fluid_cells) if not count]
    if not ranks or len(ranks) == len(fluid_cells):
        return []
    listed = ", ".join(ranks[:8]) + (", …" if len(ranks) > 8 else "")
    text = (
        f"the slabs of {len(ranks)} of {len(fluid_cells)} ranks ({listed}) hold no fluid and only "
        "wait; start fewer, or turn the box so that fluid lies all along its last axis"
    )
    return [Finding(WARNING, "ranks", text)]


def _first(case: Case, count: CellCount) -> str:
    return "" if count.first is None else f"the first at {place(case, count.first)}"


def place(case: Case, cell: int) -> str:
    """Text for the coordinates of a cell of the box."""
    plane, row, k = (int(n) for n in np.unravel_index(cell, case.shape))
    x = case.lattice.x(plane, row, k)
    at = (x, plane) if case.dimensions == 2 else (x, row, plane)
    return ", ".join(f"{a}={n}" for a, n in zip(AXES, at, strict=False)) + " (counted from 0)"


def _summed(counts: Iterable[Mapping[Any, int]]) -> list[tuple[Any, int]]:
    """The sorted items of the sum of several dicts of counts."""
    total: Counter = Counter()
    for each in counts:
        total.update(each)
    return sorted(total.items())
