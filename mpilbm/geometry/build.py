"""Where the solids are, and which populations have to be supplied next to solids and faces.

Everything works on planes: a box of (planes, rows, nx) cells, in 2D with one row a plane. All is
computed from global coordinates, so a rank needs nobody else, and the cut changes nothing.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from mpilbm.errors import CaseError
from mpilbm.geometry.solids import neighbour_flags, padded_ids, surroundings
from mpilbm.links.boundary_links import EntryList, entry_lists, require_planes
from mpilbm.parallel.slabs import Slab, split
from mpilbm.physics.boundaries import one_face_each


@dataclass(frozen=True)
class Geometry:
    """solid: (planes, rows, nx), 0 fluid, k + 1 body k; fluid_cells: int64 (planes,).

    flags: uint8 or 16 (planes, rows, nx), bit 0: the cell is fluid; bit k + 1: so is its neighbour
    number k of `lattice.beside`. The others: see solids.surroundings.
    """

    solid: np.ndarray
    lists: tuple[EntryList, ...]
    fluid_cells: np.ndarray
    flags: np.ndarray
    around: np.ndarray
    beside: list[np.ndarray]
    wraps: tuple[bool, bool]

    def fluid(self, local: int) -> np.ndarray:
        """Where a local plane, or a ghost plane, is fluid: bool (rows, nx)."""
        if 0 <= local < len(self.solid):
            return self.solid[local] == 0
        ghost = len(self.beside) // 2
        return self.beside[ghost + (local if local < 0 else local - len(self.solid))]


@dataclass(frozen=True)
class Survey:
    """Counts of a whole box: per plane, per [[boundary]] and per body, in the order of the file.

    fluid_cells, entries: int64 (planes,); solid_cells: cells of each body (those taken by a later
    body are counted for that one); links, body_links: populations to supply; overlaps: cells
    that body j < k lost to body k.
    """

    fluid_cells: np.ndarray
    entries: np.ndarray
    solid_cells: tuple[int, ...]
    links: tuple[int, ...]
    body_links: tuple[int, ...]
    overlaps: dict[tuple[int, int], int]


def build(case, slab: Slab, look=None) -> Geometry:
    """Solids and entry lists of the planes of a slab.

    A population that enters cell x along c_i comes from x - c_i. Beyond non-periodic faces it
    belongs to the [[boundary]] latest in the file among the faces crossed (of one entry that knows
    its normal, to the face named last), but if these all slip only where the mirror is fluid; else,
    in a solid cell (periodic faces wrap, those that slip mirror), to the body there, else to what
    acts across the periodic face. Of overlapping bodies the later wins. Raises CaseError as `check`
    and `require_planes` do, and for bad masks. `look` is called with what flaws.find takes.
    """
    check(case)
    require_planes(case, slab)
    overlaps: dict[tuple[int, int], int] = {}
    ids = padded_ids(case, slab, overlaps)
    solid = ids[1:-1]
    lists = entry_lists(case, slab, ids, *_entries(case, slab, ids))
    if look:
        look(case, slab, ids, lists, overlaps)
    fluid, flags = _fluid_cells(solid), neighbour_flags(case, slab, ids)
    return Geometry(solid, lists, fluid, flags, **surroundings(case, slab, fluid))


def survey(case, planes_at_a_time: int = 64, look=None) -> Survey:
    """Counts for the whole box, holding no more than some planes of it at a time; look: `build`."""
    check(case)
    faces = one_face_each(case.boundaries)
    bodies, boundaries = len(case.bodies), len(faces)
    planes, rows, nx = case.shape
    pieces = split(case.shape, -(-planes // planes_at_a_time), case.domain.periodic[-1])
    fluid, entries, overlaps = [], [], Counter()
    solid_cells = np.zeros(bodies + 1, np.int64)
    links = np.zeros(boundaries + bodies, np.int64)
    for slab in pieces:
        shared: dict[tuple[int, int], int] = {}
        ids = padded_ids(case, slab, shared)
        overlaps.update(shared)
        cells, owner, missing = _entries(case, slab, ids)
        bits = np.unpackbits(missing.view(np.uint8)).reshape(-1, 32).sum(axis=1)
        links += np.bincount(owner, bits, minlength=links.size).astype(np.int64)
        if look:
            look(case, slab, ids, entry_lists(case, slab, ids, cells, owner, missing), shared)
        entries.append(np.bincount(cells // (rows * nx), minlength=slab.planes))
        fluid.append(_fluid_cells(ids[1:-1]))
        for k in range(1, bodies + 1):
            solid_cells[k] += np.count_nonzero(ids[1:-1] == k)
    return Survey(
        np.concatenate(fluid),
        np.concatenate(entries),
        tuple(solid_cells[1:].tolist()),
        tuple(_of_each(case, faces, links)),
        tuple(links[boundaries:].tolist()),
        dict(overlaps),
    )


def _of_each(case, faces, links):
    """Links of each [[boundary]], from those of its faces."""
    for boundary in case.boundaries:
        mine = (each.where[0] in boundary.where for each in faces)
        yield int(sum(count for count, own in zip(links, mine, strict=False) if own))


def check(case) -> None:
    """CaseError for faces named wrongly and bodies outside the box; looks at no cell."""
    problems = faces_problems(case) + bodies_problems(case)
    if problems:
        raise CaseError(problems, path=case.path)


def require_fluid(case, cells: int) -> None:
    """CaseError unless the whole box has fluid cells; the caller sums `fluid_cells`."""
    if cells == 0:
        raise CaseError(
            "no fluid cell is left, the bodies fill the box; shrink a body or, if a mask counts "
            "the fluid as nonzero, invert it",
            "body",
            case.path,
        )


def faces_problems(case) -> list[str]:
    """Each face is either periodic or named by exactly one [[boundary]]; a line a problem."""
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
                problems.append(f"{here}: '{face}' is no face here; allowed: {', '.join(faces)}")
            elif boundary.across and not periodic[face[0]]:
                problems.append(
                    f"{here}: '{boundary.name}' stands between periodic faces, '{face}' is none; "
                    f"set {key} = true"
                )
            elif periodic[face[0]] and not boundary.across:
                problems.append(
                    f"{here}: face '{face}' is periodic; remove it here or set {key} = false"
                )
            elif face in named:
                problems.append(
                    f"{here}: face '{face}' is named by {named[face]} already; remove one of them"
                )
            named.setdefault(face, here)
    for face in faces:
        if face not in named and not periodic[face[0]]:
            problems.append(
                f"boundary: face '{face}' is neither periodic nor named; add it to the 'where' of "
                f"a [[boundary]] or set domain.periodic.{'xyz'.index(face[0])} = true"
            )
    return problems


def bodies_problems(case) -> list[str]:
    """Bodies that name faces or whose shape lies wholly outside the box, a line each."""
    problems = []
    for index, body in enumerate(case.bodies):
        if body.boundary.where:
            problems.append(
                f"body.{index}.boundary.where: body '{body.label}' is its own surface and has no "
                "faces; remove 'where'"
            )
        if body.shape is None:
            continue
        lower, upper = body.shape.bounds()
        if any(b <= 0 or a >= n for a, b, n in zip(lower, upper, case.domain.size, strict=True)):
            problems.append(
                f"body.{index}.shape: body '{body.label}' from {list(lower)} to {list(upper)} lies "
                f"outside the box, 0 to {list(case.domain.size)}; move it or remove it"
            )
    return problems


def _fluid_cells(solid) -> np.ndarray:
    counts = [plane.size - np.count_nonzero(plane) for plane in solid]
    return np.array(counts, np.int64)


def _entries(case, slab: Slab, ids):
    """Cells int64, owner int64, missing uint32 of all entries, sorted by cell, then owner.

    An owner is a place in `one_face_each` of the [[boundary]]s or, counted on, a body.
    """
    walls = one_face_each(case.boundaries)
    faces, across = face_owners(case, walls, False), face_owners(case, walls, True)
    has_solids = [plane.any() for plane in ids]
    templates = {}  # entries of planes without solids near, by what is below and above, and parity
    found = []
    for local in range(slab.planes):
        plane, around = slab.begin + local, ids[local : local + 3]
        if any(has_solids[local : local + 3]):
            entries = _plane_entries(case, faces, across, len(walls), plane, around)
        else:
            key = plane == 0, plane == slab.shape[0] - 1, plane % case.lattice.volume
            if key not in templates:
                templates[key] = _plane_entries(case, faces, across, len(walls), plane, around)
            entries = templates[key]
        cells, owner, missing = entries
        found.append((cells + local * ids[0].size, owner, missing))
    return tuple(np.concatenate(part) for part in zip(*found, strict=True))


def face_owners(case, walls, across: bool) -> tuple[tuple[int, int], ...]:
    """Per axis (plane, row, x) the owner of its lower and upper face; -1: periodic.

    `across`: of the faces that are periodic, and -1 for the others and where there is none.
    """
    owner = {face: index for index, entry in enumerate(walls) for face in entry.where}
    names = {2: ("y", None, "x"), 3: ("z", "y", "x")}[case.dimensions]
    periodic = dict(zip("xyz", case.domain.periodic, strict=False)) | {None: True}
    return tuple(
        (-1, -1) if periodic[name] != across else tuple(owner.get(f"{name}{s}", -1) for s in "-+")
        for name in names
    )


def _plane_entries(case, faces, across, first_body: int, plane: int, ids):
    """Cell in the plane, owner, missing of the entries of a plane; ids (3, rows, nx) around it."""
    shape, slips = case.shape, sum(len(b.where) for b in case.boundaries if b.slips)
    owners = max(1, first_body + len(case.bodies))
    named = [tuple(map(max, *both)) for both in zip(faces, across, strict=True)]
    cells = np.flatnonzero(_candidates(plane, shape[0], named, ids))
    row, k = np.divmod(cells, shape[2])
    x, nx = case.lattice.x(plane, row, k), case.domain.size[0]

    def crossed(owners):
        places = zip((np.array(plane), row, x), (*shape[:2], nx), owners, strict=True)
        return [{s: _crossed(at - s, n, sides) for s in (-1, 0, 1)} for at, n, sides in places]

    through, between = crossed(faces), crossed(across)
    keys, bits = [np.empty(0, np.int64)], [np.empty(0)]
    for i in range(case.lattice.Q):
        step = case.lattice.offset(i)
        sides, jumps = ([by[k][step[k]] for k in range(3)] for by in (through, between))
        face, jump = (np.maximum(np.maximum(*each[:2]), each[2]) for each in (sides, jumps))
        # beyond a face that slips lies the mirror of what is before it
        dplane, drow, dx = (np.where(side < 0, d, 0) for side, d in zip(sides, step, strict=True))
        body = ids[1 - dplane, (row - drow) % shape[1], (x - dx) % nx // case.lattice.volume]
        solid = np.where(body > 0, body.astype(np.int64) - 1 + first_body, jump)
        owner = np.where((face >= slips) | (face >= 0) & (body == 0), face, solid)
        mine = owner >= 0
        keys.append(cells[mine] * owners + owner[mine])
        bits.append(np.full(np.count_nonzero(mine), 1 << i, np.float64))
    # each direction comes once a key, so that the sum is the union; exact below 2^53
    key, group = np.unique(np.concatenate(keys), return_inverse=True)
    missing = np.bincount(group, np.concatenate(bits), minlength=key.size).astype(np.uint32)
    return *np.divmod(key, owners), missing


def _crossed(position, size: int, sides: tuple[int, int]):
    """Owner of the face that lies between a position on an axis and the box; -1: none."""
    return np.where(position < 0, sides[0], np.where(position >= size, sides[1], -1))


def _candidates(plane: int, planes: int, faces, ids) -> np.ndarray:
    """Bool (rows, nx): the fluid cells of the middle plane that may have something missing."""
    near = (ids != 0).any(axis=0)
    if near.any():
        # wraps at walls too: too many candidates do no harm
        for axis in (0, 1):
            near = near | np.roll(near, 1, axis) | np.roll(near, -1, axis)
    (below, above), (south, north), (west, east) = faces
    near |= (plane == 0 and below >= 0) or (plane == planes - 1 and above >= 0)
    near[:1] |= south >= 0
    near[-1:] |= north >= 0
    near[:, :1] |= west >= 0
    near[:, -1:] |= east >= 0
    return near & (ids[1] == 0)
