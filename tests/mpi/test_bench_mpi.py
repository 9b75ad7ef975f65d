"""Measuring on several ranks: one figure for all, for a box that grows with their number."""

import pytest

from mpilbm.parallel.ranks import world
from mpilbm.view.bench.variants import Series, Variant

pytestmark = pytest.mark.mpi


def test_all_ranks_find_the_same_figures():
    comm = world()
    names = ("bgk", "ab", "float32/float32", "porous")
    variants = (Variant("D2Q9", *names, (16, 12)), Variant("D3Q19", *names, (16, 12)))
    rows = list(Series(variants, backend="cpu", steps=2).rows(comm))
    assert all(found == rows for found in comm.allgather(rows))
    row, refused = rows
    assert (row["size"], row["ranks"]) == ([16, 12 * comm.size], comm.size)
    assert row["cells"] == 16 * 12 * comm.size > row["fluid_cells"]
    assert "problem" not in row
    assert "has 3 dimensions" in refused["problem"]
    assert row["achieved"] == pytest.approx(row["glups"] * 1e9 * 72)
