"""The chunks in which the entries of bodies are added."""

import numpy as np
import pytest
from support.body_forces import flow
from support.slabs import Cluster

from mpilbm.solids import body_links
from mpilbm.solids.body_links import BodyLinks


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(body_links, "CHUNK", 3)


def links_of(slabs: int) -> list:
    """The body links of each slab, of two bodies with boundaries of one kernel, and a third."""
    tables = flow("D2Q9", size=[17, 12])
    shape = {"name": "sphere", "centre": [12.0, 5.5], "radius": 2.4}
    tables["body"].append({"shape": shape, "boundary": {"name": "interpolated"}})
    solvers = Cluster(tables, slabs).solvers
    return [BodyLinks.find(s.case, s.slab, s.geometry.lists) for s in solvers]


def test_a_chunk_has_entries_of_one_body_in_one_plane(small_chunks):
    (links,) = links_of(1)
    lists, chunks = [each.entries for each in links.measured], links.chunks
    assert len(lists) == 2
    cells = np.concatenate([each.cells for each in lists])
    bodies = np.concatenate([
        np.array([owner.body for owner in each.owners])[each.member] for each in lists
    ])  # fmt: skip
    assert np.array_equal(np.sort(chunks.entry), np.arange(cells.size))
    sizes = np.diff(chunks.first)
    assert sizes.min() > 0
    assert sizes.max() == 3
    for group, begin, end in zip(chunks.group, chunks.start, chunks.start[1:], strict=False):
        for chunk in chunks.order[begin:end]:
            mine = chunks.entry[chunks.first[chunk] : chunks.first[chunk + 1]]
            assert (cells[mine] // 17 == group[0]).all()
            assert (bodies[mine] == group[1]).all()
            assert (np.diff(mine) > 0).all()
    keys = [tuple(group) for group in chunks.group]
    assert keys == sorted(set(keys))


def test_the_chunks_of_a_plane_are_the_same_on_any_number_of_ranks(small_chunks):
    def found(parts: list) -> list:
        """Plane, body and sizes of chunks, for each group."""
        result, begin = [], 0
        for links, planes in parts:
            chunks = links.chunks
            sizes = np.diff(chunks.first)[chunks.order]
            pairs = zip(chunks.start, chunks.start[1:], strict=False)
            for (plane, body), (first, last) in zip(chunks.group, pairs, strict=True):
                result.append((plane + begin, body, sizes[first:last].tolist()))
            begin += planes
        return result

    whole, parts = links_of(1), links_of(3)
    assert found([(whole[0], 12)]) == found([(part, 4) for part in parts])
