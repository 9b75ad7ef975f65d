"""The CUDA text of bodies that conduct a scalar or have a flux does what the C text does."""

import numpy as np
import pytest
from support.conduction import conducting, enthalpy_state
from support.emulated_device import EmulatedDevice, command
from support.scalars import carried, closed, flow
from support.slabs import Cluster

pytestmark = pytest.mark.skipif(command() is None, reason="no C++ compiler")


def tables(layout: str, precision: str) -> dict:
    """A flow around a body that conducts T, and one with a flux of it."""
    solid = conducting({"name": "sphere", "centre": [2.5, 3.5], "radius": 1.4}, 0.05, 2.5)
    warm = {"shape": {"name": "sphere", "centre": [0.2, 7.5], "radius": 1.2},
            "boundary": {"name": "interpolated"}, "scalar": {"T": {"flux": 0.002}}}  # fmt: skip
    buoyancy = {"gravity": [0.0, -1e-4], "T": {"beta": 1.0, "reference": 0.5}}
    more = closed(2) | {"body": [solid, warm], "buoyancy": buoyancy}
    return flow("D2Q9", layout, precision, scalars=[carried(source="0.001*T")], **more)


@pytest.mark.parametrize("choice", [("ab", "single"), ("esopull", "double")], ids="-".join)
def test_bodies_on_a_gpu_are_those_of_the_c_text(choice):
    cpu, cut = Cluster(tables(*choice)), Cluster(tables(*choice), 2)
    gpu = Cluster(tables(*choice), 1, EmulatedDevice)
    for cluster in (cpu, gpu, cut):
        cluster.start().run(3)
    expected, fields = enthalpy_state(cpu), cpu.fields("T", "u")
    for each in (gpu, cut):
        assert np.array_equal(enthalpy_state(each), expected)
        for name, values in each.fields("T", "u").items():
            assert np.array_equal(values, fields[name])
