"""Sets of links against sets of pairs of a cell and a direction."""

import numpy as np
import pytest

from mpilbm.layouts.cells import LONGEST_SIDE, PackedCells
from mpilbm.solids.link_set import LinkSet, joined

CELLS, Q = 7, 27


@pytest.fixture
def pairs():
    """Two random sets of pairs (cell, direction); cell 3 has none."""
    random = np.random.default_rng(5)
    chosen = random.random((2, CELLS, Q)) < 0.3
    chosen[:, 3] = False
    return [{(int(cell), int(i)) for cell, i in np.argwhere(each)} for each in chosen]


def of_pairs(pairs) -> LinkSet:
    by_direction = {i: [cell for cell, k in pairs if k == i] for i in range(Q)}
    return LinkSet.collect(CELLS, by_direction)


def pairs_of(links: LinkSet) -> set:
    return set(zip(*(part.tolist() for part in links.unpack()), strict=True))


def test_operations_are_those_of_sets(pairs):
    (a, b), (one, two) = pairs, map(of_pairs, pairs)
    assert pairs_of(one) == a
    assert pairs_of(one | two) == a | b
    assert pairs_of(one & two) == a & b
    assert pairs_of(one.without(two)) == a - b
    assert pairs_of(one.moving()) == {(cell, i) for cell, i in a if i}
    first = {(cell, min(i for k, i in a if k == cell)) for cell, _ in a}
    assert pairs_of(one.first()) == first
    group, direction = np.array(sorted(a, reverse=True)).T
    assert np.array_equal(LinkSet.summed(group, direction, CELLS).bits, one.bits)


def test_counts_and_places_follow_the_order_of_links(pairs):
    links, order = of_pairs(pairs[0]), sorted(pairs[0])
    counts = [sum(cell == k for cell, _ in order) for k in range(CELLS)]
    assert links.counts().tolist() == counts
    assert links.total() == len(order)
    assert links.starts().tolist() == [sum(counts[:k]) for k in range(CELLS)]
    assert links.any().tolist() == [count > 0 for count in counts]
    cell, i, before = links.positions()
    assert list(zip(cell.tolist(), i.tolist(), strict=True)) == order
    assert (links.starts()[cell] + before).tolist() == list(range(len(order)))


def test_questions_about_links(pairs):
    links, (a, b) = of_pairs(pairs[0]), pairs
    for i in range(Q):
        assert links.has(i).tolist() == [(cell, i) in a for cell in range(CELLS)]
    cells, directions = np.array(sorted(b)).T
    assert links.contains(cells, directions).tolist() == [pair in a for pair in sorted(b)]
    kept = links.of_cells(np.array([1, 5]))
    assert kept.tolist() == [cell in (1, 5) for cell, _ in sorted(a)]


def test_cells_are_chosen_united_and_joined(pairs):
    links, a = of_pairs(pairs[0]), pairs[0]
    chosen = links[np.array([5, 0])]
    assert pairs_of(chosen) == {(k, i) for k, cell in enumerate((5, 0)) for c, i in a if c == cell}
    united = links.united(np.array([0, 2]))
    assert pairs_of(united) == {(int(cell >= 2), i) for cell, i in a}
    assert len(links[:0].united(np.array([], int))) == 0
    assert pairs_of(joined([links, links])) == a | {(cell + CELLS, i) for cell, i in a}
    assert len(joined([])) == 0
    more = links.with_more(np.array([3]), LinkSet.all_of(Q))
    assert pairs_of(more) == a | {(3, i) for i in range(Q)}
    even = np.arange(CELLS) % 2 == 0
    assert pairs_of(links.where(even)) == {(cell, i) for cell, i in a if cell % 2 == 0}


def test_packed_cells_keep_their_parts():
    """Also those of ghost planes, which are negative."""
    plane, node = np.array([-2, -1, 0, 5]), np.array([0, 7, LONGEST_SIDE, 2**42 - 1])
    packed = PackedCells.of_nodes(plane, node)
    assert np.array_equal(packed.plane, plane)
    assert np.array_equal(packed.node, node)
    row, x = np.array([0, 1, LONGEST_SIDE - 1, 9]), np.array([LONGEST_SIDE - 1, 0, 3, 8])
    packed = PackedCells.of_rows(plane, row, x)
    assert np.array_equal(packed.plane, plane)
    assert np.array_equal(packed.node, row * LONGEST_SIDE + x)
