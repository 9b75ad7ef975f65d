"""Forces, exactly: what they give to the fluid, whatever collides it.

More than 20 s: exact fractions, for each pair of a lattice and a collision with each force.
"""

from dataclasses import replace
from fractions import Fraction

import pytest
from support.equations import (
    COLLISIONS,
    FORCES,
    LATTICES,
    F,
    Fluid,
    Numbers,
    dot,
    model,
    momentum,
    over_flows,
    over_forced_flows,
    over_forces,
    over_lattices,
    rational_numbers,
    vanishes,
)
from support.pairs import defined

from mpilbm.codegen.model import Macroscopic
from mpilbm.core.registry import find
from mpilbm.physics import algebra


@pytest.mark.parametrize("force", FORCES)
@over_lattices
def test_force_term_has_the_moments_0_F_and_uF_plus_Fu(lattice, force):  # noqa: N802
    """With u the velocity of the flow, half of the force in it."""
    fluid = Fluid(lattice, "bgk", force)
    one, F, missing = fluid.lattice, fluid.F, 1 - fluid.model.half
    u = [v + missing * f / (2 * fluid.rho) for v, f in zip(fluid.u, F, strict=True)]
    assert vanishes(sum(fluid.source))
    for a in range(one.D):
        assert vanishes(momentum(one, fluid.source)[a] - F[a])
        for b in range(one.D):
            stress = dot([c[a] * c[b] for c in one.c], fluid.source)
            assert vanishes(stress - u[a] * F[b] - F[a] * u[b])


def one_cell(model, rho, u, steps, number=None):
    """Populations of a periodic box of one cell, rho and u after some steps."""
    number = number or (Fraction if rational_numbers(model.collision) else float)
    kernel = Numbers(**{name: number(value) for name, value in F.items()})
    rates = {k: number(v) for k, v in model.collision.rates(0.02, model.lattice).items()}
    density = number(rho) - model.offset
    f = model.initial(kernel, density, [number(v) for v in u[: model.lattice.D]])
    for _ in range(steps):
        f = model.collide(kernel, f, rates)
    _, rho, u = model.macroscopic(kernel, f, -1)
    return f, rho, u


U = (Fraction(1, 20), Fraction(1, 30), Fraction(-1, 40))


def same(found, expected) -> bool:
    """Equal where both are fractions."""
    exact = isinstance(found, Fraction)
    return found == expected if exact else float(found) == pytest.approx(float(expected), abs=1e-15)


@over_forced_flows
def test_force_is_what_the_momentum_gains_per_step(lattice, collision, force):
    rho = Fraction(11, 10)
    given = model(lattice, collision, force, True)
    gains = given.collision.velocity(list(F.values()) if force else [0] * 3, rho)
    for steps in (0, 1, 3):
        _, density, u = one_cell(given, rho, U, steps)
        assert same(density, rho)
        for v, start, gain in zip(u, U, gains, strict=False):
            assert same(v, start + steps * gain)


@over_flows
def test_exact_difference_leaves_a_uniform_fluid_in_equilibrium(lattice, collision):
    """At the velocity that all of the force has reached: half of it is ahead of u."""
    given, rho = model(lattice, collision, "exact_difference"), Fraction(11, 10)
    push = given.collision.velocity(list(F.values()), rho)
    for steps in (0, 1, 3):
        f, _, u = one_cell(given, rho, U, steps)
        ahead = [v + p / 2 for v, p in zip(u, push, strict=False)]
        feq = given.collision.feq(given.lattice, rho - 1, rho, ahead)
        assert all(same(a, b) for a, b in zip(f, feq, strict=True))


@over_forced_flows
def test_offset_does_not_show(lattice, collision, force):
    given = (1.01, [float(v) for v in U], 4, float)
    shifted = model(lattice, collision, force, True)
    f, rho, u = one_cell(shifted, *given)
    whole, rho_whole, u_whole = one_cell(model(lattice, collision, force, False), *given)
    rest = shifted.collision.feq(shifted.lattice, 1.0, 1.0, [0.0] * shifted.lattice.D)
    assert [float(a + b) for a, b in zip(f, rest, strict=True)] == pytest.approx(
        [float(a) for a in whole], abs=1e-15
    )
    assert [rho, *map(float, u)] == pytest.approx([rho_whole, *map(float, u_whole)], abs=1e-14)


def over_lattices_and(allowed):
    """All lattices with the collisions that are defined there and allowed."""
    return pytest.mark.parametrize(
        ("lattice", "collision"),
        [
            (lattice, name)
            for lattice in LATTICES
            for name in COLLISIONS
            if allowed(find("collisions", name)) and defined(lattice, name)
        ],
    )


@over_forces
@over_lattices_and(lambda collision: collision.second_order)
def test_nothing_is_left_beyond_the_second_moments(lattice, collision, force):
    """f*_i is w_i times its first three Hermite moments: all that `moments` stores."""
    fluid = Fluid(lattice, collision, force)
    f_star = fluid.collide(fluid.f())
    again = algebra.populations(fluid.lattice, *algebra.moments_of(fluid.lattice, f_star))
    assert all(vanishes(a - b) for a, b in zip(f_star, again, strict=True))


@over_lattices_and(lambda collision: collision.recursive)
def test_a_recursive_collision_is_rebuilt_from_its_moments(lattice, collision):
    """f* follows from rho, u and A: all populations at once, and each of them alone."""
    fluid = Fluid(lattice, collision)
    one, rho, u = fluid.lattice, fluid.rho, fluid.u
    f_star = fluid.collide(fluid.f())
    density, _, second = algebra.moments_of(one, f_star)
    numbered = zip(second, algebra.pairs(one.D), strict=True)
    A = [m - rho * u[a] * u[b] for m, (a, b) in numbered]
    together = fluid.collision.rebuilt(one, density, rho, u, A)
    apart = fluid.collision.rebuilt(one, density, rho, u, A, only=range(one.Q))
    for found in (together, apart):
        assert all(fluid.vanishes(a - b) for a, b in zip(f_star, found, strict=True))


@over_forces
@over_lattices_and(lambda collision: collision.recursive)
def test_the_simpler_collision_leaves_the_same_moments(lattice, collision, force):
    """Density, momentum and second moments, with every force."""
    fluid = Fluid(lattice, collision, force)
    f, at = fluid.f(), Macroscopic(fluid.density, fluid.rho, fluid.u)
    simpler = replace(fluid.model, collision=fluid.collision.up_to_second())
    assert simpler.collision.second_order
    left = (one.collide_at(f, at, fluid.F, fluid.rates) for one in (fluid.model, simpler))
    found, expected = (algebra.moments_of(fluid.lattice, f_star) for f_star in left)
    assert vanishes(found[0] - expected[0])
    for values in zip([*found[1], *found[2]], [*expected[1], *expected[2]], strict=True):
        assert vanishes(values[0] - values[1])
