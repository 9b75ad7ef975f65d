"""Numbers that a boundary must know of each of its links, from the solids and faces around."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Links:
    """Links of entries, one after another as they are staged: by entry, then direction.

    at: int (n, D), the cells' (x, y[, z]) in the full lattice; c: int (n, D), the c_i of what
    enters; behind: bool (n,), nothing streams into the cell along -c_i; body: int (n,), the body
    whose link it is, < 0 for faces; fluid: int (n, D) -> bool (n,), whether the cells so many steps
    away are fluid.
    """

    at: np.ndarray
    c: np.ndarray
    behind: np.ndarray
    body: np.ndarray
    fluid: object


def links_of(case, slab, ids, cells, body, missing, blocked) -> Links:
    """The links of entries; ids (planes + 2, rows, nx) with the planes around the slab."""
    lattice = case.lattice
    bits = np.unpackbits(missing.view(np.uint8).reshape(-1, 4), axis=1, bitorder="little")
    entry, i = np.nonzero(bits)
    plane, row, k = np.unravel_index(cells[entry], (slab.planes, *slab.shape[1:]))
    x = lattice.x(plane + slab.begin, row, k)
    at = np.stack([x, row, plane + slab.begin] if lattice.D == 3 else [x, plane + slab.begin], 1)
    behind = blocked[entry] >> np.array(lattice.opp, np.uint32)[i] & 1

    def fluid(steps):
        there = at + steps
        inner = there[:, :-1] % case.domain.size[:-1]
        rows = inner[:, 1] if lattice.D == 3 else 0
        plane = there[:, -1] - slab.begin + 1
        return ids[plane, rows, inner[:, 0] // lattice.volume] == 0

    return Links(at, np.array(lattice.c, np.int64)[i], behind > 0, body[entry], fluid)


def link_values(case, boundary, links: Links) -> tuple[np.ndarray, int]:
    """The value of each link that the boundary asks for, and how often it had to fall back."""
    return {"distance": distances, "mirror": mirrors}[boundary.per_link](case, links)


def distances(case, links: Links) -> tuple[np.ndarray, int]:
    """q: from the cell to the wall along a link, in links; 1/2 where no shape says it.

    So it is at masks and faces; also, counted, where q < 1/2 and nothing streams in from the other
    side of the cell.
    """
    q = np.full(len(links.at), 0.5)
    size = np.array(case.domain.size)
    for number, body in enumerate(case.bodies):
        mine = np.flatnonzero(links.body == number)
        if body.shape is None or not mine.size:
            continue
        q[mine] = body.shape.distance(links.at[mine].T + 0.5, -links.c[mine].T, size)
    replaced = (q < 0.5) & links.behind
    q[replaced] = 0.5
    return q, int(np.count_nonzero(replaced))


def mirrors(case, links: Links) -> tuple[np.ndarray, int]:
    """The sum of 2^axis over the axes along which a link is mirrored: see FreeSlip."""
    size, periodic = np.array(case.domain.size), np.array(case.domain.periodic)
    slips = {face for b in case.boundaries for face in b.where if b.slips}
    there, turned = links.at - links.c, np.zeros(len(links.at), bool)
    crossed = ((there < 0) | (there >= size)) & ~periodic
    for a, axis in enumerate("xyz"[: size.size]):
        for side, beyond in (("-", there[:, a] < 0), ("+", there[:, a] >= size[a])):
            turned |= crossed[:, a] & beyond & (axis + side not in slips)
    turned |= ~links.fluid(np.where(crossed | turned[:, None], 0, -links.c))
    axes = (crossed | turned[:, None]) & (links.c != 0)
    return (axes << np.arange(size.size)).sum(axis=1).astype(np.float64), 0
