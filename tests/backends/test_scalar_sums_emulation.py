"""Fluxes, sums and samples of scalars: the CUDA text gives the numbers of the C text."""

import numpy as np
import pytest
from support.emulated_device import EmulatedDevice, command
from support.scalars import carried, flow, scalar_state, setting
from support.slabs import Cluster

from mpilbm.solver.scalar_transport import over_owners

pytestmark = pytest.mark.skipif(command() is None, reason="no C++ compiler")
NUSSELT = {"name": "nusselt", "every": 1, "scalar": "T", "axis": "y", "difference": 1.0}
SAMPLES = {"name": "statistics", "every": 1}


def fluxes(cluster):
    links = cluster.solvers[0].transport.fluxes[0]
    return over_owners(links.owners, [(links.groups, links.start()())])


@pytest.mark.parametrize(
    ("lattice", "layout", "precision"), [("D2Q9", "aa", "half"), ("D3Q19", "esopull", "single")]
)
def test_sums_on_a_gpu_are_those_of_the_c_text(lattice, layout, precision):
    tables = flow(lattice, layout, precision, **setting("body", int(lattice[1])))
    tables["scalar"] = [*tables["scalar"], carried("c")]
    tables["output"] = [NUSSELT, SAMPLES]
    found = []
    for more in ((), (1, EmulatedDevice)):
        cluster = Cluster(tables, *more).start().run(2)
        solver = cluster.solvers[0]
        statistics = [solver.statistics(*along) for along in ((False, False), (True, False))]
        for each in statistics:
            each.sample()
            each.sample()
        samples = [each.read(0, solver.slab.planes) for each in statistics]
        unit = 2**15 if precision == "half" else 1  # of stored populations
        before = scalar_state(cluster).sum(dtype=float) / unit
        moved = fluxes(cluster)
        found.append([moved, solver.transport.start(0)(), solver.sums()[1], *samples])
        gained = scalar_state(cluster.run(1)).sum(dtype=float) / unit - before
        accuracy = {"half": 1e-3, "single": 1e-6}[precision]
        assert moved.sum() == pytest.approx(gained, abs=accuracy * abs(before))
        assert np.abs(moved).sum() > 1e-2
    for of_cpu, of_gpu in zip(*found, strict=True):
        assert np.array_equal(of_cpu, of_gpu)
