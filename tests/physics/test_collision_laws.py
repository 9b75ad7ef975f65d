"""Collisions and forces, exactly: what they conserve, where they rest, how they relax."""

from itertools import product
from random import Random

import pytest
from support.pairs import defined
from sympy import Float, Rational, Symbol, expand

from mpilbm import units
from mpilbm.codegen.model import Model
from mpilbm.registry import find, make, names

LATTICES, COLLISIONS, FORCES = names("lattices"), names("collisions"), names("forcing")
OTHERS = {  # values that a file may give
    "central_moment": {"basis": "powers", "omega_bulk": 1.3, "omega_fourth": 1.6},
    "cumulant": {f"omega_{k}": 0.5 + k / 10 for k in range(2, 11)},
}
FLOWS = [
    pytest.param(lattice, collision, id=f"{lattice}-{'-'.join(words)}")
    for lattice in LATTICES
    for words, collision in [
        *(((name, feq), {"name": name, "equilibrium": {"name": feq}})
          for name in COLLISIONS for feq in names("equilibria")),
        *(((name, "others"), {"name": name} | others) for name, others in OTHERS.items()),
    ]
    if defined(lattice, collision)
]  # fmt: skip
FORCED = [
    pytest.param(*flow.values, force, id=f"{flow.id}-{force}")
    for flow in FLOWS
    for force in [None, *FORCES]
    if force in (None, *(make("collisions", flow.values[1]).forces or FORCES))
]
over_lattices = pytest.mark.parametrize("lattice", LATTICES)
over_flows = pytest.mark.parametrize(("lattice", "collision"), FLOWS)
over_forced_flows = pytest.mark.parametrize(("lattice", "collision", "force"), FORCED)
over_forces = pytest.mark.parametrize("force", [None, *FORCES])


def symbols(text: str) -> list:
    return [Symbol(name, real=True) for name in text.split()]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def momentum(lattice, f) -> list:
    return [dot([c[a] for c in lattice.c], f) for a in range(lattice.D)]


def model(lattice, collision, force=None, offset=True) -> Model:
    """`collision` is a name or a table."""
    D = make("lattices", lattice).D
    forcing = make("forcing", {"name": force, "value": [0.0] * D}) if force else None
    return Model(find("lattices", lattice)(), make("collisions", collision), forcing, offset)


def rational_numbers(collision) -> bool:
    """Whether fractions stay fractions: no roots, no logarithms."""
    return collision.equilibrium.name != "entropic"


class Numbers:
    """Stands in for a kernel: what a model names or asks for are plain numbers."""

    def __init__(self, **arguments):
        self.arguments = arguments

    def let(self, name, value):
        return value

    def argument(self, name, type):
        return self.arguments[name]


class Fluid:
    """A collision on a lattice at rho, the velocity u that collides and force F, all symbols.

    Where there are roots and logarithms all are numbers; u is of the order of `speed`.
    """

    def __init__(self, lattice, collision, force=None, speed=0.1):
        self.model = model(lattice, collision, force)
        self.lattice, self.collision = self.model.lattice, self.model.collision
        D, self.random, self.named = self.lattice.D, Random(1), {}
        self.rational = rational_numbers(self.collision)
        self.density, *self.u = self.symbols("density u_x u_y u_z", speed)[: 1 + D]
        (self.rho,) = self.symbols("rho") if self.rational else [1 + self.density]
        self.F = self.symbols("F_x F_y F_z", 0.01)[:D] if force else [0] * D
        self.rates = dict.fromkeys(self.collision.rates(0.1, self.lattice))
        self.rates = dict(zip(self.rates, self.symbols(" ".join(self.rates), 1), strict=True))
        self.source = self.model.source(self.density, self.rho, self.u, self.F)

    def symbols(self, text, size=0.1) -> list:
        if self.rational:
            return symbols(text)
        return [Float(size * self.random.uniform(0.5, 1), 40) for _ in text.split()]

    def f(self) -> list:
        """Any populations with sum f = density and the momentum of u, less what u has of F."""
        lattice, half = self.lattice, self.model.half
        h = self.symbols(" ".join(f"h_{i}" for i in range(lattice.Q)), 0.001)
        mass = self.density - sum(h)
        j = [
            j - half * F / 2 - m
            for j, F, m in zip(
                momentum(lattice, self.feq()), self.F, momentum(lattice, h), strict=True
            )
        ]
        terms = zip(h, rational(lattice.w), lattice.c, strict=True)
        return [a + w * (mass + dot(c, j) / Rational(lattice.cs2)) for a, w, c in terms]

    def feq(self, density=None, rho=None, u=None) -> list:
        given = (self.density, self.rho, self.u) if rho is None else (density, rho, u)
        return self.collision.feq(self.lattice, *given)

    def collide(self, f, let=None) -> list:
        state = (f, self.density, self.rho, self.u, self.F, self.rates)
        return self.model.collide_at(*state, let or self._let)

    def _let(self, name, value):
        if not self.rational:
            return value
        self.named[Symbol(name)] = value
        return Symbol(name)

    def vanishes(self, expression) -> bool:
        """Once the named values are put in, the last first: most cancel before they grow."""
        for name in reversed(self.named):
            if expression.has(name):
                expression = expand(expression).xreplace({name: self.named[name]})
        return vanishes(expression)


def rational(weights) -> list:
    return [Rational(w.numerator, w.denominator) for w in weights]


def vanishes(expression) -> bool:
    """Numbers of 40 digits stand for symbols where there are roots and logarithms."""
    value = expand(expression)
    return value == 0 or (value.is_number and abs(value) < 1e-30)


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
    assert units.viscosity_from_tau(tau, share) == pytest.approx(nu, rel=1e-12)
    assert all(0 < rate < 2 for rate in operator.rates(nu, one).values())


@pytest.mark.parametrize("magic", [3 / 16, 1 / 4, 1 / 12])
def test_two_rates_have_the_magic_product(magic):
    trt = make("collisions", {"name": "trt", "magic": magic})
    rates = trt.rates(0.02, make("lattices", "D3Q19"))
    even, odd = (1 / rates[f"omega_{sign}"] - 0.5 for sign in ("plus", "minus"))
    assert even * odd == pytest.approx(magic, rel=1e-13)
