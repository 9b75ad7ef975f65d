"""Collisions and forces, exactly: what they conserve, where they rest, how they relax."""

from itertools import product

import pytest
from support.equations import (
    Fluid,
    dot,
    momentum,
    over_flows,
    over_forced_flows,
    vanishes,
)
from sympy import Rational, expand

from mpilbm.core import units
from mpilbm.core.registry import make


@over_forced_flows
def test_mass_is_kept_and_momentum_grows_by_the_force(lattice, collision, force):
    fluid = Fluid(lattice, collision, force)
    f = fluid.f()
    change = [a - b for a, b in zip(fluid.collide(f), f, strict=True)]
    assert fluid.vanishes(sum(change))
    for gained, F in zip(momentum(fluid.lattice, change), fluid.F, strict=True):
        assert fluid.vanishes(gained - F)


@over_flows
def test_equilibrium_is_where_nothing_changes(lattice, collision):
    fluid = Fluid(lattice, collision)
    feq = fluid.feq()
    left = fluid.collide(feq, let=lambda name, value: expand(value))
    assert all(vanishes(a - b) for a, b in zip(left, feq, strict=True))


@over_flows
def test_equilibrium_has_the_moments_of_the_flow(lattice, collision):
    """rho, j and j u + p; the pressure cs2 density is that of what is stored."""
    fluid = Fluid(lattice, collision, speed=1e-4)
    feq, u = fluid.feq(), fluid.u
    j = momentum(fluid.lattice, feq)
    assert vanishes(sum(feq) - fluid.density)
    found = fluid.collision.velocity(j, fluid.rho)
    assert all(vanishes(v - expected) for v, expected in zip(found, u, strict=True))
    for a, b in product(range(fluid.lattice.D), repeat=2):
        flux = dot([c[a] * c[b] for c in fluid.lattice.c], feq)
        pressure = Rational(fluid.lattice.cs2) * fluid.density if a == b else 0
        error, order = flux - j[a] * u[b] - pressure, fluid.collision.equilibrium.stress_order
        if order is None:
            assert vanishes(error)
        else:
            assert abs(error) < 10 * 1e-4 ** (order + 1)


@over_flows
def test_the_unit_of_mass_shows_where_there_is_a_rho_0(lattice, collision):
    fluid = Fluid(lattice, collision)
    (unit,), equilibrium = fluid.symbols("unit"), fluid.collision.equilibrium
    scaled = fluid.feq(unit * fluid.density, unit * fluid.rho, fluid.u)
    same = [vanishes(a - unit * b) for a, b in zip(scaled, fluid.feq(), strict=True)]
    j = [unit * fluid.rho * u for u in fluid.u]
    same += [
        v == u for v, u in zip(equilibrium.velocity(j, unit * fluid.rho), fluid.u, strict=True)
    ]
    assert all(same) == equilibrium.any_unit


@over_flows
def test_stored_deviations_are_those_from_rest(lattice, collision):
    fluid = Fluid(lattice, collision)
    still = [0] * fluid.lattice.D
    assert fluid.feq(0, 1, still) == [0] * fluid.lattice.Q
    rest = fluid.feq(1, 1, still)
    assert sum(rest) == 1
    assert min(rest) > 0
    whole = fluid.feq(fluid.rho, fluid.rho, fluid.u)
    stored = fluid.feq(fluid.rho - 1, fluid.rho, fluid.u)
    for all_of_it, base, deviation in zip(whole, rest, stored, strict=True):
        assert vanishes(all_of_it - Rational(base) - deviation)


@pytest.mark.parametrize("nu", [0.001, 0.05, 1 / 6, 2.0])
@over_flows
def test_shear_stress_relaxes_at_the_rate_of_the_viscosity(lattice, collision, nu):
    one, operator = make("lattices", lattice), make("collisions", collision)
    stress = [1e-6 * float(w) * c[0] * c[1] for w, c in zip(one.w, one.c, strict=True)]
    left = operator.collide(one, stress, 0, 1, [0] * one.D, None, operator.rates(nu, one))
    relaxed = [a - b for a, b in zip(stress, left, strict=True)]
    shear = [c[0] * c[1] for c in one.c]
    tau = dot(shear, stress) / dot(shear, relaxed)
    share = one.moment(0, 0, 1, 1) / one.cs2  # cs2, where the fourth moments are isotropic
    assert tau == pytest.approx(units.tau_from_viscosity(nu, share), rel=1e-13)
    assert all(0 < rate < 2 for rate in operator.rates(nu, one).values())


@pytest.mark.parametrize("magic", [3 / 16, 1 / 4, 1 / 12])
def test_two_rates_have_the_magic_product(magic):
    trt = make("collisions", {"name": "trt", "magic": magic})
    rates = trt.rates(0.02, make("lattices", "D3Q19"))
    even, odd = (1 / rates[f"omega_{sign}"] - 0.5 for sign in ("plus", "minus"))
    assert even * odd == pytest.approx(magic, rel=1e-13)
