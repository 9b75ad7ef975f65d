"""The owners of missing links.

A population that streams into cell x along c_i comes from x - c_i. If that is not a fluid cell, the
link is missing and exactly one boundary owns it:

1. If the link crosses faces that are not periodic: the [[boundary]] of these faces with the largest
   precedence (physics/boundaries). The order of the case file does not matter. If all these faces
   are mirrors (free slip), this applies only if the mirror image of x - c_i is a fluid cell.
2. Otherwise, if x - c_i, wrapped at periodic faces and reflected at mirrors, is solid: the body.
   So too if it is fluid, but a sheet of the body lies between both cells (missing_links.py).
3. Otherwise, if the link crosses periodic faces with a [[boundary]] (pressure_jump): that boundary.

missing_links.py finds them. The ownership determines which entry supplies the whole cell, where
on-site boundaries meet, and which entries of mirrors are overruled. Direct writes also depend on
the layout, see staging.py.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.model.case import BoundedLattice
from mpilbm.physics.boundaries import Condition, one_face_each
from mpilbm.solids import Flags, Ints
from mpilbm.solids.link_set import LinkSet

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
    boundary: Condition
    why: Why
    body: int | None = None


def owners_of(case: BoundedLattice) -> tuple[Owner, ...]:
    """All owners of a case, by place."""
    found: list[Owner] = []
    for boundary in one_face_each(case.boundaries):
        joins = Why.OPPOSITE_FACE if boundary.joins_faces else Why.FACE
        found.append(Owner(len(found), boundary, Why.MIRROR if boundary.mirrors else joins))
    for number, body in enumerate(case.bodies):
        found.append(Owner(len(found), body.boundary, Why.BODY, number))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Ownership:
    """The n entries of a slab; an entry is a cell with one owner of some of its missing links.

    owners   all owners of the case, by place
    cells    int64 (n,), (plane * rows + row) * nx + x of the planes of the slab
    owner    int32 (n,), the place of the owner; entries are sorted by cell, then owner
    missing  the missing links that the owner owns
    cut      those of them that come from a fluid cell, through a sheet
    Q        number of directions
    """

    owners: tuple[Owner, ...]
    cells: Ints
    owner: NDArray[np.int32]
    missing: LinkSet
    cut: LinkSet
    Q: int

    def owned_by(self, which: Callable[[Owner], Any]) -> Flags:
        """Bool (n,): whether `which` is true for the owner of an entry."""
        found = np.array([bool(which(each)) for each in self.owners], bool)
        if found.all() or not found.any():
            return np.full(self.owner.size, found.any())
        return found[self.owner]

    def only(self, mine: Ints) -> "Ownership":
        """The entries with the numbers `mine`."""
        given = {name: getattr(self, name)[mine] for name in ("cells", "owner", "missing", "cut")}
        return replace(self, **given)

    def blocked(self, cells: Ints) -> LinkSet:
        """The links of these cells along which nothing streams in, not even a mirror image."""
        known, links = self._blocked
        if np.array_equal(cells, known):
            return links
        if not known.size:
            return LinkSet.empty(cells.size)
        place = np.minimum(np.searchsorted(known, cells), known.size - 1)
        return links[place].where(known[place] == cells)

    @cached_property
    def _blocked(self) -> tuple[Ints, LinkSet]:
        """All cells with blocked links, ascending, and these links."""
        mine = np.flatnonzero(self.owned_by(lambda owner: owner.why is not Why.MIRROR))
        cells, links = self.cells, self.missing
        if mine.size < cells.size:
            cells, links = cells[mine], links[mine]
        again = cells[1:] == cells[:-1]
        if not again.any():
            return cells, links
        first = np.flatnonzero(np.append(True, ~again))
        return cells[first], links.united(first)

    @cached_property
    def supplied(self) -> LinkSet:
        """The links that each entry supplies.

        These are its missing links. The last entry of a cell whose boundary sets the whole cell
        also supplies all links along which populations stream in. In other cells the last entry
        whose boundary sets the population at rest also supplies direction 0.
        """
        links, whole = (
            self.missing,
            self.owned_by(lambda owner: owner.boundary.capabilities.whole_cell),
        )
        if whole.any():
            last = self._last_of_cells(whole)
            streams_in = LinkSet.all_of(self.Q).without(self.blocked(self.cells[last]))
            links = links.with_more(last, streams_in)
        rest = self.owned_by(lambda owner: owner.boundary.capabilities.rest)
        if rest.any():
            last = self._last_of_cells(rest & ~self._in(self.cells[whole]))
            links = links.with_more(last, LinkSet.rest())
        return links

    def _last_of_cells(self, mask: Flags) -> Ints:
        """The last entry of each cell, of the entries where the mask is True."""
        mine = np.flatnonzero(mask)
        cells = self.cells[mine]
        return mine[np.append(cells[1:] != cells[:-1], True)[: mine.size]]

    @cached_property
    def meeting(self) -> Flags:
        """Bool (n,): whether several owners prescribe values in the cell of the entry.

        These are boundaries with a normal and values at the node, and boundaries that set the
        whole cell.
        """
        mine = self.owned_by(lambda o: o.boundary.on_site or o.boundary.capabilities.whole_cell)
        found, count = np.unique(self.cells[mine], return_counts=True)
        return self._in(found[count > 1])

    @cached_property
    def overruled(self) -> Flags:
        """Bool (n,): whether the entry is of a mirror, and another boundary sets the whole cell.

        The populations of such an entry are computed for the other boundary to read, but they are
        not written to the field.
        """
        whole = self.owned_by(lambda owner: owner.boundary.capabilities.whole_cell)
        mirrors = self.owned_by(lambda owner: owner.why is Why.MIRROR)
        return mirrors & self._in(self.cells[whole])

    def _in(self, cells: Ints) -> Flags:
        """Bool (n,): whether the cell of an entry is one of these."""
        return np.isin(self.cells, cells) if cells.size else np.zeros(self.cells.size, bool)


def face_owners(
    case: BoundedLattice, owners: tuple[Owner, ...], joined: bool = False
) -> tuple[Sides, ...]:
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
