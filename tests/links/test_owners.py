"""Owners of missing links: what follows from who owns them."""

import numpy as np
import pytest
from support.faces import closed, table

from mpilbm.case.case import parse_case
from mpilbm.geometry.solids import padded_ids
from mpilbm.links.link_set import LinkSet
from mpilbm.links.missing_links import owned_links
from mpilbm.links.owners import Why, owners_of
from mpilbm.parallel.slabs import split


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
