"""Data that a boundary reads for each of its links: distance of the wall, cells along the link."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.model.case import BoundedLattice, Surface
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.boundary_capabilities import Behind, LinkValue, PerLink
from mpilbm.solids import Flags, Floats, Ints
from mpilbm.solids.link_set import LinkSet
from mpilbm.solids.missing_links import sheets_of
from mpilbm.solids.owners import Owner, Ownership
from mpilbm.solids.solid_cells import coordinates

LINKS = 2**16  # number of links whose distances are computed at a time

FluidPlane = Callable[[int], Flags]  # local plane, in or beyond the slab -> where it is fluid
SHARP = 0.8  # bend of a surface at an edge: planes at about 45 degrees
ASIDE = 1e-3  # cells between a link and those beside it whose distances give the slope


def fluid_at(fluid: FluidPlane, planes: Ints, numbers: Ints) -> Flags:
    """Whether cells are fluid; cells are given by local plane and row * nx + x in the plane."""
    found = np.zeros(planes.size, bool)
    for local in np.unique(planes):
        mine = np.flatnonzero(planes == local)
        found[mine] = fluid(int(local)).reshape(-1)[numbers[mine]]
    return found


@dataclass(frozen=True, eq=False)
class Links:
    """n links of a slab, in the order in which their populations are staged.

    at              int (n, D), the coordinates (x, y[, z]) of the cells in the full lattice
    c               int (n, D), the directions c_i of the incoming populations
    owner           (n,), the places of the owners
    blocked         bool (n,), whether nothing streams into the cell along c_i; False is possible
                    for boundaries that set the whole cell
    blocked_behind  bool (n,), the same along -c_i
    along           function of k that returns the cells x + k c_i, int64 (n,), and whether these
                    are fluid and not behind a sheet, bool (n,); other cells are replaced by x
    """

    at: Ints
    c: Ints
    owner: Ints
    blocked: Flags
    blocked_behind: Flags
    along: Callable[[int], tuple[Ints, Flags]]


@dataclass(frozen=True, eq=False)
class MirrorSource:
    """The sources of the populations of mirrored links: cells, int64 (n,), and directions (n,).

    These are the cells x - c_i + m and the directions r with c_r = c_i - 2 m, where m is the part
    of c_i along mirrored axes. Cells are numbered as in EntryList.cells, including ghost planes.
    """

    cells: Ints
    direction: Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkData:
    """The data that a boundary reads for each of its n links; None or empty if it reads none.

    distance       float64 (n,), q, the distance to the wall divided by the length of the link
    along_normal   float64 (n,), c_i.n with the normal n of the surface
    linear         bool (n,), whether a cell for the quadratic interpolation is missing
    mirrored_axes  bool (n, D), the axes along which a link is mirrored
    behind         for k = 1, 2 the cells x + k c_i, int64 (n,), including ghost planes
    mirror         sources of mirrored links, in layouts that store fluid cells only
    fallbacks      {sentence: number of links for which it applies}
    """

    distance: Floats | None = None
    along_normal: Floats | None = None
    linear: Flags | None = None
    mirrored_axes: Flags | None = None
    behind: tuple[Ints, ...] = ()
    mirror: MirrorSource | None = None
    fallbacks: dict[str, int] = field(default_factory=dict)

    def only(self, mine: Flags) -> "LinkData":
        """The data of the links where the mask is True."""
        mirror = self.mirror and MirrorSource(self.mirror.cells[mine], self.mirror.direction[mine])
        return replace(
            self,
            distance=None if self.distance is None else self.distance[mine],
            along_normal=None if self.along_normal is None else self.along_normal[mine],
            linear=None if self.linear is None else self.linear[mine],
            mirrored_axes=None if self.mirrored_axes is None else self.mirrored_axes[mine],
            behind=tuple(cells[mine] for cells in self.behind),
            mirror=mirror,
        )


def links_of(
    case: BoundedLattice,
    slab: Slab,
    fluid: FluidPlane,
    ownership: Ownership,
    mine: Any,
    blocked: LinkSet,
) -> Links:
    """Return the links that entries supply; blocked: Ownership.blocked of their cells."""
    lattice, sheets = case.lattice, sheets_of(case, ownership.owners)
    cells, owner = ownership.cells[mine], ownership.owner[mine]
    entry, i = ownership.supplied[mine].unpack()
    at = coordinates(case, slab, cells[entry]).T
    c = np.array(lattice.c, np.int64)[i]
    size, periodic = np.array(case.domain.size), np.array(case.domain.periodic)

    def along(k: int) -> tuple[Ints, Flags]:
        there = at + k * c
        inside = (((there >= 0) & (there < size)) | periodic).all(axis=1)
        planes = there[:, -1] - slab.begin
        row, x = there[:, 1] * (lattice.D == 3) % slab.shape[1], there[:, 0] % size[0]
        number = np.where(inside, row, 0) * slab.shape[2] + np.where(inside, x, 0) // lattice.volume
        found = np.zeros(len(there), bool)
        found[inside] = fluid_at(fluid, planes[inside], number[inside])
        for _, sheet in sheets:
            found &= np.isnan(sheet.first(at.T + 0.5, k * c.T.astype(float)))
        there = planes * slab.shape[1] * slab.shape[2] + number
        return np.where(found, there, cells[entry]), found

    behind = blocked.contains(entry, np.array(lattice.opp)[i])
    return Links(at, c, owner[entry], blocked.contains(entry, i), behind, along)


def link_data(
    case: BoundedLattice,
    slab: Slab,
    per_link: PerLink,
    owners: tuple[Owner, ...],
    links: Links,
    listed: bool,
) -> LinkData:
    """Return the data that `per_link` requires; listed: see Layout.listed.

    q is 1/2 at faces, masks and shapes without a surface. It is replaced by 1/2 where nothing
    streams in from the other side of the cell; except with DISTANCE_CENTRAL, only where q < 1/2.
    DISTANCE_ONLY replaces nothing, and counts links whose cell x + c_i is not fluid.

    For DISTANCE_QUADRATIC `linear` is True where x + c_i or x + 2 c_i is not fluid or lies beyond a
    pressure jump, where the density differs. Links with q = 1/2 are not counted, because linear and
    quadratic interpolation agree there.
    """
    value, planes = per_link.value, 0 if per_link.behind is Behind.NOTHING else 2
    behind = tuple(links.along(k)[0] for k in range(1, 1 + planes))
    if value is LinkValue.NORMAL:
        along = np.ones(len(links.at))
        for shape, some in _with_surface(case, owners, links):
            along[some] = along_normal(shape, links.at[some].T + 0.5, links.c[some].T)
        return LinkData(along_normal=along, behind=behind)
    if value is LinkValue.MIRROR_AXES:
        axes = _crossed(case, links)
        mirror = _mirrored(case, slab, links, axes) if listed else None
        return LinkData(mirrored_axes=axes, behind=behind, mirror=mirror)
    q, linear = _distances(case, owners, links), None
    if value is LinkValue.DISTANCE_ONLY:
        counted = [links.blocked & ~links.along(1)[1]]
    else:
        wrong = q != 0.5 if value is LinkValue.DISTANCE_CENTRAL else q < 0.5
        counted = [wrong & links.blocked_behind]
        q[counted[0]] = 0.5
    if value is LinkValue.DISTANCE_QUADRATIC:
        inside = links.along(1)[1] & links.along(2)[1]
        linear = links.blocked_behind | ~inside | _beyond_jumps(case, links)
        counted.append(linear & (q != 0.5))
    counts = map(int, map(np.count_nonzero, counted))
    fallbacks = dict(zip(per_link.fallbacks, counts, strict=True))
    return LinkData(distance=q, linear=linear, behind=behind, fallbacks=fallbacks)


def _distances(case: BoundedLattice, owners: tuple[Owner, ...], links: Links) -> Floats:
    """Return q where a shape with a surface defines it, otherwise 1/2."""
    q = np.full(len(links.at), 0.5)
    for shape, some in _with_surface(case, owners, links):
        q[some] = shape.distance(links.at[some].T + 0.5, -links.c[some].T)
        turned = np.flatnonzero(_crossed(case, links)[some].any(axis=1))
        q[some[turned]] = _off_mirrors(case, shape, links, some[turned])
    return q


def _with_surface(
    case: BoundedLattice, owners: tuple[Owner, ...], links: Links
) -> Iterator[tuple[Surface, Ints]]:
    """Yield each shape with a surface and the numbers of some of its links, at most LINKS."""
    for owner in owners:
        shape = None if owner.body is None else case.bodies[owner.body].shape
        mine = np.flatnonzero(links.owner == owner.place)
        if shape is None or not shape.has_surface or not mine.size:
            continue
        for begin in range(0, mine.size, LINKS):
            yield shape.in_box(case.domain), mine[begin : begin + LINKS]


def _off_mirrors(case: BoundedLattice, shape: Surface, links: Links, mine: Ints) -> Floats:
    """Return q of links that are reflected at a free-slip face, half-way to the shape."""
    c = links.c[mine]
    start, at_face = links.at[mine] + 0.5, links.at[mine] + 0.5 - c / 2
    after = np.where(_crossed(case, links)[mine], c, -c)
    before, behind = (
        shape.distance(a.T, step.T / 2) / 2 for a, step in ((start, -c), (at_face, after))
    )
    return np.where(shape.inside(*at_face.T), before, 0.5 + behind)


def _crossed(case: BoundedLattice, links: Links) -> Flags:
    """Bool (n, D): the axes along which links leave the box."""
    there, size = links.at - links.c, np.array(case.domain.size)
    return ((there < 0) | (there >= size)) & ~np.array(case.domain.periodic)


def _beyond_jumps(case: BoundedLattice, links: Links) -> Flags:
    """Bool (n,): whether a pressure jump lies between the cells x and x + 2 c_i."""
    joined = {face[0] for each in case.boundaries if each.joins_faces for face in each.where}
    jumps = np.array([axis in joined for axis in "xyz"[: case.dimensions]])
    there = links.at + 2 * links.c
    return (((there < 0) | (there >= np.array(case.domain.size))) & jumps).any(axis=1)


def _mirrored(case: BoundedLattice, slab: Slab, links: Links, axes: Flags) -> MirrorSource:
    """Return the sources of the incoming populations of links mirrored along `axes`."""
    lattice = case.lattice
    m = links.c * axes
    each = 3 ** np.arange(lattice.D)  # (c + 1) @ each numbers the vectors with c_a = -1, 0, 1
    number = np.zeros(3**lattice.D, np.int64)
    number[(np.array(lattice.c) + 1) @ each] = np.arange(lattice.Q)
    direction = number[(links.c - 2 * m + 1) @ each]
    *inner, last = (links.at - links.c + m).T
    inner = [n % size for n, size in zip(inner, case.domain.size, strict=False)]
    row = inner[1] if lattice.D == 3 else 0
    plane = last - slab.begin
    return MirrorSource((plane * slab.shape[1] + row) * slab.shape[2] + inner[0], direction)


def along_normal(shape: Surface, points: NDArray[Any], c: NDArray[Any]) -> Floats:
    """Return c.n, (n,), n being the unit normal, out of the shape, where links leave the shape.

    points, c: (D, n); points are outside the shape, points - c inside. The distances of the surface
    on links beside a link give the slopes of the surface over the plane normal to c, s_k along its
    unit vector k, and c.n = |c| / sqrt(1 + sum_k s_k^2).
    """
    length, middle = np.sqrt((c * c).sum(axis=0)), shape.distance(points, -c)
    slopes = [
        length * _differences(shape, points, c, middle, beside)[0] / ASIDE
        for beside in perpendicular(c / length)
    ]
    return length / np.sqrt(1 + sum(slope**2 for slope in slopes))


def tangent_planes(
    shape: Surface, points: NDArray[Any], c: NDArray[Any]
) -> tuple[Floats, Floats, Flags]:
    """Return unit normals (D, n), out of the shape, distances (n,) of planes, and sharp edges (n,).

    The planes touch the surface where links leave the shape, as in `along_normal`:

        n = (e + sum_k s_k b_k) / sqrt(1 + sum_k s_k^2),    distance = q |c| e.n,    e = c / |c|

    A link leaves the shape at an outer edge if the surface bends by SHARP there: by
    d(+h) + d(-h) - 2 d(0) per h = ASIDE, d being the distance along links beside it.
    """
    length, middle = np.sqrt((c * c).sum(axis=0)), shape.distance(points, -c)
    normal, sharp = c / length, np.zeros(c.shape[1], bool)
    for beside in perpendicular(c / length):
        slope, bend = _differences(shape, points, c, middle, beside)
        normal = normal + length * slope / ASIDE * beside
        sharp |= bend * length > SHARP * ASIDE
    size = np.sqrt((normal * normal).sum(axis=0))
    return normal / size, middle * length / size, sharp


def perpendicular(unit: Floats) -> list[Floats]:
    """D - 1 unit vectors, (D, n) each, normal to given ones and to each other."""
    if len(unit) == 2:
        return [np.stack([-unit[1], unit[0]])]
    axis = np.zeros(unit.shape)  # the axis closest to the plane normal to a vector
    np.put_along_axis(axis, np.abs(unit).argmin(axis=0)[None], 1.0, axis=0)
    one = np.cross(unit, axis, axis=0)
    one /= np.sqrt((one * one).sum(axis=0))
    return [one, np.cross(unit, one, axis=0)]


def _differences(
    shape: Surface, points: NDArray[Any], c: NDArray[Any], middle: Floats, beside: Floats
) -> tuple[Floats, Floats]:
    """The first and the second difference, in links, of the distances along links beside others.

    middle: the distances along the links; beside: unit vectors normal to these. The first one is
    central, one-sided where a link beside it does not cross the surface, and 0 where neither does.
    """
    slope, bend, count = (np.zeros(middle.shape) for _ in range(3))
    cut = np.flatnonzero(~shape.inside(*(points - c)))  # by a sheet, which may have no inside
    for sign in (1, -1):
        near = points + sign * ASIDE * beside
        crosses = ~shape.inside(*near) & shape.inside(*(near - c))
        crosses[cut] |= ~np.isnan(shape.first(near[:, cut], -c[:, cut]))
        mine = np.flatnonzero(crosses)
        more = shape.distance(near[:, mine], -c[:, mine]) - middle[mine]
        slope[mine] += sign * more
        bend[mine] += more
        count += crosses
    return slope / np.maximum(count, 1), bend
