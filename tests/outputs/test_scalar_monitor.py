"""Mean, variance and dissipation of scalars, as monitor.csv has them."""

import numpy as np
import pytest
from support.scalars import flow, setting
from support.slabs import Cluster

from mpilbm.outputs.core.totals import add_planes


def totals(cluster):
    names = cluster.solvers[0].sum_names
    return add_planes(names, np.concatenate(cluster.each(lambda s: s.sums()[1])))


def squares(T, fluid, axis):
    """Means over both sides of squared differences; next to walls and bodies those of one side."""
    found, count = np.zeros_like(T), np.zeros(T.shape)
    for sign in (-1, 1):
        there = np.roll(fluid, -sign, axis)
        if axis == 0:  # which is not periodic
            there[(-1, 0)[sign < 0]] = False
        found += np.where(there, (np.roll(T, -sign, axis) - T) ** 2, 0)
        count += there
    return found / np.maximum(count, 1)


@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q19"])
def test_the_sums_are_those_of_the_fields(lattice):
    tables = flow(lattice, **setting("body", int(lattice[1])))
    found = {}
    for slabs in (1, 2):
        cluster = Cluster(tables, slabs).start().run(5)
        found[slabs] = totals(cluster)
    assert found[1] == found[2]
    T = np.concatenate(cluster.each(lambda s: s.fields(("T",), 0, s.slab.planes)["T"]))
    fluid = ~np.concatenate(cluster.each(lambda s: s.solid(0, s.slab.planes)))
    values = T[fluid].astype(np.float64)
    axes = (0, 2) if T.shape[1] == 1 else (0, 1, 2)
    square = sum(squares(T, fluid, axis) for axis in axes)
    assert found[1]["mean_T"] == pytest.approx(values.mean(), rel=1e-12)
    assert found[1]["variance_T"] == pytest.approx(values.var(), rel=1e-10)
    assert found[1]["dissipation_T"] == pytest.approx(0.02 * square[fluid].mean(), rel=1e-12)
    assert found[1]["dissipation_T"] > 1e-5
