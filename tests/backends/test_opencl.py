"""Kernels through OpenCL give the bits of the CPU backend, for each registered name."""

import numpy as np
import pytest
from support.opencl import open_device
from support.pairs import all_pairs, label
from support.settings import OPTIONS, defined, tables
from support.slabs import Cluster


@pytest.mark.parametrize("choice", all_pairs(OPTIONS, defined), ids=label)
def test_the_bits_are_those_of_a_cpu(choice):
    case = tables(**choice)
    cpu = Cluster(case).start().run(7)
    for slabs in (1, 2):
        found = Cluster(case, slabs, open_device).start().run(7)
        np.testing.assert_array_equal(found.state(), cpu.state())
        for name, values in cpu.fields("rho", "u", "vorticity", "q_criterion").items():
            np.testing.assert_array_equal(found.fields(name)[name], values)
        np.testing.assert_array_equal(found.sums()[1], cpu.sums()[1])
