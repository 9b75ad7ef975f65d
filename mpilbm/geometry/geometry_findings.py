"""Findings in the geometry of the whole box, from what each slab has found (see flaws).

Each function of CHECKS takes a case and the parts of all slabs, from the first on, and returns its
findings. They are the same on any number of ranks, but for those of `idle`.
"""

import numpy as np

from mpilbm.errors import CaseError
from mpilbm.geometry import isolated_fluid as pockets
from mpilbm.geometry import narrow_channels
from mpilbm.geometry.diagnose import is_open
from mpilbm.physics.boundaries.wall import Wall
from mpilbm.physics.lattices import AXES
from mpilbm.units import counted
from mpilbm.verdicts.findings import NOTE, SERIOUS, WARNING, Finding

# shares of the fluid cells in channels of few cells: below the first they are not reported
NEGLIGIBLE, MANY = 0.001, 0.1


def refuse(case, parts) -> None:
    """CaseError for bodies that would move over cells; `parts` of all slabs, from the first on."""
    first: dict[int, str] = {}
    for part in parts:
        for number, (_, sentence) in sorted(part.through.items()):
            first.setdefault(number, sentence)
    if first:
        labels = [case.bodies[number].label for number in sorted(first)]
        lines = [f"body.{label}.boundary.velocity: {first[number]}"
                 for label, number in zip(labels, sorted(first), strict=True)]  # fmt: skip
        raise CaseError(lines, path=case.path)


def findings(case, parts) -> list[Finding]:
    """The findings of all CHECKS; `parts` of all slabs, from the first on."""
    return [found for check in CHECKS for found in check(case, parts)]


def lost_bodies(case, parts) -> list[Finding]:
    """Bodies without cells."""
    if not case.bodies:
        return []
    cells, covered = np.sum([part.bodies for part in parts], axis=0), {}
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
        if not cells[k]
    ]  # fmt: skip


def overlaps(case, parts) -> list[Finding]:
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


def bodies_at_faces(case, parts) -> list[Finding]:
    """Bodies beside faces; serious where they cover a face through which the fluid flows."""
    found, covered, beside = [], {}, {}
    for (face, number), count in _summed(part.faces for part in parts):
        covered[face] = covered.get(face, 0) + count
        beside.setdefault(number, []).append(f"{counted(count, 'cell')} next to the face {face}")
    for number, cells in sorted(beside.items()):
        label = case.bodies[number].label
        found.append(Finding(
            NOTE, f"body.{label}",
            f"has {', '.join(cells)}: the condition of a face holds in its fluid cells alone",
        ))  # fmt: skip
    for index, boundary in enumerate(case.boundaries):
        flows = not (isinstance(boundary, Wall) or boundary.slips or boundary.across)
        for face in boundary.where if flows else ():
            cells = face_cells(case, face)
            if covered.get(face) == cells:
                found.append(Finding(
                    SERIOUS, f"boundary.{index}.where",
                    f"bodies cover all {counted(cells, 'cell')} next to the face {face}: no fluid "
                    f"passes there; leave fluid between the body and the face",
                ))  # fmt: skip
    return found


def face_cells(case, face: str) -> int:
    """Stored cells in the layer next to a face."""
    planes, rows, nx = case.shape
    layer = {"x": planes * rows, "y": planes * nx if case.dimensions == 3 else nx, "z": rows * nx}
    return layer[face[0]]


def gaps(case, parts) -> list[Finding]:
    """Gaps of one cell, with their number and the first place."""
    cells = sum(part.gaps for part in parts)
    if not cells:
        return []
    first = min(part.first_gap for part in parts if part.gaps)
    return [Finding(
        WARNING, "gaps",
        f"{counted(cells, 'fluid cell')} between two solids or faces, the first at "
        f"{place(case, first)}: in a gap of one cell no flow is resolved; refine the box, or "
        "move or close what lies beside it",
    )]  # fmt: skip


def channels(case, parts) -> list[Finding]:
    """Channels of few cells, with their share of the fluid."""
    cells, fluid = (sum(getattr(part, name) for part in parts) for name in ("narrow", "fluid"))
    if cells <= NEGLIGIBLE * fluid:
        return []
    first = min(part.first_narrow for part in parts if part.narrow)
    widest = narrow_channels.WIDEST
    return [Finding(
        SERIOUS if cells > MANY * fluid else WARNING, "channels",
        f"{counted(cells, 'fluid cell')} ({cells / fluid:.1%} of the fluid) in channels 1 to "
        f"{widest} cells wide, the first at {place(case, first)}: where the flow must pass them, "
        "errors of tens of percent are usual; refine the box until channels are 5 cells wide or "
        "more",
    )]  # fmt: skip


def isolated_fluid(case, parts) -> list[Finding]:
    """Fluid that nothing drives, and fluid that an inlet fills but no outlet empties."""
    if any(part.part is None for part in parts):
        return []
    pieces, found = pockets.joined(case, [part.part for part in parts]), []
    count, cells, first = pockets.blocked(pieces)
    if count and any(is_open(boundary) for boundary in case.boundaries):
        found.append(Finding(
            SERIOUS, "boundary",
            f"a velocity is given at a face of {counted(cells, 'fluid cell')} that are cut off "
            f"from every face that lets the fluid out, the first at {place(case, first)}: the mass "
            "there grows or falls without bound; open a passage between the bodies",
        ))  # fmt: skip
    count, cells, first = pockets.isolated(pieces)
    if count and not _moves_anywhere(case):
        found.append(Finding(
            WARNING, "isolated fluid",
            f"{counted(count, 'region')}, {counted(cells, 'cell')} in all, without a link to the "
            f"flow, the first at {place(case, first)}: nothing moves there; fill them with a "
            "solid, or open them",
        ))  # fmt: skip
    return found


def fallbacks(case, parts) -> list[Finding]:
    """Links for which a boundary uses something else than its name says."""
    return [
        Finding(WARNING, f"'{name}' in {counted(count, 'place')}", fallback)
        for (name, fallback), count in _summed(part.fallbacks for part in parts)
    ]


CHECKS = (lost_bodies, bodies_at_faces, isolated_fluid, channels, gaps, fallbacks, overlaps)


def _moves_anywhere(case) -> bool:
    """Whether forces that differ from place to place, or between fluids, move any fluid."""
    forces = [value for fluid in case.fluids if fluid.force for value in fluid.force.value]
    return case.coupling is not None or any(isinstance(value, str) for value in forces)


def idle(fluid_cells) -> list[Finding]:
    """Ranks without fluid; `fluid_cells` of each."""
    ranks = [str(rank) for rank, count in enumerate(fluid_cells) if not count]
    if not ranks or len(ranks) == len(fluid_cells):
        return []
    return [Finding(
        WARNING, "ranks",
        f"the slabs of {len(ranks)} of {len(fluid_cells)} ranks ({', '.join(ranks[:8])}"
        f"{', …' if len(ranks) > 8 else ''}) hold no fluid and only wait; start fewer, or turn "
        "the box so that fluid lies all along its last axis",
    )]  # fmt: skip


def place(case, cell: int) -> str:
    """A cell of the box in words."""
    plane, row, k = (int(n) for n in np.unravel_index(cell, case.shape))
    x = case.lattice.x(plane, row, k)
    at = (x, plane) if case.dimensions == 2 else (x, row, plane)
    return ", ".join(f"{a}={n}" for a, n in zip(AXES, at, strict=False)) + " (counted from 0)"


def _summed(counts) -> list:
    """Items of dicts of counts, added and sorted."""
    total: dict = {}
    for each in counts:
        for key, count in each.items():
            total[key] = total.get(key, 0) + count
    return sorted(total.items())
