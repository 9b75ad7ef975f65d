from fractions import Fraction

import pytest

from mpilbm.core import units


@pytest.mark.parametrize("cs2", [Fraction(1, 3), 1 / 3, Fraction(1, 2)])
@pytest.mark.parametrize("nu", [1e-6, 0.0128, 1 / 6, 3.0])
def test_relaxation_time_round_trip(nu, cs2):
    tau = units.tau_from_viscosity(nu, cs2)
    assert tau > 0.5
    assert float(cs2) * (tau - 0.5) == pytest.approx(nu, rel=1e-9)
    assert units.omega_from_viscosity(nu, cs2) == pytest.approx(1 / tau)


def test_reynolds_round_trip():
    nu = units.viscosity_from_reynolds(1000, length=128, velocity=0.1)
    assert nu == pytest.approx(0.0128)
    assert units.reynolds(nu, length=128, velocity=0.1) == pytest.approx(1000)


def test_mach():
    assert units.mach(1.0, Fraction(1, 3)) == pytest.approx(3**0.5)


UNITS = units.Units(cell=2.5e-4, step=1.3e-5, density=998.0)
DIMENSIONS = {name: value for name, value in vars(units).items() if isinstance(value, tuple)}


@pytest.mark.parametrize("name", DIMENSIONS)
def test_there_and_back_from_si(name):
    for value in (1e-9, 0.37, 4e5):
        there = UNITS.to_lattice(value, DIMENSIONS[name])
        assert UNITS.to_si(there, DIMENSIONS[name]) == pytest.approx(value, rel=1e-14)


def test_numbers_without_a_dimension_are_the_same_in_si():
    """Reynolds number, drag coefficient: force / (rho u^2 A), and the pressure of rho and u."""
    nu, u, length, force, rho = 0.02, 0.05, 40.0, 1.7, 1.1
    si = UNITS.to_si
    re = si(u, units.VELOCITY) * si(length, units.LENGTH) / si(nu, units.VISCOSITY)
    assert re == pytest.approx(units.reynolds(nu, length, u))
    stress = si(rho, units.DENSITY) * si(u, units.VELOCITY) ** 2
    assert stress == pytest.approx(si(rho * u * u, units.PRESSURE))
    drag = si(force, units.FORCE) / (stress * si(length, units.LENGTH) ** 2)
    assert drag == pytest.approx(force / (rho * u * u * length**2))
    volume = si(length, units.LENGTH) ** 3
    assert si(force, units.FORCE_DENSITY) * volume == pytest.approx(
        si(force * length**3, units.FORCE)
    )
    assert si(force, units.FORCE) * si(length, units.LENGTH) == pytest.approx(
        si(force * length, units.TORQUE)
    )


def test_things_are_counted_in_words():
    found = [units.counted(n, noun) for n, noun in ((0, "rank"), (1, "entry"), (1234, "entry"))]
    assert found == ["0 ranks", "1 entry", "1,234 entries"]
