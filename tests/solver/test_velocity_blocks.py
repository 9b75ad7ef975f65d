"""Sums and derived fields do not depend on the size of the blocks of planes."""

import numpy as np
import pytest
from support.slabs import Cluster, box

from mpilbm.solver import memory_plan

WALLS = {
    "domain": {"size": [6, 5, 11], "periodic": [False, True, False]},
    "boundary": [{"name": "bounce_back", "where": ["x-", "x+", "z-", "z+"]}],
}
CASES = {
    "periodic": box("D3Q19", (6, 5, 11)),
    "walls": box("D3Q19", **WALLS),
    "staggered": box("D3Q13", (6, 4, 12), collision={"name": "mrt"}),
    "2D": box("D2Q9", (5, 13)),
    "nodes": box("D3Q19", (6, 5, 11), layout={"name": "indirect"}),
}


def found(tables, slabs):
    steady = {"steps": 7, "steady": {"every": 1, "tolerance": 1e-9}}
    cluster = Cluster(tables | {"run": steady}, slabs).start().run(3)
    _, sums = cluster.sums()
    change = np.concatenate(cluster.each(lambda s: s.start_change()()))
    part = cluster.each(lambda s: s.fields(["vorticity"], 1, s.slab.planes)["vorticity"])
    fields = cluster.fields("vorticity", "q_criterion", "u")
    return [
        sums,
        change,
        np.concatenate(part),
        *fields.values(),
        *cluster.each(lambda s: s.speeds()),
    ]


@pytest.mark.parametrize("slabs", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_blocks_of_planes_change_nothing(name, slabs, monkeypatch):
    whole = found(CASES[name], slabs)
    monkeypatch.setattr(memory_plan, "BLOCK_BYTES", 1)
    for least in (2, 4):
        monkeypatch.setattr(memory_plan, "LEAST_PLANES", least)
        for one, other in zip(whole, found(CASES[name], slabs), strict=True):
            assert np.array_equal(one, other)
    assert np.abs(whole[3]).max() > 0
