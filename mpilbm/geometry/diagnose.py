"""Detects suspicious or invalid geometry in each slab; geometry_findings reports it."""

from dataclasses import dataclass, field

import numpy as np

from mpilbm.geometry import isolated_fluid, narrow_channels, wall_motion
from mpilbm.geometry.solids import neighbours
from mpilbm.physics.boundaries.wall import Wall
from mpilbm.physics.lattices import AXES


@dataclass(frozen=True)
class Flaws:
    """Counts of some planes: fluid cells; cells of each body; links to walls that drag the fluid.

    gaps: fluid cells between two solids or faces, and the first of them (-1: none); narrow: the
    same of narrow_channels; overlaps: cells that body k takes from body j, by (j, k); faces: cells
    of body k in the layer next to a face, by (face, k); fallbacks: links for which a boundary uses
    something else, by its (name, fallback); through: see surfaces.through; part: see
    pockets.labelled. Cells are counted through the whole box, (plane * rows + row) * nx + x.
    """

    fluid: int
    bodies: tuple[int, ...] = ()
    wall_links: int = 0
    gaps: int = 0
    first_gap: int = -1
    narrow: int = 0
    first_narrow: int = -1
    overlaps: dict[tuple[int, int], int] = field(default_factory=dict)
    faces: dict[tuple[str, int], int] = field(default_factory=dict)
    fallbacks: dict[tuple[str, str], int] = field(default_factory=dict)
    through: dict[int, tuple] = field(default_factory=dict)
    part: isolated_fluid.Part | None = None


def find(case, slab, ids, lists, overlaps) -> Flaws:
    """Those of a slab; ids (planes + 2, rows, nx), see solids.padded_ids, and its entry lists."""
    solid = ids[1:-1]
    known = {
        "fluid": int(solid.size - np.count_nonzero(solid)),
        "wall_links": sum(_wall_links(each) for each in lists),
        "fallbacks": _fallbacks(lists),
    }
    narrow = min(case.domain.size) == 1
    gaps = _gaps(case, slab, ids, narrow) if case.bodies or narrow else (0, -1)
    channels = narrow_channels.count(case, slab, ids)
    names = "gaps", "first_gap", "narrow", "first_narrow"
    known |= zip(names, gaps + channels, strict=True)
    if not case.bodies:
        return Flaws(**known)
    ids_of_plane = (
        np.bincount(plane.reshape(-1), minlength=1 + len(case.bodies)) for plane in solid
    )
    cells = sum(ids_of_plane)[1:]
    return Flaws(
        **known,
        bodies=tuple(cells.tolist()),
        overlaps=dict(overlaps),
        faces=_faces(case, slab, solid),
        through=wall_motion.through(case, slab, lists),
        part=isolated_fluid.labelled(case, slab, solid, _marked(lists)),
    )


def _wall_links(entries) -> int:
    """Links of a list to walls that drag the fluid; of boundaries that set whole cells all."""
    drags = np.array([isinstance(each, Wall) for each in entries.members], bool)
    links = entries.blocked if entries.boundary.whole else entries.missing
    links = links[drags[entries.member]] & ~np.uint32(1)
    return int(np.unpackbits(links.view(np.uint8)).sum())


def _fallbacks(lists) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for each in lists:
        for fallback, links in zip(each.boundary.fallbacks, each.fell_back, strict=False):
            if links:
                key = each.boundary.name, fallback
                found[key] = found.get(key, 0) + links
    return found


def _marked(lists) -> dict[str, np.ndarray]:
    """Cells at boundaries by what these do.

    driven: they may drive the fluid; fed: they give a velocity through a face; open: they leave
    the velocity open.
    """
    return {
        name: np.unique(np.concatenate([
            np.empty(0, np.int64),
            *(each.cells[of(each)[each.member]] for each in lists),
        ]))
        for name, of in (("driven", _drives), ("fed", _feeds), ("open", _opens))
    }  # fmt: skip


def _feeds(entries) -> np.ndarray:
    """Of each member of a list whether it is at a face with a velocity through that."""

    def through(boundary) -> bool:
        velocity = getattr(boundary, "velocity", None)
        axes = {AXES.index(face[0]) for face in boundary.where} if velocity else ()
        return any(not isinstance(velocity[a], int | float) or velocity[a] != 0 for a in axes)

    return np.array([through(each) for each in entries.members], bool)


def _opens(entries) -> np.ndarray:
    """Of each member of a list whether it is at a face that leaves the velocity open."""
    return np.array([is_open(each) for each in entries.members], bool)


def is_open(boundary) -> bool:
    """Whether a boundary lets as much fluid in or out as the flow has it."""
    return hasattr(boundary, "rho") and getattr(boundary, "velocity", None) is None


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
