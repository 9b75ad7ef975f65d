"""Owners of missing links: what follows from who owns them."""

from itertools import combinations, permutations

import numpy as np
import pytest
from support.faces import closed, table

from mpilbm.case.case import parse_case
from mpilbm.codegen.structure import boundary_structures
from mpilbm.core.errors import CaseError
from mpilbm.parallel.slabs import split
from mpilbm.solids.link_set import LinkSet
from mpilbm.solids.missing_links import owned_links
from mpilbm.solids.owners import Why, owners_of
from mpilbm.solids.solid_cells import padded_ids


def owned(walls, size=(5, 4), **tables):
    case = parse_case(closed("D2Q9", list(size), walls, **tables), "test.toml")
    (slab,) = split(case.shape, 1, False)
    return case, owned_links(case, slab, padded_ids(case, slab))


BODY = {"label": "it", "shape": {"name": "box", "lower": [2, 1], "upper": [3, 3]}}
WALLS = [
    table("bounce_back", "x-", "x+", D=2),
    table("free_slip", "y-", D=2),
    table("regularized", "y+", D=2),
]


@pytest.fixture
def found():
    return owned(WALLS, body=[BODY | {"boundary": {"name": "bounce_back"}}])


def test_every_owner_has_a_reason(found):
    case, ownership = found
    assert [owner.place for owner in ownership.owners] == [0, 1, 2, 3]
    assert [owner.why for owner in owners_of(case)] == [Why.MIRROR, Why.FACE, Why.FACE, Why.BODY]
    assert [owner.body for owner in ownership.owners] == [None, None, None, 0]
    assert ownership.owners[0].boundary.name == "free_slip"


def test_each_missing_link_has_one_owner(found):
    case, ownership = found
    counts = np.zeros((20, case.lattice.Q), int)
    for i in range(case.lattice.Q):
        np.add.at(counts[:, i], ownership.cells, ownership.missing.has(i))
    assert counts.max() == 1
    for (x, y), i in np.ndenumerate(np.empty((5, 4))):
        del i
        if x == 2 and y in (1, 2):
            assert not counts[5 * y + x].any()  # solid
            continue
        for k, (cx, cy) in enumerate(case.lattice.c):
            sx, sy = x - cx, y - cy
            outside = not (0 <= sx < 5 and 0 <= sy < 4)
            assert counts[5 * y + x, k] == (outside or (sx == 2 and sy in (1, 2)))


def test_what_streams_in_belongs_to_the_boundary_of_whole_cells(found):
    """It supplies all links of its cells; those of mirrors are overruled there, others are not."""
    _, ownership = found
    whole = ownership.owned_by(lambda owner: owner.boundary.capabilities.whole_cell)
    cells = ownership.cells[whole]
    assert sorted(cells.tolist()) == [15, 16, 17, 18, 19]
    together = np.zeros(20, np.uint32)
    mirrors = ownership.owned_by(lambda owner: owner.why is Why.MIRROR)
    np.bitwise_or.at(together, ownership.cells[~mirrors], ownership.supplied.bits[~mirrors])
    assert (together[cells] == LinkSet.all_of(9).bits).all()
    assert not ownership.overruled.any()
    _, narrow = owned(WALLS[1:] + WALLS[:1], (5, 1))
    mirrors = narrow.owned_by(lambda owner: owner.why is Why.MIRROR)
    assert np.array_equal(narrow.overruled, mirrors)
    assert mirrors.any()


def test_boundaries_with_values_meet_in_corners():
    _, ownership = owned([table("zou_he", "x-", "y-", D=2), table("bounce_back", "x+", "y+", D=2)])
    assert set(ownership.cells[ownership.meeting].tolist()) == {0}


SLIP = {"name": "free_slip", "where": ["x+"]}
LID = {"name": "bounce_back", "where": ["y+"], "velocity": [0.1, 0]}
KINDS = {  # from the weakest to the strongest claim to the links at edges
    "free slip": SLIP,
    "equilibrium": {"name": "equilibrium", "where": ["y+"], "rho": 1.0},
    "half-way inlet": {"name": "bounce_back", "where": ["x-"], "velocity": [0.01, 0.01]},
    "lid": {"name": "bounce_back", "where": ["x-"], "velocity": "along"},
    "wall": {"name": "interpolated", "where": ["y-"], "velocity": [0.0, 0]},
    "outlet": {"name": "neumann", "where": ["y+"]},
    "inlet": {"name": "zou_he", "where": ["x-"], "velocity": [0.1, 0.1]},
    "on-site wall": {"name": "regularized", "where": ["x-"], "velocity": [0.0, 0.0]},
}


def entries_of(walls):
    """Owner's name, faces, cell and links of every entry, and the structures of the kernels."""
    case, ownership = owned(walls)
    owners = [ownership.owners[place].boundary for place in ownership.owner]
    faces = [(owner.name, owner.where) for owner in owners]
    entries = zip(faces, ownership.cells.tolist(), ownership.missing.bits.tolist(), strict=True)
    return list(entries), boundary_structures(case)


@pytest.mark.parametrize("walls", [WALLS, [WALLS[0] | {"where": ["x-", "x+", "y-"]}, LID]])
def test_the_order_of_the_file_does_not_matter(walls):
    """Nor that of the faces in `where`: the same entries and the same kernels."""
    found = [
        entries_of([each | {"where": each["where"][::turn]} for each in some])
        for some in permutations(walls)
        for turn in (1, -1)
    ]
    owner = [
        sorted((name, sorted(where), *rest) for (name, where), *rest in one) for one, _ in found
    ]
    assert all(each == owner[0] for each in owner)
    assert all(structures == found[0][1] for _, structures in found)


def corner(one, other, **priority):
    """The name of the entry of `KINDS` that owns the link through the corner of two faces."""
    pair = [KINDS[one] | {"where": ["x-"]}, KINDS[other] | {"where": ["y-"]}]
    pair = [each | {"priority": priority.get(n, 0)} if priority else each
            for n, each in zip((one, other), pair, strict=True)]  # fmt: skip
    for each, along in zip(pair, ([0, "0.1*y"], ["0.1*x", 0]), strict=True):
        each.update({"velocity": along} if each.get("velocity") == "along" else {})
    rest = [{"name": "free_slip", "where": ["x+", "y+"]}]
    case, ownership = owned([*pair, *rest])
    mine = (ownership.cells == 0) & ownership.missing.has(case.lattice.c.index((1, 1)))
    (place,) = ownership.owner[mine]
    return {"x-": one, "y-": other}[ownership.owners[place].boundary.where[0]]


@pytest.mark.parametrize("pair", list(combinations(KINDS, 2)), ids=str)
def test_on_site_faces_own_the_links_at_edges_then_walls_at_rest(pair):
    weaker, stronger = pair
    assert corner(weaker, stronger) == corner(stronger, weaker) == stronger
    if weaker != "free slip":
        assert corner(weaker, stronger, **{weaker: 1}) == weaker
        assert corner(stronger, weaker, **{stronger: -1}) == weaker


def test_equal_faces_are_taken_in_order():
    """The last one of x-, x+, y-, y+, z-, z+ owns the link."""
    _, ownership = owned([table("zou_he", "y+", "x+", "x-", "y-", D=2)])
    faces = [owner.boundary.where[0] for owner in ownership.owners]
    assert faces == ["x-", "x+", "y-", "y+"]


@pytest.mark.parametrize(
    ("tables", "sentence"),
    [
        ([LID | {"where": ["x-", "x+", "y-"]}, SLIP | {"where": ["y+"], "priority": 2}],
         r"boundary.1.priority: found 2; the links of free_slip at edges belong to the other face"),
        ([LID | {"where": []}, LID | {"where": [], "priority": 1}],
         r"boundary.1.priority: found 1; it orders the faces of the box, and names none"),
    ],
)  # fmt: skip
def test_priorities_that_have_no_meaning(tables, sentence):
    with pytest.raises(CaseError, match=sentence):
        owned(tables)
