"""What a step is said to send is what it sends."""

import numpy as np
import pytest
from slabs import Cluster, box

from mpilbm import halo
from mpilbm.halo.plan import outgoing
from mpilbm.halo_bytes import halo_bytes

BALL = {"label": "ball", "shape": {"name": "sphere", "centre": [4.2, 5.9], "radius": 1.8}}
BOUNDARIES = [
    {"name": "bounce_back"},
    {"name": "interpolated", "order": 2},
    {"name": "tamm_mott_smith"},
]


@pytest.mark.parametrize("layout", ["ab", "aa"])
@pytest.mark.parametrize("boundary", BOUNDARIES, ids=lambda each: each["name"])
def test_it_counts_what_boundaries_read_of_the_neighbours(monkeypatch, layout, boundary):
    plans = []

    def prepare(exchanger, plan, arrays):
        plans.append(plan)
        return original(exchanger, plan, arrays)

    original = halo.Exchanger.prepare
    monkeypatch.setattr(halo.Exchanger, "prepare", prepare)
    ball = BALL | {"boundary": boundary}
    cluster = Cluster(box("D2Q9", size=[9, 12], body=[ball], layout={"name": layout}), 3)
    slab = cluster.solvers[1].slab
    sent = []
    for plan in plans[len(plans) // 3 : 2 * len(plans) // 3]:  # of the middle slab
        sizes = [message.elements.stop - message.elements.start for message in outgoing(plan, slab)]
        sent.append((sum(sizes) * np.dtype("float32").itemsize, len(sizes)))
    assert halo_bytes(cluster.case, slab) == max(sent)
    program = cluster.solvers[1].program
    assert halo_bytes(cluster.case, slab, None, program.kernels) == max(sent)
