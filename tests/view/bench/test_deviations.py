"""Deviations of a variant from its reference: of known fields, forces and sums."""

from math import sqrt

import numpy as np
import pytest

from mpilbm.view.bench.comparison import Results, Sample, deviations

SHAPE = (4, 6)
X = np.broadcast_to(np.arange(6), SHAPE)
SUMS = {"mass": 20.0, "momentum_x": 1.0, "momentum_y": 0.0, "kinetic_energy": 0.5}


def results(u=0.0, rho=0.0, forces=(), sums=None, solid=None):
    """A flow with u_x = ±0.1 and rho = 1 ± 0.3, shifted by `u` and `rho`."""
    sign = np.where(X % 2, 1.0, -1.0)
    fields = {"u": np.stack([0.1 * sign + u, 0 * sign], axis=-1), "rho": 1 + 0.3 * sign + rho}
    solid = np.zeros(SHAPE, bool) if solid is None else solid
    return Results({4: Sample(fields, solid, SUMS | (sums or {}))}, list(forces))


def test_equal_results_deviate_by_zero():
    assert set(deviations(results(), results(), 4).values()) == {0.0}


def test_fields_relative_to_their_own_scales():
    found = deviations(results(u=0.001, rho=0.03), results(), 4)
    assert found["u"] == pytest.approx(0.001 / 0.1)
    assert found["rho"] == pytest.approx(0.03 / 0.3)


def test_density_of_a_uniform_flow_relative_to_the_dynamic_pressure():
    reference, other = results(), results()
    for each, rho in ((reference, 1.0), (other, 1.0015)):
        each.samples[4].fields["rho"] = np.full(SHAPE, rho)
    assert deviations(other, reference, 4)["rho"] == pytest.approx(0.0015 / (1.5 * 0.1**2))


def test_only_fluid_cells_count():
    solid = X == 2
    found = results(solid=solid)
    found.samples[4].fields["u"][solid] = 7
    assert deviations(found, results(solid=solid), 4)["u"] == 0


def test_sums():
    found = deviations(results(sums={"mass": 20.2, "momentum_y": 0.4}), results(), 4)
    assert found["mass"] == pytest.approx(0.01)
    assert found["momentum"] == pytest.approx(0.4 / (20 * 0.1))
    assert found["energy"] == 0


def test_forces_of_all_samples():
    reference = results(forces=[[[3.0, 4.0]], [[3.0, 4.0]]])
    found = deviations(results(forces=[[[3.0, 4.0]], [[3.0, 5.0]]]), reference, 4)
    assert found["forces"] == pytest.approx(sqrt(1 / 50))


def test_nothing_to_compare():
    rest = results()
    rest.samples[4].fields["u"] *= 0
    assert deviations(rest, rest, 4)["u"] is None
