"""The CUDA text of flows that carry scalars does what their C text does, bit for bit."""

import numpy as np
import pytest
from support.device_flows import KINDS, assert_same_statistics, carrying
from support.emulated_device import EmulatedDevice, command
from support.scalars import scalar_state
from support.slabs import Cluster, assert_same

from mpilbm.solver.scalar_transport import over_owners

pytestmark = pytest.mark.skipif(command() is None, reason="no C++ compiler")
CHOICES = [
    ("D2Q9", "ab", "half", "buoyant"),
    ("D2Q9", "aa", "half", "body"),
    ("D3Q19", "esopull", "single", "body"),
]


@pytest.mark.parametrize("choice", CHOICES, ids="-".join)
def test_scalars_on_a_gpu_are_those_of_the_c_text(choice):
    """The state and fields on one slab and on two, and the sums of samples."""
    clusters = [
        Cluster(carrying(*choice), *more)
        for more in ((), (1, EmulatedDevice), (2, None), (2, EmulatedDevice))
    ]
    cpu, *others = (each.start().run(3) for each in clusters)
    for each in others:
        for label in "Tc":
            assert np.array_equal(scalar_state(each, label), scalar_state(cpu, label))
        assert_same(cpu, each, ("T", "c", "u"))
    for kind in KINDS:
        assert_same_statistics(clusters[:2], kind)


def fluxes(cluster):
    links = cluster.solvers[0].transport.fluxes[0]
    return over_owners(links.owners, [(links.groups, links.start()())])


@pytest.mark.parametrize("choice", CHOICES[1:], ids="-".join)
def test_fluxes_on_a_gpu_are_those_of_the_c_text(choice):
    """Fluxes through walls and the body, which sum to the gain, and through planes."""
    found, half = [], "half" in choice
    for more in ((), (1, EmulatedDevice)):
        cluster = Cluster(carrying(*choice), *more).start().run(2)
        unit = 2**15 if half else 1  # of stored populations
        before = scalar_state(cluster).sum(dtype=float) / unit
        moved, through = fluxes(cluster), cluster.solvers[0].transport.start(0)()
        found.append([moved, through])
        gained = scalar_state(cluster.run(1)).sum(dtype=float) / unit - before
        assert moved.sum() == pytest.approx(gained, abs=(1e-3 if half else 1e-6) * abs(before))
        assert np.abs(moved).sum() > 1e-2
    for of_cpu, of_gpu in zip(*found, strict=True):
        assert np.array_equal(of_cpu, of_gpu)
