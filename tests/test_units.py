from fractions import Fraction

import pytest

from mpilbm import units


@pytest.mark.parametrize("cs2", [Fraction(1, 3), 1 / 3, Fraction(1, 2)])
@pytest.mark.parametrize("nu", [1e-6, 0.0128, 1 / 6, 3.0])
def test_relaxation_time_round_trip(nu, cs2):
    tau = units.tau_from_viscosity(nu, cs2)
    assert tau > 0.5
    assert units.viscosity_from_tau(tau, cs2) == pytest.approx(nu, rel=1e-9)
    assert units.omega_from_viscosity(nu, cs2) == pytest.approx(1 / tau)


def test_reynolds_round_trip():
    nu = units.viscosity_from_reynolds(1000, length=128, velocity=0.1)
    assert nu == pytest.approx(0.0128)
    assert units.reynolds(nu, length=128, velocity=0.1) == pytest.approx(1000)


def test_mach():
    assert units.mach(1.0, Fraction(1, 3)) == pytest.approx(3**0.5)
