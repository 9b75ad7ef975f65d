"""Numbers that a boundary must know of each of its links, from the solids and faces around."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mpilbm.geometry.solids import fluid_plane


@dataclass(frozen=True)
class Links:
    """Links of entries, one after another as they are staged: by entry, then direction.

    at: int (n, D), the cells' (x, y[, z]) in the full lattice; c: int (n, D), the c_i of what
    enters; behind, missing: bool (n,), nothing streams into the cell along -c_i, and along c_i, as
    it may where a boundary sets the whole cell; body: int (n,), the body whose link it is, < 0 for
    faces; along: k -> int64 (n,), bool (n,): the cells x + k c_i, and whether these are fluid;
    where they are not, x itself.
    """

    at: np.ndarray
    c: np.ndarray
    behind: np.ndarray
    missing: np.ndarray
    body: np.ndarray
    along: Callable


def links_of(case, slab, ids, cells, body, missing, blocked) -> Links:
    """The links of entries; ids (planes + 2, rows, nx) with the planes around the slab."""
    lattice = case.lattice
    bits = np.unpackbits(missing.view(np.uint8).reshape(-1, 4), axis=1, bitorder="little")
    entry, i = np.nonzero(bits)
    plane, row, k = np.unravel_index(cells[entry], (slab.planes, *slab.shape[1:]))
    x = lattice.x(plane + slab.begin, row, k)
    at = np.stack([x, row, plane + slab.begin] if lattice.D == 3 else [x, plane + slab.begin], 1)
    behind = blocked[entry] >> np.array(lattice.opp, np.uint32)[i] & 1

    c = np.array(lattice.c, np.int64)[i]
    size, periodic = np.array(case.domain.size), np.array(case.domain.periodic)

    def along(k):
        """Where the k-th cell along each link lies, and whether it is fluid."""
        there = at + k * c
        inside = (((there >= 0) & (there < size)) | periodic).all(axis=1)
        planes = there[:, -1] - slab.begin
        row, x = there[:, 1] * (lattice.D == 3) % slab.shape[1], there[:, 0] % size[0]
        number = np.where(inside, row, 0) * slab.shape[2] + np.where(inside, x, 0) // lattice.volume
        found = np.zeros(len(there), bool)
        for local in np.unique(planes[inside]):
            mine = np.flatnonzero(inside & (planes == local))
            found[mine] = plane_of(int(local)).reshape(-1)[number[mine]]
        there = planes * slab.shape[1] * slab.shape[2] + number
        return np.where(found, there, cells[entry]), found

    def plane_of(local):
        near = -1 <= local <= slab.planes
        return ids[local + 1] == 0 if near else fluid_plane(case, slab, local)

    alone = (blocked[entry] >> i.astype(np.uint32) & 1) > 0
    return Links(at, c, behind > 0, alone, body[entry], along)


def link_values(case, boundary, links: Links) -> tuple[np.ndarray, tuple[int, ...]]:
    """The value of each link that the boundary asks for, and how often it had to fall back."""
    found = {"distance": distances, "second": seconds, "next": nexts, "mirror": mirrors}
    return found[boundary.per_link](case, links)


def distances(case, links: Links) -> tuple[np.ndarray, tuple[int, ...]]:
    """q: from the cell to the wall along a link, in links; 1/2 where no shape says it.

    So it is at masks and faces; also, counted, where q < 1/2 and nothing streams in from the other
    side of the cell.
    """
    q = _of_shapes(case, links)
    replaced = (q < 0.5) & links.behind
    q[replaced] = 0.5
    return q, (int(np.count_nonzero(replaced)),)


def nexts(case, links: Links) -> tuple[np.ndarray, tuple[int, ...]]:
    """q; counted where the next cell on the other side of the cell is no fluid."""
    lacks = links.missing & ~links.along(1)[1]
    return _of_shapes(case, links), (int(np.count_nonzero(lacks)),)


def _of_shapes(case, links: Links) -> np.ndarray:
    """q where a shape says it, else 1/2."""
    q = np.full(len(links.at), 0.5)
    size = np.array(case.domain.size)
    for number, body in enumerate(case.bodies):
        mine = np.flatnonzero(links.body == number)
        if body.shape is None or not mine.size:
            continue
        start, step = links.at[mine].T + 0.5, -links.c[mine].T
        q[mine] = body.shape.distance(start, step, size)
        turned = np.flatnonzero(_crossed(case, links)[mine].any(axis=1))
        q[mine[turned]] = _off_mirrors(case, body.shape, links, mine[turned])
    return q


def _off_mirrors(case, shape, links: Links, mine) -> np.ndarray:
    """q of links that a face which slips turns half-way towards a shape."""
    c, size = links.c[mine], np.array(case.domain.size)
    start, at_face = links.at[mine] + 0.5, links.at[mine] + 0.5 - c / 2
    after = np.where(_crossed(case, links)[mine], c, -c)
    before, behind = (
        shape.distance(a.T, step.T / 2, size) / 2 for a, step in ((start, -c), (at_face, after))
    )
    return np.where(shape.inside(*at_face.T), before, 0.5 + behind)


def _crossed(case, links: Links) -> np.ndarray:
    """Bool (n, D): the axes along which links leave the box."""
    there, size = links.at - links.c, np.array(case.domain.size)
    return ((there < 0) | (there >= size)) & ~np.array(case.domain.periodic)


def seconds(case, links: Links) -> tuple[np.ndarray, tuple[int, ...]]:
    """The same, -q where one of the two next cells on the other side of the cell is no fluid.

    So it is beyond a pressure jump, where the density is another. Counted apart, if more than
    half-way walls follow from it.
    """
    q, replaced = distances(case, links)
    lacks = links.behind | ~(links.along(1)[1] & links.along(2)[1]) | _beyond_jumps(case, links)
    return np.where(lacks, -q, q), (*replaced, int(np.count_nonzero(lacks & (q != 0.5))))


def _beyond_jumps(case, links: Links) -> np.ndarray:
    """Bool (n,): whether a face across which a boundary acts lies before the cell two links on."""
    across = {face[0] for each in case.boundaries if each.across for face in each.where}
    jumps = np.array([axis in across for axis in "xyz"[: case.dimensions]])
    there = links.at + 2 * links.c
    return (((there < 0) | (there >= np.array(case.domain.size))) & jumps).any(axis=1)


def mirrors(case, links: Links) -> tuple[np.ndarray, tuple[int, ...]]:
    """The sum of 2^axis over the axes along which a link is mirrored: see FreeSlip."""
    axes = _crossed(case, links)
    return (axes << np.arange(case.dimensions)).sum(axis=1).astype(np.float64), (0,)


def mirrored(case, slab, links: Links, axes) -> tuple[np.ndarray, np.ndarray]:
    """Where what enters comes from, given the values of `mirrors`: cells x - c_i + m, and c_r.

    m is the part of c_i along the axes, c_r = c_i - 2 m. Cells int64 (n,), as they are listed, also
    of ghost planes; r int (n,).
    """
    lattice = case.lattice
    m = links.c * (axes.astype(np.int64)[:, None] >> np.arange(lattice.D) & 1)
    each = 3 ** np.arange(lattice.D)  # of these c_a = -1, 0, 1 make a number
    number = np.zeros(3**lattice.D, np.int64)
    number[(np.array(lattice.c) + 1) @ each] = np.arange(lattice.Q)
    r = number[(links.c - 2 * m + 1) @ each]
    *inner, last = (links.at - links.c + m).T
    inner = [n % size for n, size in zip(inner, case.domain.size, strict=False)]
    row = inner[1] if lattice.D == 3 else 0
    plane = last - slab.begin
    return (plane * slab.shape[1] + row) * slab.shape[2] + inner[0], r
