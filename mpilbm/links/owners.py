"""The owner of each missing link, determined in one pass over a slab.

A population that streams into cell x along c_i comes from x - c_i. If that is not a fluid cell, the
link is missing and exactly one boundary owns it:

1. If the link crosses faces that are not periodic: the [[boundary]] of these faces that comes last
   in the case file (of one entry with a normal, the face that is last in `where`). If all these
   faces are mirrors (free slip), this applies only if the mirror image of x - c_i is a fluid cell.
2. Otherwise, if x - c_i, wrapped at periodic faces and reflected at mirrors, is solid: the body.
3. Otherwise, if the link crosses periodic faces with a [[boundary]] (pressure_jump): that boundary.

The ownership determines which entry supplies the whole cell, where on-site boundaries meet, and
which entries of mirrors are overruled. Direct writes also depend on the layout, see
direct_writes.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.links.link_set import LinkSet, joined
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.boundaries import Boundary, one_face_each

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Sides = tuple[int, int]  # the places of the owners of the lower and the upper face of an axis

NOBODY = -1  # in arrays of owners' places: the link has no owner


class Why(Enum):
    """The reason why a link belongs to an owner."""

    FACE = "it crosses a face of the box"
    MIRROR = "it crosses a face at which the fluid is mirrored"
    OPPOSITE_FACE = "it crosses a periodic face with a condition"
    BODY = "it starts in a cell of a body"


@dataclass(frozen=True, eq=False)
class Owner:
    """A boundary of a case as owner of links; boundaries with a normal have one owner per face.

    place     number among all owners: faces first, then bodies
    boundary  the boundary
    why       the reason why it owns links
    body      the number of the body; None for faces
    """

    place: int
    boundary: Boundary
    why: Why
    body: int | None = None


def owners_of(case) -> tuple[Owner, ...]:
    """All owners of a case, by place."""
    faces = one_face_each(case.boundaries)
    found = [Owner(place, each, _why(each)) for place, each in enumerate(faces)]
    return *found, *(
        Owner(len(faces) + number, body.boundary, Why.BODY, number)
        for number, body in enumerate(case.bodies)
    )


def _why(boundary: Boundary) -> Why:
    if boundary.mirrors:
        return Why.MIRROR
    return Why.OPPOSITE_FACE if boundary.joins_faces else Why.FACE


@dataclass(frozen=True, eq=False)
class Ownership:
    """The n entries of a slab; an entry is a cell with one owner of some of its missing links.

    owners   all owners of the case, by place
    cells    int64 (n,), (plane * rows + row) * nx + x of the planes of the slab
    owner    int64 (n,), the place of the owner; entries are sorted by cell, then owner
    missing  the missing links that the owner owns
    Q        number of directions
    """

    owners: tuple[Owner, ...]
    cells: Ints
    owner: Ints
    missing: LinkSet
    Q: int

    def owned_by(self, which: Callable[[Owner], Any]) -> Flags:
        """Bool (n,): whether `which` is true for the owner of an entry."""
        return np.array([bool(which(each)) for each in self.owners], bool)[self.owner]

    def blocked(self, cells: Ints) -> LinkSet:
        """The links of these cells along which nothing streams in, not even a mirror image."""
        known, links = self._blocked
        if not known.size:
            return LinkSet.empty(cells.size)
        place = np.minimum(np.searchsorted(known, cells), known.size - 1)
        return links[place].where(known[place] == cells)

    @cached_property
    def _blocked(self) -> tuple[Ints, LinkSet]:
        """All cells with blocked links, ascending, and these links."""
        mine = self.owned_by(lambda owner: owner.why is not Why.MIRROR)
        cells, first = np.unique(self.cells[mine], return_index=True)
        return cells, self.missing[mine].united(first)

    @cached_property
    def supplied(self) -> LinkSet:
        """The links that each entry supplies.

        These are its missing links. The last entry of a cell whose boundary sets the whole cell
        also supplies all links along which populations stream in.
        """
        whole = np.flatnonzero(self.owned_by(lambda owner: _whole_cell(owner.boundary)))
        cells = self.cells[whole]
        last = whole[np.append(cells[1:] != cells[:-1], True)[: whole.size]]
        streams_in = LinkSet.all_of(self.Q).without(self.blocked(self.cells[last]))
        return self.missing.with_more(last, streams_in)

    @cached_property
    def meeting(self) -> Flags:
        """Bool (n,): whether several owners prescribe values in the cell of the entry.

        These are boundaries with a normal and values at the node, and boundaries that set the
        whole cell.
        """
        mine = self.owned_by(lambda owner: _sets_values(owner.boundary))
        found, count = np.unique(self.cells[mine], return_counts=True)
        return np.isin(self.cells, found[count > 1])

    @cached_property
    def overruled(self) -> Flags:
        """Bool (n,): whether the entry is of a mirror, and another boundary sets the whole cell.

        The populations of such an entry are computed for the other boundary to read, but they are
        not written to the field.
        """
        whole = self.owned_by(lambda owner: _whole_cell(owner.boundary))
        mirrors = self.owned_by(lambda owner: owner.why is Why.MIRROR)
        return mirrors & np.isin(self.cells, self.cells[whole])


def _whole_cell(boundary: Boundary) -> bool:
    return boundary.capabilities.whole_cell


def _sets_values(boundary: Boundary) -> bool:
    on_site = boundary.capabilities.normal and boundary.wall_at == "node"
    return on_site or _whole_cell(boundary)


def owned_links(case, slab: Slab, ids: NDArray[Any]) -> Ownership:
    """Return the missing links of a slab and their owners.

    ids: (planes + 2, rows, nx), 0 for fluid and k + 1 for body k, of the slab's planes and one
    plane on either side. The result depends on global coordinates only, not on the partition.
    """
    finder = _Finder(case)
    has_solids = [plane.any() for plane in ids]
    templates: dict[tuple, tuple] = {}  # of planes without solids near them
    cells: list[Ints] = []
    owners: list[Ints] = []
    missing: list[LinkSet] = []
    for local in range(slab.planes):
        plane, around = slab.begin + local, ids[local : local + 3]
        if any(has_solids[local : local + 3]):
            entries = finder.plane(plane, around)
        else:
            key = plane == 0, plane == slab.shape[0] - 1, plane % case.lattice.volume
            if key not in templates:
                templates[key] = finder.plane(plane, around)
            entries = templates[key]
        cells.append(entries[0] + local * ids[0].size)
        owners.append(entries[1])
        missing.append(entries[2])
    return Ownership(
        finder.owners,
        np.concatenate(cells),
        np.concatenate(owners),
        joined(missing),
        case.lattice.Q,
    )


def face_owners(case, owners: tuple[Owner, ...], joined: bool = False) -> tuple[Sides, ...]:
    """The places of the owners of the lower and upper face, for each axis (plane, row, x).

    With `joined` these are the owners of periodic faces, otherwise those of faces that are not
    periodic. All other faces have NOBODY.
    """
    place: dict[str, int] = {face: each.place for each in owners for face in each.boundary.where}
    names = {2: ("y", None, "x"), 3: ("z", "y", "x")}[case.dimensions]
    periodic = dict(zip("xyz", case.domain.periodic, strict=False)) | {None: True}

    def sides(name: str | None) -> Sides:
        if periodic[name] != joined:
            return NOBODY, NOBODY
        lower, upper = (place.get(face, NOBODY) for face in (f"{name}-", f"{name}+"))
        return lower, upper

    return tuple(sides(name) for name in names)


def beyond(position: Any, size: int, sides: Sides) -> NDArray[Any]:
    """The owner's place for the face between a position on an axis and the box, or NOBODY."""
    return np.where(position < 0, sides[0], np.where(position >= size, sides[1], NOBODY))


class _Finder:
    """Finds the missing links and their owners plane by plane."""

    def __init__(self, case):
        self.case, self.owners = case, owners_of(case)
        self.faces = face_owners(case, self.owners)
        self.joined = face_owners(case, self.owners, joined=True)
        self.first_body = len(self.owners) - len(case.bodies)
        self.mirrors = sum(owner.why is Why.MIRROR for owner in self.owners)

    def plane(self, plane: int, ids: NDArray[Any]) -> tuple[Ints, Ints, LinkSet]:
        """Cell in the plane, owner and missing links of each entry.

        ids: (3, rows, nx), those of the plane and of the planes next to it.
        """
        shape, lattice = self.case.shape, self.case.lattice
        cells = np.flatnonzero(self._candidates(plane, ids))
        row, k = np.divmod(cells, shape[2])
        x, nx = lattice.x(plane, row, k), self.case.domain.size[0]
        places = (np.array(plane), row, x)
        sizes = (*shape[:2], nx)
        crossed, wrapped = (
            [{step: beyond(at - step, size, sides) for step in (-1, 0, 1)}
             for at, size, sides in zip(places, sizes, of, strict=True)]
            for of in (self.faces, self.joined)
        )  # fmt: skip
        keys, directions = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for i in range(lattice.Q):
            step = lattice.offset(i)
            sides = [crossed[axis][step[axis]] for axis in range(3)]
            face = np.maximum.reduce(np.broadcast_arrays(*sides))
            joins = (wrapped[axis][step[axis]] for axis in range(3))
            joint = np.maximum.reduce(np.broadcast_arrays(*joins))
            # beyond a mirror lies the mirror image of the cells before it
            dplane, drow, dx = (
                np.where(side == NOBODY, d, 0) for side, d in zip(sides, step, strict=True)
            )
            body = ids[1 - dplane, (row - drow) % shape[1], (x - dx) % nx // lattice.volume]
            inside = np.where(body > 0, body.astype(np.int64) - 1 + self.first_body, joint)
            of_face = (face >= self.mirrors) | (face != NOBODY) & (body == 0)
            owner = np.where(of_face, face, inside)
            mine = owner != NOBODY
            keys.append(cells[mine] * len(self.owners) + owner[mine])
            directions.append(np.full(np.count_nonzero(mine), i))
        key, group = np.unique(np.concatenate(keys), return_inverse=True)
        missing = LinkSet.summed(group.reshape(-1), np.concatenate(directions), key.size)
        return *np.divmod(key, max(1, len(self.owners))), missing

    def _candidates(self, plane: int, ids: NDArray[Any]) -> Flags:
        """Bool (rows, nx): the fluid cells of the middle plane that may have missing links."""
        near = (ids != 0).any(axis=0)
        if near.any():
            # this wraps at walls too; additional candidates are harmless
            for axis in (0, 1):
                near = near | np.roll(near, 1, axis) | np.roll(near, -1, axis)
        (below, above), (south, north), (west, east) = (
            [max(pair) != NOBODY for pair in zip(*both, strict=True)]
            for both in zip(self.faces, self.joined, strict=True)
        )
        near |= (plane == 0 and below) or (plane == self.case.shape[0] - 1 and above)
        near[:1] |= south
        near[-1:] |= north
        near[:, :1] |= west
        near[:, -1:] |= east
        return near & (ids[1] == 0)
