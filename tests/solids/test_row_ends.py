"""Reflecting at x- and x+ within the sweep gives the same bits as separate boundary links."""

import numpy as np
import pytest
from support.faces import closed
from support.row_ends import CASES, U
from support.slabs import Cluster

from mpilbm.layouts import Layout
from mpilbm.solids.box_walls import rows_end_in_walls


@pytest.mark.parametrize("name", CASES)
def test_the_bits_are_those_of_lists(name, monkeypatch):
    size, boundary, more = CASES[name]
    tables = closed("D2Q9", size, boundary, layout={"name": "ab"}, **U, **more)
    found = []
    for returning in (Layout.returning, lambda *_: ()):
        monkeypatch.setattr(Layout, "returning", returning)
        cluster = Cluster(tables, 1 + bool(found))
        assert rows_end_in_walls(cluster.case) == (not found)
        found.append(cluster.start().run(7).state())
    assert np.isfinite(found[0].astype(float)).all()
    np.testing.assert_array_equal(*found)
