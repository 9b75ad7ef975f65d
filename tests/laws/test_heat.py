"""Flows with heat against exact and published solutions; tools/heat_accuracy prints larger ones.

More than 20 s: flows run until they are steady; a pipe and a sphere in three dimensions take half.
"""

import sys

import numpy as np
import pytest
from support import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import heat_flows as flows

pytestmark = pytest.mark.usefixtures("optimised")


def test_the_square_cavity_has_the_published_heat_flux():
    """Ra = 1e4: 2.243 in de Vahl Davis (1983); second order, so that 32 cells give 0.5 %."""
    found = flows.cavity(32, 1e4, 40)
    assert abs(found["volume"] / 2.2448 - 1) < 0.005
    assert abs(found["wall"] / found["volume"] - 1) < 0.003


def test_convection_begins_at_the_critical_rayleigh_number():
    low, high = (flows.growth(16, 1707.76 * ratio) for ratio in (0.98, 1.02))
    assert low < 0 < high
    assert abs(0.98 + 0.04 * low / (low - high) - 1) < 0.003


def test_shear_disperses_a_scalar():
    """Taylor & Aris: D (1 + Pe^2/210) for long waves."""
    exact = flows.dispersion_of_wave(8)
    assert abs(exact / (1 + 64 / 210) - 1) < 1e-3
    assert abs(flows.dispersion(8, 8, lattice="D2Q5") / exact - 1) < 0.02


def test_a_channel_with_cold_walls_cools_the_fluid():
    """Graetz: Nu = 7.541 without conduction along the channel."""
    assert abs(flows.graetz_exact(1e5) - 7.5407) < 1e-3
    assert abs(flows.graetz(10, 50) / flows.graetz_exact(50) - 1) < 0.002


def test_a_pipe_with_a_cold_wall_cools_the_fluid():
    """Graetz: Nu = 3.657 without conduction along the pipe."""
    assert abs(flows.pipe_exact(1e5) - 3.657) < 1e-3
    assert abs(flows.pipe(10) / flows.pipe_exact(50) - 1) < 0.01


def test_a_uniform_flow_lowers_the_diffusivity_on_d2q5_only():
    """D - (tau - 1/2) u^2, that is D (1 - 3 u^2)."""
    u = 0.15
    still = flows.diffusivity_in_flow(0, "D2Q5")
    assert abs(still - 1) < 1e-3
    assert abs(flows.diffusivity_in_flow(u, "D2Q5") / still - (1 - 3 * u**2)) < 5e-4
    assert abs(flows.diffusivity_in_flow(u, "D2Q9") / still - 1) < 5e-4


@pytest.mark.parametrize("odd", [0.004, 0.001])
def test_trt_is_stable_at_small_diffusivity(odd):
    """A step and a Gaussian of 3 cells remain bounded; they are not free of oscillations."""
    assert flows.overshoot({"name": "trt"}, odd, "step") < 0.3
    assert flows.overshoot({"name": "trt"}, odd, "gauss") < 0.25


def test_bgk_hardly_oscillates_at_small_diffusivity_on_d2q9():
    """As the note of `check` about trt says."""
    assert flows.overshoot({"name": "bgk"}, 0.004, "step", lattice="D2Q9") < 0.02
    assert flows.overshoot({"name": "bgk"}, 0.004, "gauss", lattice="D2Q9") < 1e-3


def test_conduction_between_cylinders_is_of_second_order():
    coarse, fine = (flows.cylinders(radius, "interpolated") for radius in (6, 12))
    assert fine < 0.001
    assert np.log2(coarse / fine) > 1.8
    assert flows.cylinders(12, "bounce_back") < 0.012  # stairs: between first and second order


def test_a_hot_sphere_heats_a_flow():
    """Re = 20: 4.39 of Ranz & Marshall (1952), 4.12 of Clift, Grace & Weber (1978)."""
    assert 3.9 < flows.sphere(6, 20) < 4.4
