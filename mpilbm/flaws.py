"""What of a geometry is allowed but hardly meant, or refused: found in slabs, told of the box.

What is told is the same on any number of ranks.
"""

from dataclasses import dataclass, field

import numpy as np

from mpilbm import pockets, surfaces
from mpilbm.boundaries.wall import Wall
from mpilbm.errors import CaseError
from mpilbm.lattices import AXES
from mpilbm.solids import neighbours
from mpilbm.units import counted


@dataclass(frozen=True)
class Flaws:
    """Of some planes: fluid cells; gaps of one cell, and the first of them (-1: none).

    overlaps: cells that body k takes from body j, by (j, k); faces: cells of body k in the layer
    next to a face, by (face, k); through: see surfaces.through; part: see pockets.labelled. Cells
    are counted through the whole box, (plane * rows + row) * nx + x.
    """

    fluid: int
    gaps: int = 0
    first_gap: int = -1
    overlaps: dict[tuple[int, int], int] = field(default_factory=dict)
    faces: dict[tuple[str, int], int] = field(default_factory=dict)
    through: dict[int, tuple] = field(default_factory=dict)
    part: pockets.Part | None = None


def find(case, slab, ids, lists, overlaps) -> Flaws:
    """Those of a slab; ids (planes + 2, rows, nx), see solids.padded_ids, and its entry lists."""
    solid = ids[1:-1]
    fluid = int(solid.size - np.count_nonzero(solid))
    narrow = min(case.domain.size) == 1
    if not (case.bodies or narrow):
        return Flaws(fluid)
    gaps, first = _gaps(case, slab, ids, narrow)
    driving = [each.cells[_drives(each)[each.member]] for each in lists]
    driving = np.unique(np.concatenate(driving or [np.empty(0, np.int64)]))
    part = pockets.labelled(case, slab, solid, driving) if case.bodies else None
    through = surfaces.through(case, slab, lists)
    return Flaws(fluid, gaps, first, dict(overlaps), _faces(case, slab, solid), through, part)


def _drives(entries) -> np.ndarray:
    """Of each member of a list whether it may drive the fluid: all but walls at rest."""
    resting = [b.slips or (isinstance(b, Wall) and b.velocity is None) for b in entries.members]
    return ~np.array(resting, bool)


def _gaps(case, slab, ids, narrow: bool) -> tuple[int, int]:
    """Fluid cells with none on either side along an axis, and the first of them."""
    fluid, found, first = ids == 0, 0, -1
    for local in (-1, slab.planes):
        if slab.global_plane(local) is None:
            fluid[local + 1] = False
    for local in range(slab.planes):
        around = fluid[local : local + 3]
        if not narrow and around.all():
            continue
        gap = np.zeros(around[1].shape, bool)
        for axis in range(case.lattice.D):
            open_on = [
                np.any([neighbours(case, slab.begin + local, around, c)
                        for c in case.lattice.beside if sign * c[axis] > 0], axis=0)
                for sign in (-1, 1)
            ]  # fmt: skip
            gap |= around[1] & ~open_on[0] & ~open_on[1]
        cells = np.flatnonzero(gap)
        if cells.size and first < 0:
            first = int(cells[0]) + (slab.begin + local) * gap.size
        found += cells.size
    return found, first


def _faces(case, slab, solid) -> dict[tuple[str, int], int]:
    """Cells of each body in the layer next to each face that is not periodic."""
    layers = {"x-": solid[:, :, :1], "x+": solid[:, :, -1:]}
    if case.dimensions == 3:
        layers |= {"y-": solid[:, :1], "y+": solid[:, -1:]}
    slow = AXES[case.dimensions - 1]
    layers |= {f"{slow}-": solid[:1]} if slab.begin == 0 else {}
    layers |= {f"{slow}+": solid[-1:]} if slab.end == slab.shape[0] else {}
    found = {}
    for face, layer in layers.items():
        if not case.domain.periodic[AXES.index(face[0])]:
            for k in np.unique(layer[layer > 0]).tolist():
                found[face, k - 1] = int(np.count_nonzero(layer == k))
    return found


# ------------------------------------------------------------------------------------------ told


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


def notes(case, parts) -> list[str]:
    """Which bodies share cells with others or take those next to a face, and who has them."""
    labels, lines = [body.label for body in case.bodies], []
    for (below, above), count in _summed(part.overlaps for part in parts):
        lines.append(
            f"bodies '{labels[below]}' and '{labels[above]}' share "
            f"{counted(count, 'cell')}: '{labels[above]}' wins there, it is later in the file"
        )
    for (face, number), count in _summed(part.faces for part in parts):
        lines.append(
            f"body '{labels[number]}' has {counted(count, 'cell')} next to the face {face}: it "
            "wins there, the face's condition holds in the fluid cells alone"
        )
    return lines


def warnings(case, parts) -> list[str]:
    """Gaps of one cell and pockets, with their number and the first place."""
    lines, gaps = [], sum(part.gaps for part in parts)
    if gaps:
        first = min(part.first_gap for part in parts if part.gaps)
        lines.append(
            f"gaps: {counted(gaps, 'fluid cell')} between two solids or faces, the first at "
            f"{place(case, first)}: in a gap of one cell no flow is resolved; refine the box, or "
            "move or close what lies beside it"
        )
    if all(part.part is not None for part in parts) and not _moves_anywhere(case):
        count, cells, first = pockets.pockets(case, [part.part for part in parts])
        if count:
            lines.append(
                f"pockets: {count:,} of fluid, {counted(cells, 'cell')} in all, without a link "
                f"to the flow, the first at {place(case, first)}: nothing moves in them; "
                "fill them with a solid, or open them"
            )
    return lines


def _moves_anywhere(case) -> bool:
    """Whether forces that differ from place to place, or between fluids, move any fluid."""
    forces = [value for fluid in case.fluids if fluid.force for value in fluid.force.value]
    return case.coupling is not None or any(isinstance(value, str) for value in forces)


def idle(fluid_cells) -> list[str]:
    """What to say of ranks without fluid; `fluid_cells` of each."""
    ranks = [str(rank) for rank, count in enumerate(fluid_cells) if not count]
    if not ranks or len(ranks) == len(fluid_cells):
        return []
    return [
        f"ranks: the slabs of {len(ranks)} of {len(fluid_cells)} ranks ({', '.join(ranks[:8])}"
        f"{', …' if len(ranks) > 8 else ''}) hold no fluid, they only wait; start fewer, or turn "
        "the box so that fluid lies all along its last axis"
    ]


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
