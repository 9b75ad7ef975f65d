"""Computes solid cells and boundary entries from bodies and masks, for a slab or the whole box.

Arrays have the shape (planes, rows, nx); in 2D each plane has one row. All results are computed
from global coordinates, so they need no communication and do not depend on the partition.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.errors import CaseError
from mpilbm.model.case import Case
from mpilbm.model.findings import SERIOUS
from mpilbm.parallel.slabs import Slab, split
from mpilbm.physics.boundaries import in_cells
from mpilbm.solids import Flags, Ints
from mpilbm.solids.entry_list import EntryList
from mpilbm.solids.layer_lists import all_lists, with_layers
from mpilbm.solids.missing_links import owned_links
from mpilbm.solids.plane_costs import require_planes
from mpilbm.solids.shapes import Flow
from mpilbm.solids.shares import Shares
from mpilbm.solids.solid_cells import (
    CELLS,
    cells_of_bodies,
    neighbour_flags,
    padded_ids,
    solids,
    surroundings,
)

Overlaps = dict[tuple[int, int], int]  # cells that body j lost to body k, by (j, k), j < k
Look = Callable[[Any, Slab, NDArray[Any], tuple[EntryList, ...], Overlaps], Any]


@dataclass(frozen=True, eq=False)
class Geometry:
    """The geometry of a slab.

    solid         (planes, rows, nx), 0 for fluid and k + 1 for body k
    lists         the boundary entries, see EntryList
    fluid_cells   int64 (planes,), the number of fluid cells of each plane
    find_flags    a function that returns `flags`
    around, beside, wraps  see solid_cells.surroundings
    of_scalars    the boundary entries of each scalar
    shares        the solid shares of bodies that act in cells; None without such bodies
    """

    solid: NDArray[Any]
    lists: tuple[EntryList, ...]
    fluid_cells: Ints
    find_flags: Callable[[], NDArray[Any]]
    around: Ints
    beside: list[Flags]
    wraps: tuple[bool, bool]
    of_scalars: tuple[tuple[EntryList, ...], ...] = ()
    shares: Shares | None = None

    @cached_property
    def flags(self) -> NDArray[Any]:
        """uint8 or uint16 (planes, rows, nx): flags of cells, for kernels that read neighbours.

        Bit 0 is set if the cell is fluid, bit k + 1 if its neighbour k of `lattice.stencil` is.
        """
        return self.find_flags()

    def fluid(self, local: int) -> Flags:
        """Bool (rows, nx): whether each cell of a local plane or ghost plane is fluid."""
        if 0 <= local < len(self.solid):
            return self.solid[local] == 0
        ghost = len(self.beside) // 2
        return self.beside[ghost + (local if local < 0 else local - len(self.solid))]


@dataclass(frozen=True, eq=False)
class Survey:
    """Counts for the whole box.

    fluid_cells  int64 (planes,), fluid cells of each plane
    entries      int64 (planes,), boundary entries of each plane; those above walls only with `look`
    solid_cells  cells of each body; a cell in several bodies counts for the last one in the file
    links        missing links of each [[boundary]]
    body_links   missing links of each body
    overlaps     {(j, k): cells of body j that belong to body k instead}, j < k
    """

    fluid_cells: Ints
    entries: Ints
    solid_cells: tuple[int, ...]
    links: tuple[int, ...]
    body_links: tuple[int, ...]
    overlaps: Overlaps


def build(case: Case, slab: Slab, look: Look | None = None) -> Geometry:
    """Return the geometry of a slab: its solid cells and boundary entries.

    Cells of overlapping bodies belong to the body that is later in the file. `look` is called with
    the arguments of diagnose.find. Raises CaseError as `check` and `require_planes` do, and for
    invalid masks.
    """
    check(case)
    require_planes(case, slab)
    overlaps: Overlaps = {}
    ids = padded_ids(case, slab, overlaps)
    solid = ids[1:-1]
    lists = all_lists(case, slab, ids)
    if look:
        look(case, slab, ids, lists, overlaps)
    fluid, flags = _fluid_cells(solid), partial(neighbour_flags, case, slab, ids)
    of_scalars = []
    for k in range(len(case.scalars)):
        of_scalars.append(all_lists(case.of_scalar(k), slab, ids))
    around = surroundings(case, slab, fluid)
    shares = Shares.find(case, slab, solid) if in_cells(case) else None
    return Geometry(
        solid, lists, fluid, flags, **around, of_scalars=tuple(of_scalars), shares=shares
    )


def survey(case: Case, planes_at_a_time: int | None = None, look: Look | None = None) -> Survey:
    """Return counts for the whole box, computed from a few planes at a time; look: see `build`.

    The default is 64 planes, or more if these have fewer than CELLS cells.
    """
    check(case)
    planes, rows, nx = case.shape
    step = planes_at_a_time or max(64, CELLS // (rows * nx))
    pieces = split(case.shape, -(-planes // step), case.domain.periodic[-1])
    fluid, entries = [], []
    overlaps: Counter[tuple[int, int]] = Counter()
    links: Counter[int | str] = Counter()  # by number of the body, or by face
    solid_cells = np.zeros(len(case.bodies), np.int64)
    for slab in pieces:
        shared: Overlaps = {}
        ids = padded_ids(case, slab, shared)
        overlaps.update(shared)
        there = solids(case, ids)
        ownership = owned_links(case, slab, there)
        counts = np.bincount(
            ownership.owner, ownership.missing.counts(), len(ownership.owners)
        ).astype(int)
        for owner, count in zip(ownership.owners, counts.tolist(), strict=True):
            links[owner.boundary.where[0] if owner.body is None else owner.body] += count
        cells = ownership.cells
        if look:
            lists = with_layers(case, slab, there, ownership)
            look(case, slab, ids, lists, shared)
            cells = np.concatenate([cells, *(each.cells for each in lists if each.layer)])
        entries.append(np.bincount(cells // (rows * nx), minlength=slab.planes))
        fluid.append(_fluid_cells(ids[1:-1]))
        solid_cells += cells_of_bodies(case, slab, ids[1:-1])
    return Survey(
        fluid_cells=np.concatenate(fluid),
        entries=np.concatenate(entries),
        solid_cells=tuple(solid_cells.tolist()),
        links=tuple(sum(links[face] for face in each.where) for each in case.boundaries),
        body_links=tuple(links[number] for number in range(len(case.bodies))),
        overlaps=dict(overlaps),
    )


def check(case: Case) -> None:
    """Raise CaseError for wrong names of faces and bodies outside the box, without cells."""
    problems = faces_problems(case) + bodies_problems(case)
    if problems:
        raise CaseError(problems, path=case.path)


def require_fluid(case: Case, cells: int) -> None:
    """Raise CaseError if the box has no fluid cells; cells: the sum of `fluid_cells`."""
    if cells:
        return
    fix = "make a body smaller or, if a mask is 1 in the fluid, invert the mask"
    problems = [f"body: found no fluid cell: the bodies fill the box; {fix}"]
    for body in case.bodies:
        if body.shape:
            found = body.shape.findings(case, f"body.{body.label}.shape", Flow(0, None))
            problems += [str(each) for each in found if each.severity == SERIOUS]  # a likely cause
    raise CaseError(problems, path=case.path)


def faces_problems(case: Case) -> list[str]:
    """A line for each face that is neither periodic nor named by exactly one [[boundary]]."""
    periodic = dict(zip("xyz", case.domain.periodic, strict=False))
    faces = [axis + side for axis in periodic for side in "-+"]
    named: dict[str, str] = {}
    problems = []
    for index, boundary in enumerate(case.boundaries):
        here = f"boundary.{index}.where"
        if not boundary.where:
            problems.append(f"{here}: names no face; list the faces or remove the entry")
        for face in boundary.where:
            key = f"domain.periodic.{'xyz'.find(face[:1])}"
            if face not in faces:
                problems.append(f"{here}: found '{face}'; allowed faces: {', '.join(faces)}")
            elif boundary.joins_faces and not periodic[face[0]]:
                problems.append(
                    f"{here}: '{boundary.name}' needs periodic faces, '{face}' is not one; "
                    f"set {key} = true"
                )
            elif periodic[face[0]] and not boundary.joins_faces:
                problems.append(
                    f"{here}: face '{face}' is periodic; remove it here or set {key} = false"
                )
            elif face in named:
                problems.append(
                    f"{here}: face '{face}' is named by {named[face]} already; remove one of them"
                )
            named.setdefault(face, here)
    for each in faces:
        if each not in named and not periodic[each[0]]:
            problems.append(
                f"boundary: face '{each}' is neither periodic nor named; add it to the 'where' of "
                f"a [[boundary]] or set domain.periodic.{'xyz'.index(each[0])} = true"
            )
    return problems


def bodies_problems(case: Case) -> list[str]:
    """A line for each body that names faces or whose shape lies completely outside the box."""
    problems = []
    for index, body in enumerate(case.bodies):
        if body.boundary.where:
            problems.append(
                f"body.{index}.boundary.where: the boundary of body '{body.label}' holds at its "
                "surface, not at faces of the box; remove 'where'"
            )
        if body.shape is None:
            continue
        lower, upper = body.shape.bounds()
        domain = case.domain
        sides = zip(*body.shape.in_box(domain).bounds(), domain.size, domain.periodic, strict=True)
        if any((b <= 0 or a >= n) and not periodic for a, b, n, periodic in sides):
            problems.append(
                f"body.{index}.shape: body '{body.label}' from {list(lower)} to {list(upper)} lies "
                f"outside the box, 0 to {list(case.domain.size)}; move it or remove it"
            )
    return problems


def _fluid_cells(solid: NDArray[Any]) -> Ints:
    counts = [plane.size - np.count_nonzero(plane) for plane in solid]
    return np.array(counts, np.int64)
