"""Scaling on several ranks: the same rows on all of them, each rank alone, and the link."""

import pytest

from mpilbm.parallel.ranks import world
from mpilbm.view.bench import exchange_time
from mpilbm.view.bench.scaling import Scaling, everything
from mpilbm.view.bench.variants import Series, Variant

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("kind", ["weak", "strong"])
def test_all_ranks_find_the_same_rows(kind):
    comm = world()
    variant = Variant("D2Q9", "bgk", "ab", "float32/float32", "periodic", (16, 12))
    series = Series((variant,), backend="cpu", steps=2, strong=kind == "strong")
    (row,) = Scaling(kind, series).rows(comm)
    assert all(found == row for found in comm.allgather(row))
    planes = 12 if kind == "strong" else 12 * comm.size
    assert row["size"] == [16, planes]
    assert row["alone"]["size"] == [16, -(-planes // comm.size)]
    assert len(row["alone"]["glups"]) == comm.size == len(row["halo"]["bytes"])
    assert row["against"] == ("whole" if kind == "strong" and comm.size > 1 else "alone")
    slowest = min(row[row["against"]]["glups"])
    assert row["efficiency"] == pytest.approx(row["glups"] / comm.size / slowest)
    if comm.size > 1:
        assert [sent for sent, _ in row["link"]["points"]] == [
            2 * size for size in exchange_time.LINK_SIZES
        ]
        assert all(seconds > 0 for _, seconds in row["link"]["points"])
        # three populations of a row through each face
        assert min(row["halo"]["bytes"]) >= 2 * 3 * 16 * 4


def test_nodes_are_hosts():
    assert everything(world())["nodes"] == 1
