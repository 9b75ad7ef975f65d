"""A solver's arrays are freed with the last reference to it, without the cycle collector."""

import gc
import weakref

import pytest
from support.body_forces import by_plane
from support.coupled import two_fluids
from support.slabs import Cluster, box

from mpilbm.backends.cpu import CpuDevice

WALLS = [{"name": "bounce_back", "where": ["y-", "y+"], "velocity": ["0.01*sin(t)", 0.0]}]
BALL = {"name": "sphere", "centre": [3.0, 4.0], "radius": 1.6}
CASES = {
    "periodic": box("D2Q9"),
    "in place": box("D2Q9", layout={"name": "esopull"}),
    "moments": box("D2Q9", layout={"name": "moments"}, collision={"name": "regularized"}),
    "timed walls": box(
        "D2Q9",
        domain={"size": [7, 9], "periodic": [True, False]},
        boundary=WALLS,
        force={"name": "guo", "value": ["1e-5*sin(t)", 0]},
    ),
    "coupled": two_fluids("D2Q9"),
    "body": box(
        "D2Q9",
        size=[9, 9],
        output=[{"name": "body_forces", "every": 5, "split": True}],
        body=[{"label": "ball", "shape": BALL, "boundary": {"name": "bounce_back"}}],
    ),
}


@pytest.mark.parametrize("slabs", [1, 2])
@pytest.mark.parametrize("tables", CASES.values(), ids=CASES)
def test_all_arrays_are_freed_with_the_solver(tables, slabs, monkeypatch):
    arrays, allocate = [], CpuDevice.allocate

    def noted(device, count, dtype):
        array = allocate(device, count, dtype)
        arrays.append(weakref.ref(array.base))  # the memory itself: a slice keeps it, too
        return array

    for name in ("allocate", "pinned"):
        monkeypatch.setattr(CpuDevice, name, noted)
    gc.disable()
    try:
        outputs = [*tables.get("output", ()), {"name": "statistics", "every": 1}]
        cluster = Cluster(tables | {"output": outputs}, slabs).start().run(3)
        cluster.each(lambda s: (s.sums(), s.fields(("u", "vorticity"), 0, 1)))
        if cluster.solvers[0].exchanged:
            cluster.each(by_plane)
        cluster.each(lambda s: (s.statistics(True, True).sample(), s.device.synchronize()))
        solvers = [weakref.ref(solver) for solver in cluster.solvers]
        for solver in cluster.solvers:
            solver.exchanger.close()
        del solver, cluster
        assert not any(solver() for solver in solvers)
        assert len(arrays) > 3
        assert not any(array() is not None for array in arrays)
    finally:
        gc.enable()
