"""Missing links and their owners against the rules of ownership, cell by cell."""

from itertools import product

import numpy as np
import pytest
from support.faces import table
from support.slabs import box

from mpilbm.case.case import parse_case
from mpilbm.core.registry import make, names
from mpilbm.parallel.slabs import split
from mpilbm.solids import missing_links
from mpilbm.solids.missing_links import owned_links
from mpilbm.solids.owners import Why, owners_of
from mpilbm.solids.solid_cells import padded_ids

FACES = {  # boundaries in the order of the file, and periodic axes
    "periodic": ([], "xyz"),
    "walls": (
        [("bounce_back", "x-", "z+"), ("zou_he", "y-", "x+"), ("bounce_back", "y+", "z-")],
        "",
    ),
    "mirrors": ([("free_slip", "x-", "y+", "z-"), ("bounce_back", "x+", "y-", "z+")], ""),
    "one mirror": ([("free_slip", "y-", "z+"), ("bounce_back", "y+", "z-")], "x"),
    "jump": ([("pressure_jump", "x-", "x+"), ("bounce_back", "y-", "y+", "z-", "z+")], "x"),
    "jump along y": ([("bounce_back", "x-", "x+"), ("pressure_jump", "y-", "y+")], "yz"),
}
SIZES = {2: ((5, 9), (1, 7), (6, 1)), 3: ((6, 4, 8), (4, 6, 2), (2, 2, 10))}


def plain_owner(case, owners, ids, cell, c):
    """The place of the owner of the link from cell - c to cell; None if it is not missing.

    ids: (nz, ny, nx / volume), in 2D (ny, 1, nx). cell, c: (x, y[, z]).
    """
    size, periodic = case.domain.size, case.domain.periodic
    source = [a - b for a, b in zip(cell, c, strict=True)]
    crossed = ["xyz"[k] + "-+"[source[k] >= 0] for k, n in enumerate(size)
               if not 0 <= source[k] < n]  # fmt: skip
    walls, joints = [], []
    for owner in owners:
        if set(owner.boundary.where) & set(crossed):
            (joints if owner.why is Why.OPPOSITE_FACE else walls).append(owner)
    if walls and walls[-1].why is not Why.MIRROR:
        return walls[-1].place
    x, *others = (
        a % n if closed else min(max(a, 0), n - 1)  # a mirror reflects the position
        for a, n, closed in zip(source, size, periodic, strict=True)
    )
    plane, row = others[-1], others[0] if len(others) == 2 else 0
    body = ids[plane, row, x // case.lattice.volume]
    if body and not (walls and walls[-1].why is not Why.MIRROR):
        return len(owners) - len(case.bodies) + int(body) - 1
    return next((found[-1].place for found in (walls, joints) if found), None)


def plain(case, ids):
    """{(cell number, place of the owner): bits of the missing links}, sorted."""
    owners, found = owners_of(case), {}
    for number, (plane, row, k) in enumerate(product(*map(range, case.shape))):
        x = int(case.lattice.x(plane, row, k))
        cell = (x, row, plane) if case.dimensions == 3 else (x, plane)
        for i, c in enumerate(case.lattice.c if not ids[plane, row, k] else ()):
            place = plain_owner(case, owners, ids, cell, c)
            if place is not None:
                found[number, place] = found.get((number, place), 0) | 1 << i
    return dict(sorted(found.items()))


def case_of(lattice, faces, size, path, share):
    """A box with two bodies of random cells, of which one covers the lower half."""
    D = make("lattices", lattice).D
    boundaries, periodic = FACES[faces]
    random, bodies = np.random.default_rng(sum(size)), []
    for label in "ab":
        solid = random.random(size[::-1]) < share
        solid[: len(solid) // 2] &= label == "a"
        np.save(path / f"{label}.npy", solid)
        mask = str(path / f"{label}.npy")
        bodies.append({"label": label, "mask": mask, "boundary": {"name": "bounce_back"}})
    walls = [
        table(name, *(face for face in where if face[0] in "xyz"[:D]), D=D,
              **({"rho_jump": 0.01} if name == "pressure_jump" else {}))
        for name, *where in boundaries
        if any(face[0] in "xyz"[:D] for face in where)
    ]  # fmt: skip
    domain = {"size": list(size), "periodic": [axis in periodic for axis in "xyz"[:D]]}
    collision = {"name": "mrt" if lattice == "D3Q13" else "bgk"}
    more = {"collision": collision, "boundary": walls, "body": bodies}
    tables = box(lattice, size=list(size), domain=domain, **more)
    return parse_case(tables, "test.toml")


CHOICES = [
    (lattice, faces, size)
    for lattice, faces in product(names("lattices"), FACES)
    for size in SIZES[make("lattices", lattice).D]
    if "mirror" not in faces or not make("lattices", lattice).staggered  # no free slip there
]


@pytest.mark.parametrize("choice", CHOICES, ids=str)
@pytest.mark.parametrize("share", [0.04, 0.4])
def test_owners_follow_the_rules(choice, share, tmp_path, monkeypatch):
    monkeypatch.setattr(missing_links, "CELLS", 3 * choice[-1][0])  # blocks of one to three planes
    case = case_of(*choice, tmp_path, share)
    (whole,) = split(case.shape, 1, case.domain.periodic[-1])
    wanted = plain(case, padded_ids(case, whole)[1:-1])
    for ranks in (1, min(3, case.shape[0])):
        found = {}
        for slab in split(case.shape, ranks, case.domain.periodic[-1]):
            each = owned_links(case, slab, padded_ids(case, slab))
            cells = each.cells + slab.begin * np.prod(slab.shape[1:])
            keys = zip(cells.tolist(), each.owner.tolist(), strict=True)
            found |= dict(zip(keys, each.missing.bits.tolist(), strict=True))
        assert list(found.items()) == list(wanted.items())
