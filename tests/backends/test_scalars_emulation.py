"""The CUDA text of flows that carry scalars does what their C text does, bit for bit."""

import numpy as np
import pytest
from support.emulated_device import EmulatedDevice, command
from support.scalars import carried, flow, scalar_state, setting
from support.slabs import Cluster

pytestmark = pytest.mark.skipif(command() is None, reason="no C++ compiler")
CHOICES = [
    ("D2Q9", "ab", "single", "walls"),
    ("D2Q9", "aa", "half", "buoyant"),
    ("D2Q9", "esopull", "double", "body"),
    ("D3Q19", "ab", "half", "body"),
]


@pytest.mark.parametrize("choice", CHOICES, ids="-".join)
def test_scalars_on_a_gpu_are_those_of_the_c_text(choice):
    lattice, layout, precision, name = choice
    tables = flow(lattice, layout, precision, **setting(name, int(lattice[1])))
    tables["scalar"] = [*tables["scalar"], carried("c", source="-0.01*c*T")]
    cpu, gpu, cut = Cluster(tables), Cluster(tables, 1, EmulatedDevice), Cluster(tables, 2)
    for cluster in (cpu, gpu, cut):
        cluster.start().run(3)
    for label in "Tc":
        expected = scalar_state(cpu, label)
        assert np.array_equal(scalar_state(gpu, label), expected)
        assert np.array_equal(scalar_state(cut, label), expected)
    assert np.array_equal(gpu.state(), cpu.state())
    fields = gpu.fields("T", "c", "u")
    for label, values in cpu.fields("T", "c", "u").items():
        assert np.array_equal(fields[label], values)
