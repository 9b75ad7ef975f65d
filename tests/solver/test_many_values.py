"""More than 2^31 values in a rank: planes count in 64 bits.

The box is small, but its slots are kept far apart, so that the addresses of its last planes do not
fit 32 bits; memory that is never touched costs nothing.
"""

from dataclasses import replace

import numpy as np
import pytest
from support.settings import tables
from support.slabs import Cluster

from mpilbm.backends.cpu import CpuDevice
from mpilbm.layouts.grid import Grid
from mpilbm.layouts.nodes import NodeGrid

SLOT = 2**26  # values; whole lines


@pytest.mark.parametrize(("layout", "planes"), [("aa", 6), ("moments", 7)])
def test_addresses_beyond_32_bits(layout, planes, monkeypatch):
    case = tables("D2Q9", layout, "regularized", "walls", "half")
    case["domain"]["size"] = [7, planes]
    case["body"][0]["shape"] = {"name": "sphere", "centre": [3.5, 3], "radius": 1.2}
    expected = Cluster(case).start().run(5)

    dense = Grid.dense.__func__

    def far_apart(cls, name, *sizes, **more):
        grid = dense(cls, name, *sizes, **more)
        return replace(grid, slot_stride=SLOT) if name == "f" else grid

    monkeypatch.setattr(Grid, "dense", classmethod(far_apart))
    found = Cluster(case).start()
    (solver,) = found.solvers
    last_plane = (solver.grid.interior[1] - 1) * solver.grid.plane_stride
    assert last_plane > 2**31
    assert solver.grid.plane_stride < 2**31
    found.run(5)
    assert np.array_equal(found.state(), expected.state())
    for name, values in expected.fields("rho", "u", "vorticity").items():
        assert np.array_equal(found.fields(name)[name], values)


def test_addresses_of_nodes_beyond_32_bits(monkeypatch):
    """The ghost plane below is made so large that all others lie beyond."""
    case = tables("D2Q9", "indirect", "trt", "walls", "half")
    expected = Cluster(case).start().run(5)
    stride = NodeGrid.stride.func

    def far_away(grid):
        found = stride(grid).copy()
        found[0] = SLOT * 4
        return found

    copy = CpuDevice.copy

    def of_nodes(self, target, source, stream=None):
        """Of the plane that is made large only the nodes: to touch the rest takes 20 s."""
        if target.size < SLOT * 4:
            return copy(self, target, source, stream)
        rows = (array.reshape(-1, SLOT * 4)[:, :4096] for array in (target, source))
        return np.copyto(*rows)

    monkeypatch.setattr(NodeGrid, "stride", property(far_away))
    monkeypatch.setattr(CpuDevice, "copy", of_nodes)
    monkeypatch.setattr(CpuDevice, "upload", lambda self, array: np.ravel(array))
    monkeypatch.setattr(CpuDevice, "require", lambda *_, **of: None)
    found = Cluster(case).start()
    (solver,) = found.solvers
    assert solver.grid.piece(1, 0, 1)[0] > 2**31
    assert np.array_equal(found.run(5).state(), expected.state())
