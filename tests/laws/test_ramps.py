"""Ramps of given velocities and forces: the same flow as with the formula, for any slabs."""

import numpy as np
import pytest
from support.faces import closed, table
from support.slabs import Cluster, assert_same, box

from mpilbm import codegen
from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.solids.box_walls import constant_velocity

N, RISE = 16, "(1 - cos(pi*min(t/16, 1)))/2"
AT_REST = {"rho": 1, "u": [0.0, 0.0]}


def channel(layout: str, u="0.1*y/ny", **inlet) -> dict:
    """An inlet, an outlet and a sliding wall; `inlet`: more keys of both velocities."""
    ends = [
        {"name": "regularized", "where": ["x-"], "velocity": [u, 0.0]} | inlet,
        {"name": "zou_he", "where": ["x+"], "rho": 1.0},
        table("bounce_back", "y-", D=2),
        {"name": "bounce_back", "where": ["y+"], "velocity": [0.1, 0.0]} | inlet,
    ]
    return closed("D2Q9", [12, 9], ends, layout={"name": layout}, initial=AT_REST)


def spelt_out(layout: str) -> dict:
    tables = channel(layout, f"0.1*y/ny*{RISE}")
    tables["boundary"][3]["velocity"] = [f"0.1*{RISE}", 0.0]
    return tables


@pytest.mark.parametrize("layout", ["ab", "moments"])
def test_a_ramp_is_the_formula(layout):
    expected, found = (Cluster(t).start() for t in (spelt_out(layout), channel(layout, ramp=N)))
    for _ in range(2):  # during the ramp and after it
        u = [each.run(11).fields("u")["u"] for each in (expected, found)]
        assert np.abs(u[1] - u[0]).max() < 1e-15
    assert_same(found, Cluster(channel(layout, ramp=N), 3).start().run(22))
    half = Cluster(channel(layout, ramp=N), 2).start().run(9).state()
    again = Cluster(channel(layout, ramp=N)).restore(half, 9).run(13)
    assert np.array_equal(again.state(), found.state())


@pytest.mark.parametrize("forcing", ["guo", "exact_difference"])
def test_the_force_of_a_periodic_box_rises(forcing):
    """u(t) = g (sum of s over the steps, half of the last one) for any collision."""
    still = {"rho": 1, "u": [0.0, 0.0]}
    force = {"name": forcing, "value": [1e-4, 0.0], "ramp": N}
    precision = {"compute": "float64", "storage": "float64"}
    tables = box("D2Q9", force=force, initial=still, precision=precision)
    u = Cluster(tables).start().run(24).fields("u")["u"]
    s = (1 - np.cos(np.pi * np.minimum(np.arange(25) / N, 1))) / 2
    assert np.allclose(u[..., 0], 1e-4 * (s.sum() - s[0] / 2 - s[-1] / 2), rtol=1e-12)
    assert np.abs(u[..., 1]).max() < 1e-15


def test_kernel_texts_have_no_ramp():
    """Numbers remain numbers: only a formula of places becomes a product."""
    uniform = [parse_case(channel("ab", 0.1, **more), "test.toml") for more in ({}, {"ramp": N})]
    assert codegen.structure(uniform[0]) == codegen.structure(uniform[1])


def test_a_wall_with_a_ramp_is_not_constant():
    still, rising = (parse_case(channel("ab", **m), "test.toml") for m in ({}, {"ramp": N}))
    assert constant_velocity(still.boundaries[3]) == (0.1, 0.0)
    assert constant_velocity(rising.boundaries[3]) is None


def test_long_formulas_rise():
    """Those of the greatest length that is allowed, also of forces."""
    long = "max(" + ", ".join(["1e-5*y/ny"] * 44) + ")"
    assert 480 < len(long) <= 500
    force = {"name": "guo", "value": [long, 0.0], "ramp": N}
    found = Cluster(channel("ab", long, ramp=N) | {"force": force}).start().run(4)
    assert np.isfinite(found.state()).all()


def test_times_with_units():
    units = {"cell": 1e-3, "step": 1e-4, "density": 1000}
    case = parse_case(channel("ab", ramp="50 ms") | {"units": units}, "test.toml")
    assert case.boundaries[0].ramp == 500


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"velocity": None, "rho": 1.0}, "has a ramp but no velocity"),
        ({"velocity": np.full((9, 2), 0.01)}, "a velocity with a value for each cell"),
        ({"ramp": -1}, "greater than or equal to 0|allowed: >= 0"),
        ({"velocity": ["0.05) + (0.01", 0.0]}, r"velocity.0: '0.05\) \+ \(0.01' is not a formula"),
        ({"velocity": ["0.05/(y - y)", 0.0]}, r"velocity.0: '0.05/\(y - y\)' is inf at t = 0"),
    ],
)
def test_ramps_that_are_refused(change, message):
    tables = channel("ab", ramp=N)
    inlet = tables["boundary"][0] | change
    tables["boundary"][0] = {key: each for key, each in inlet.items() if each is not None}
    with pytest.raises(CaseError, match=message):
        parse_case(tables, "test.toml")
