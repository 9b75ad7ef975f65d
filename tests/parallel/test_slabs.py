"""Slabs: every plane has one owner, neighbours agree."""

import pytest

from mpilbm.core.errors import CaseError
from mpilbm.parallel.slabs import split


@pytest.mark.parametrize("planes", [4, 5, 13])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_slabs_share_all_planes_evenly(planes, ranks):
    slabs = split((planes, 4, 5), ranks, False)
    owned = [plane for slab in slabs for plane in range(slab.begin, slab.end)]
    assert owned == list(range(planes))
    sizes = {slab.planes for slab in slabs}
    assert max(sizes) - min(sizes) <= 1
    assert [(slab.rank, slab.ranks) for slab in slabs] == [(r, ranks) for r in range(ranks)]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_neighbours_in_a_periodic_box_own_the_planes_next_door(ranks):
    slabs = split((7, 4, 5), ranks, True)
    for slab in slabs:
        for neighbour, local in ((slab.lower, -1), (slab.upper, slab.planes)):
            plane = slab.global_plane(local)
            assert slabs[neighbour].begin <= plane < slabs[neighbour].end


def test_walls_have_no_neighbour():
    first, middle, last = split((7, 4, 5), 3, False)
    assert (first.lower, middle.lower, middle.upper, last.upper) == (None, 0, 2, None)
    assert first.global_plane(-1) is None
    assert last.global_plane(last.planes) is None
    assert last.global_plane(0) == middle.global_plane(middle.planes) == last.begin


def test_one_periodic_rank_is_its_own_neighbour():
    (slab,) = split((3, 1, 5), 1, True)
    assert (slab.lower, slab.upper, slab.global_plane(-1), slab.global_plane(3)) == (0, 0, 2, 0)


def test_more_ranks_than_planes():
    with pytest.raises(CaseError, match=r"domain.size: 3 planes .* 4 ranks.*at most 3 ranks"):
        split((3, 4, 5), 4, False)
