"""Detects suspicious or invalid geometry in each slab, also gaps and narrow channels.

geometry_findings.py reports it for the whole box.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mpilbm.model.case import Case
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.boundaries import Condition
from mpilbm.physics.boundaries.wall import Wall
from mpilbm.physics.boundary_capabilities import FaceFlow
from mpilbm.physics.lattices import AXES
from mpilbm.solids import Flags, Ints, isolated_fluid, wall_motion
from mpilbm.solids.entry_list import EntryList
from mpilbm.solids.solid_cells import (
    CELLS,
    NO_CELLS,
    CellCount,
    cells_of_bodies,
    fluid_planes,
    neighbours,
)

Padding = Literal["wrap"] | tuple[bool, bool]  # periodic, or whether each side is a wall
WIDEST = 3  # cells
STEPS = range(-WIDEST, WIDEST + 1)


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The diagnosis of a slab.

    fluid       number of fluid cells
    bodies      number of cells of each body
    wall_links  number of links to no-slip walls
    gaps        fluid cells between two solids or faces
    narrow      fluid cells in narrow channels, see `_narrow_channels`
    overlaps    {(j, k): cells of body j that belong to body k instead}
    faces       {(face, k): cells of body k in the layer next to the face}
    fallbacks   {(name of the boundary, fallback): number of links or cells}
    inclined    number of cells at inclined walls, see WallSamples.inclined
    curved      number of these at curved walls and next to edges, see WallSamples.curved
    through     see wall_motion.through
    part        see isolated_fluid.labelled
    """

    fluid: int
    bodies: tuple[int, ...] = ()
    wall_links: int = 0
    gaps: CellCount = NO_CELLS
    narrow: CellCount = NO_CELLS
    overlaps: dict[tuple[int, int], int] = field(default_factory=dict)
    faces: dict[tuple[str, int], int] = field(default_factory=dict)
    fallbacks: dict[tuple[str, str], int] = field(default_factory=dict)
    inclined: int = 0
    curved: int = 0
    through: dict[int, tuple[int, str]] = field(default_factory=dict)
    part: isolated_fluid.Part | None = None


def find(
    case: Case, slab: Slab, ids: NDArray[Any], lists: Sequence[EntryList], overlaps: dict
) -> Diagnosis:
    """Return the diagnosis of a slab from its entry lists and ids, see solid_cells.padded_ids."""
    solid = ids[1:-1]
    thin = min(case.domain.size) == 1
    found = Diagnosis(
        fluid=int(solid.size - np.count_nonzero(solid)),
        wall_links=sum(_wall_links(each) for each in lists),
        fallbacks=_fallbacks(lists),
        inclined=sum(int(each.samples.inclined.sum()) for each in lists if each.samples),
        curved=sum(int(each.samples.curved.sum()) for each in lists if each.samples),
        gaps=_gaps(case, slab, ids, thin) if case.bodies or thin else NO_CELLS,
        narrow=_narrow_channels(case, slab, ids),
    )
    if not case.bodies:
        return found
    return replace(
        found,
        bodies=tuple(cells_of_bodies(case, slab, solid).tolist()),
        overlaps=dict(overlaps),
        faces=_faces(case, slab, solid),
        through=wall_motion.through(case, slab, lists),
        part=isolated_fluid.labelled(case, slab, solid, _marked(lists)),
    )


def _wall_links(entries: EntryList) -> int:
    drags = np.array([isinstance(each, Wall) for each in entries.boundaries], bool)
    whole = entries.boundary.capabilities.whole_cell
    links = entries.blocked if whole else entries.links
    return links[drags[entries.member]].moving().total()


def _fallbacks(lists: Sequence[EntryList]) -> dict[tuple[str, str], int]:
    """{(name, fallback): number of links or cells}, without zeros."""
    found: Counter[tuple[str, str]] = Counter()
    for each in lists:
        found.update({(each.boundary.name, key): count for key, count in each.fallbacks.items()})
    return dict(+found)


def _marked(lists: Sequence[EntryList]) -> dict[str, Ints]:
    """Cells at boundaries with a property, {name: int64 (n,)}.

    driven  the boundary may drive the fluid
    given   the boundary prescribes a velocity through a face
    free    the flow determines the velocity through a face
    """
    conditions: dict[str, Callable[[Condition], bool]] = {
        "driven": _drives,
        "given": lambda boundary: boundary.face_flow is FaceFlow.GIVEN,
        "free": lambda boundary: boundary.face_flow is FaceFlow.FREE,
    }
    found = {}
    for name, holds in conditions.items():
        cells = [np.empty(0, np.int64)]
        for each in lists:
            mine = np.array([holds(boundary) for boundary in each.boundaries], bool)
            cells.append(each.cells[mine[each.member]])
        ordered = np.sort(np.concatenate(cells), kind="stable")  # fast, as each list is in order
        found[name] = ordered[np.append(True, ordered[1:] != ordered[:-1])[: ordered.size]]
    return found


def _drives(boundary: Condition) -> bool:
    """Whether a boundary may drive the fluid: all except mirrors and walls at rest."""
    resting = isinstance(boundary, Wall) and boundary.wall_velocity is None
    return not (boundary.mirrors or resting)


def _gaps(case: Case, slab: Slab, ids: NDArray[Any], thin: bool) -> CellCount:
    """Count the fluid cells without fluid on either side along an axis."""
    fluid, found = ids == 0, NO_CELLS
    for local in (-1, slab.planes):
        if slab.global_plane(local) is None:
            fluid[local + 1] = False
    for begin, end in slab.blocks(CELLS):
        around = fluid[begin : end + 2]
        if not thin and around.all():
            continue
        gap = np.zeros(around[1:-1].shape, bool)
        for axis in range(case.lattice.D):
            narrow = around[1:-1].copy()
            for sign in (-1, 1):
                ahead = [c for c in case.lattice.stencil if sign * c[axis] > 0]
                beside = [neighbours(case, slab.begin + begin, around, c) for c in ahead]
                np.greater(narrow, reduce(np.logical_or, beside), out=narrow)
            gap |= narrow
        found += CellCount.of_planes(gap, slab.begin + begin)
    return found


def _faces(case: Case, slab: Slab, solid: NDArray[Any]) -> dict[tuple[str, int], int]:
    """{(face, k): cells of body k in the layer next to the face}, for faces not periodic."""
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


def _narrow_channels(case: Case, slab: Slab, ids: NDArray[Any]) -> CellCount:
    """Count the fluid cells of a slab in channels 1 to 3 cells wide between solids.

    A cell lies in a channel of w cells if, along one axis, it is one of w consecutive fluid cells
    between two solid cells or walls. Planes of other slabs are computed if needed, so the count
    does not depend on the partition. Staggered lattices (D3Q13) are not examined.
    """
    thin, found = min(case.domain.size) <= WIDEST, NO_CELLS
    if case.lattice.staggered or not (thin or ids.any()):
        return found
    walls, ends = _walls(case)
    for begin, end in slab.blocks(CELLS):
        solid = _solid(case, slab, ids, (begin - WIDEST, end + WIDEST), ends)
        if thin or solid.any():
            found += CellCount.of_planes(_narrow(solid, walls, case.dimensions), slab.begin + begin)
    return found


def _walls(case: Case) -> tuple[list[Padding], tuple[bool, bool]]:
    """Return the padding along rows and x, and whether each end of the slowest axis is a wall."""
    faces = {f for b in case.boundaries if isinstance(b, Wall) for f in b.where}
    sides = {axis: (f"{axis}-" in faces, f"{axis}+" in faces) for axis in "xyz"}
    periodic = dict(zip("xyz", case.domain.periodic, strict=False))
    inner: list[Padding] = [
        "wrap" if periodic[axis] else sides[axis] for axis in "yx"[3 - case.dimensions :]
    ]
    return inner, sides["xyz"[case.dimensions - 1]]


def _solid(
    case: Case, slab: Slab, ids: NDArray[Any], span: tuple[int, int], ends: tuple[bool, bool]
) -> Flags:
    """The solid cells of local planes span[0] … span[1] - 1.

    ends: whether the planes beyond the lower and the upper face are walls.
    """
    solid = np.empty((span[1] - span[0], *slab.shape[1:]), bool)
    first, last = max(span[0], 0), min(span[1], slab.planes)
    np.not_equal(ids[1 + first : 1 + last], 0, out=solid[first - span[0] : last - span[0]])
    fluid = fluid_planes(case, slab, ids)
    for local in (*range(span[0], first), *range(last, span[1])):
        inside = slab.global_plane(local) is not None
        solid[local - span[0]] = ~fluid(local) if inside else ends[local > 0]
    return solid


def _narrow(window: Flags, walls: list[Padding], dimensions: int) -> Flags:
    """Cells in narrow channels of a block; the window has WIDEST more planes on each side."""
    planes = len(window) - 2 * WIDEST
    solid = window[WIDEST : WIDEST + planes]
    found = _between({step: window[WIDEST + step :][:planes] for step in STEPS})
    for axis, wall in zip((1, 2)[3 - dimensions :], walls, strict=True):
        along, width = np.moveaxis(solid, axis, 0), [(WIDEST, WIDEST), (0, 0), (0, 0)]
        if wall == "wrap":
            along = np.pad(along, width, mode="wrap")
        else:
            along = np.pad(along, width, constant_values=[wall, (False, False), (False, False)])
        parts = {k: along[WIDEST + k : WIDEST + k + solid.shape[axis]] for k in STEPS}
        found |= np.moveaxis(_between(parts), 0, axis)
    return np.greater(found, solid)


def _between(shifted: dict[int, Flags]) -> Flags:
    """Bool array: cells with solid cells on both sides and at most WIDEST cells between these.

    shifted: {step: solid cells, shifted by the step along the axis}.
    """
    below, above = (_within(shifted, sign) for sign in (-1, 1))
    pairs = zip(below, reversed(above), strict=True)  # steps a and WIDEST + 1 - a
    found: Flags = reduce(np.logical_or, [a & b for a, b in pairs])
    return found


def _within(shifted: dict[int, Flags], sign: int) -> list[Flags]:
    """Bool arrays: cells with a solid cell within 1, 2, … WIDEST steps in one direction."""
    found = [shifted[sign]]
    for k in range(2, WIDEST + 1):
        found.append(found[-1] | shifted[sign * k])
    return found
