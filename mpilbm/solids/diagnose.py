"""Detects suspicious or invalid geometry in each slab; geometry_findings reports it."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.model.case import Case
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.boundaries import Boundary
from mpilbm.physics.boundaries.wall import Wall
from mpilbm.physics.boundary_capabilities import FaceFlow
from mpilbm.physics.lattices import AXES
from mpilbm.solids import isolated_fluid, narrow_channels, wall_motion
from mpilbm.solids.cell_counts import CELLS, NO_CELLS, CellCount, cells_of_bodies
from mpilbm.solids.entry_list import EntryList
from mpilbm.solids.solids import neighbours


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The diagnosis of a slab.

    fluid       number of fluid cells
    bodies      number of cells of each body
    wall_links  number of links to no-slip walls
    gaps        fluid cells between two solids or faces
    narrow      fluid cells in narrow channels, see narrow_channels
    overlaps    {(j, k): cells of body j that belong to body k instead}
    faces       {(face, k): cells of body k in the layer next to the face}
    fallbacks   {(name of the boundary, fallback): number of links or cells}
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
    through: dict[int, tuple[int, str]] = field(default_factory=dict)
    part: isolated_fluid.Part | None = None


def find(
    case: Case, slab: Slab, ids: NDArray[Any], lists: Sequence[EntryList], overlaps: dict
) -> Diagnosis:
    """Return the diagnosis of a slab from its entry lists and ids, see solids.padded_ids."""
    solid = ids[1:-1]
    thin = min(case.domain.size) == 1
    found = Diagnosis(
        fluid=int(solid.size - np.count_nonzero(solid)),
        wall_links=sum(_wall_links(each) for each in lists),
        fallbacks=_fallbacks(lists),
        gaps=_gaps(case, slab, ids, thin) if case.bodies or thin else NO_CELLS,
        narrow=narrow_channels.count(case, slab, ids),
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
    """The number of links of a list to no-slip walls."""
    drags = np.array([isinstance(each, Wall) for each in entries.boundaries], bool)
    whole = entries.boundary.capabilities.whole_cell
    links = entries.blocked if whole else entries.links
    return links[drags[entries.member]].moving().total()


def _fallbacks(lists: Sequence[EntryList]) -> dict[tuple[str, str], int]:
    """{(name, fallback): number of links or cells}, without zeros."""
    found: Counter[tuple[str, str]] = Counter()
    for each in lists:
        for fallback, count in each.fallbacks.items():
            if count:
                found[each.boundary.name, fallback] += count
    return dict(found)


def _marked(lists: Sequence[EntryList]) -> dict[str, NDArray[np.int64]]:
    """Cells at boundaries with a property, {name: int64 (n,)}.

    driven  the boundary may drive the fluid
    given   the boundary prescribes a velocity through a face
    free    the flow determines the velocity through a face
    """
    conditions: dict[str, Callable[[Boundary], bool]] = {
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


def _drives(boundary: Boundary) -> bool:
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
                beside = [neighbours(case, slab.begin + begin, around, c)
                          for c in case.lattice.stencil if sign * c[axis] > 0]  # fmt: skip
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
