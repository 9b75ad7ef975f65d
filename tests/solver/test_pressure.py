"""The pressure of one fluid: p = cs2 (rho - rho_0), 0 in solids, with the digits of deviations."""

import numpy as np
import pytest
from support.scalars import flow, setting
from support.slabs import PRECISIONS, Cluster, box

BALL = {
    "label": "ball",
    "shape": {"name": "sphere", "centre": [3, 2.5, 5], "radius": 1.6},
    "boundary": {"name": "bounce_back"},
}
START = {"u": ["0.03*sin(2*pi*z/nz)", "0.02*cos(2*pi*x/nx)", 0.01]}
CASES = {
    "single": {},
    "half": {"precision": PRECISIONS["half"], "layout": {"name": "aa"}},
    "moments": {"layout": {"name": "moments"}, "collision": {"name": "regularized"}},
    "indirect": {"layout": {"name": "indirect"}},
}


@pytest.mark.parametrize("name", CASES)
def test_the_pressure_is_that_of_the_density(name):
    tables = box("D3Q19", (6, 5, 11), body=[BALL], initial=START, **CASES[name])
    cluster = Cluster(tables, 2).start().run(3)
    fields = cluster.fields("rho", "pressure")
    rho, p = (fields[each].astype(float) for each in ("rho", "pressure"))
    assert np.ptp(p) > 1e-4
    assert np.abs(p - (rho - 1) / 3).max() < 1e-7  # of which rho loses the last digits
    solid = np.concatenate(cluster.each(lambda s: s.solid(0, s.slab.planes)))
    assert solid.any()
    assert not p[solid].any()


def test_a_flow_that_carries_a_scalar_has_both():
    tables = flow("D2Q9", **setting("body", 2))
    cluster = Cluster(tables).start().run(4)
    fields = cluster.fields("rho", "pressure", "T")
    fluid = ~np.concatenate(cluster.each(lambda s: s.solid(0, s.slab.planes)))
    assert np.abs(fields["pressure"] - (fields["rho"] - 1) / 3)[fluid].max() < 1e-15
    assert fields["T"][fluid].min() > 0.1
    assert not fields["pressure"][~fluid].any()


@pytest.mark.parametrize("offset", [True, False])
def test_pressures_of_a_slow_flow_keep_their_digits_with_offset(offset):
    """A wave of 1e-6 of the density, of which float32 near 1 keeps 4 bits."""
    wave = {"rho": "1 + 1e-6*cos(2*pi*x/nx)"}
    precision = PRECISIONS["single"] | {"offset": offset}
    p = Cluster(box("D2Q9", (16, 3), initial=wave, precision=precision)).start().fields("pressure")
    x = (np.arange(16) + 0.5) / 16
    error = np.abs(p["pressure"][0, 0] - 1e-6 / 3 * np.cos(2 * np.pi * x)).max() / (1e-6 / 3)
    assert error < 1e-5 if offset else 1e-3 < error < 0.2
