"""What a step is said to send is what it sends."""

from types import SimpleNamespace

import numpy as np
import pytest
from support.coupled import WET, two_fluids, walled
from support.slabs import Cluster, box

from mpilbm import halo
from mpilbm.backends.cpu import CpuDevice
from mpilbm.halo import outgoing
from mpilbm.run.preflight.rank_memory import halo_bytes

BALL = {"label": "ball", "shape": {"name": "sphere", "centre": [4.2, 5.9], "radius": 1.8}}
BOUNDARIES = [
    {"name": "bounce_back"},
    {"name": "interpolated", "order": 2},
    {"name": "tamm_mott_smith"},
    {"name": "wall_model", "law": "log", "sample": 2},
]


def sent_by_the_middle(monkeypatch, tables: dict) -> tuple:
    """Three slabs without kernels, and (bytes, messages) of each exchange of the second."""
    plans, unbound = [], SimpleNamespace(bind=lambda **_: None)
    monkeypatch.setattr(
        CpuDevice, "compile", lambda _, program, roles: dict.fromkeys(program.kernels, unbound)
    )

    def prepare(exchanger, plan, arrays):
        plans.append(plan)
        return original(exchanger, plan, arrays)

    original = halo.Exchanger.prepare
    monkeypatch.setattr(halo.Exchanger, "prepare", prepare)
    cluster, sent = Cluster(tables, 3), []
    slab, precision = cluster.solvers[1].slab, cluster.case.precision.storage
    for plan in plans[len(plans) // 3 : 2 * len(plans) // 3]:  # of the middle slab
        sizes = [message.elements.stop - message.elements.start for message in outgoing(plan, slab)]
        sent.append((sum(sizes) * np.dtype(precision).itemsize, len(sizes)))
    return cluster, np.array(sent)


@pytest.mark.parametrize("layout", ["ab", "aa"])
@pytest.mark.parametrize("boundary", BOUNDARIES, ids=lambda each: each["name"])
def test_it_counts_what_boundaries_read_of_the_neighbours(monkeypatch, layout, boundary):
    ball = BALL | {"boundary": boundary}
    tables = box("D2Q9", size=[9, 12], body=[ball], layout={"name": layout})
    cluster, sent = sent_by_the_middle(monkeypatch, tables)
    slab, sent = cluster.solvers[1].slab, list(map(tuple, sent))
    assert halo_bytes(cluster.case, slab) == max(sent)
    program = cluster.solvers[1].program
    assert halo_bytes(cluster.case, slab, None, program.kernels) == max(sent)


@pytest.mark.parametrize("layout", ["ab", "aa"])
def test_it_counts_what_boundaries_read_of_the_neighbours_scalars(monkeypatch, layout):
    """A velocity away from a wall includes half of the force, here that of a scalar."""
    ball, name = BALL | {"boundary": {"name": "tamm_mott_smith"}}, {"name": layout}
    scalar = [{"label": "T", "prandtl": 1}]
    buoyancy = {"gravity": [0, -1e-4], "T": {"beta": 1}}
    tables = box("D2Q9", size=[9, 12], body=[ball], layout=name, scalar=scalar, buoyancy=buoyancy)
    cluster, sent = sent_by_the_middle(monkeypatch, tables)
    assert halo_bytes(cluster.case, cluster.solvers[1].slab) == max(map(tuple, sent))


@pytest.mark.parametrize("wetting", [None, WET])
def test_it_counts_what_walls_read_of_the_fluids_beside(monkeypatch, wetting):
    """Walls that show the mean of the fluid wait for the neighbours' fields, which come before."""
    tables = two_fluids("D2Q9", **walled("D2Q9", wetting))
    if wetting:
        tables["boundary"][1]["wetting"] = wetting
    cluster, sent = sent_by_the_middle(monkeypatch, tables)
    (_, solver, _), fluids = cluster.solvers, len(cluster.case.fluids)
    fields = len(sent) - solver.period * fluids
    assert fields == (1 if wetting else 2)
    steps = sent[fields:].reshape(-1, fluids, 2).sum(axis=1) + sent[:fields].sum(axis=0)
    assert halo_bytes(cluster.case, solver.slab) == max(map(tuple, steps))
