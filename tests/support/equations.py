"""Equations of collisions and forces with rational numbers, symbols or floating-point numbers."""

from fractions import Fraction
from random import Random

import pytest
from sympy import Float, Rational, Symbol, expand

from mpilbm.codegen.model import Macroscopic, Model
from mpilbm.core.registry import find, make, names
from support.pairs import ALL_COMBINATIONS, defined

LATTICES, COLLISIONS, FORCES = names("lattices"), names("collisions"), names("forcing")
OTHERS = {  # parameters with other values than the default
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
    """The model of a collision (a name or a table) and a force."""
    D = make("lattices", lattice).D
    forcing = make("forcing", {"name": force, "value": [0.0] * D}) if force else None
    return Model(find("lattices", lattice)(), make("collisions", collision), forcing, offset)


def rational_numbers(collision) -> bool:
    """Whether rational input gives rational results: no roots, no logarithms."""
    return collision.equilibrium.name != "entropic"


class Numbers:
    """Replaces a kernel: the values that a model names or requests are plain numbers."""

    def __init__(self, **arguments):
        self.arguments = arguments

    def let(self, name, value):
        return value

    def argument(self, name, type):
        return self.arguments[name]


class Fluid:
    """A collision on a lattice at density rho, collision velocity u and force F.

    The quantities are symbols on the smallest lattice of each collision and equilibrium, without
    a force and with the first force. Elsewhere they are random rational numbers: a polynomial
    other than zero has few roots. tools/test --all uses symbols everywhere. Equations with roots
    or logarithms use numbers of 40 digits, and u is of the order of `speed`.
    """

    def __init__(self, lattice, collision, force=None, speed=0.1):
        self.model = model(lattice, collision, force)
        self.lattice, self.collision = self.model.lattice, self.model.collision
        D, self.random, self.named = self.lattice.D, Random(1), {}
        self.rational = rational_numbers(self.collision)
        smallest = lattice == next(one for one in LATTICES if defined(one, collision))
        self.symbolic = ALL_COMBINATIONS or (smallest and force in (None, FORCES[0]))
        self.density, *self.u = self.symbols("density u_x u_y u_z", speed)[: 1 + D]
        (self.rho,) = self.symbols("rho") if self.rational else [1 + self.density]
        self.F = self.symbols("F_x F_y F_z", 0.01)[:D] if force else [Rational(0)] * D
        self.rates = dict.fromkeys(self.collision.rates(0.1, self.lattice))
        self.rates = dict(zip(self.rates, self.symbols(" ".join(self.rates), 1), strict=True))
        self.source = self.model.source(Macroscopic(self.density, self.rho, self.u), self.F)

    def symbols(self, text, size=0.1) -> list:
        if self.rational and self.symbolic:
            return symbols(text)
        if self.rational:
            return [Rational(self.random.randrange(1, 10**6), 10**6 + 3) for _ in text.split()]
        return [Float(size * self.random.uniform(0.5, 1), 40) for _ in text.split()]

    def f(self) -> list:
        """Arbitrary populations with the density and momentum of feq, less the part of F in u."""
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
        at = Macroscopic(self.density, self.rho, self.u)
        return self.model.collide_at(f, at, self.F, self.rates, let or self._let)

    def _let(self, name, value):
        if not (self.rational and self.symbolic):
            return value
        self.named[Symbol(name)] = value
        return Symbol(name)

    def vanishes(self, expression) -> bool:
        """Whether an expression is zero after substitution of the named values.

        The last value is substituted first: most terms cancel before they are expanded."""
        for name in reversed(self.named):
            if expression.has(name):
                expression = expand(expression).xreplace({name: self.named[name]})
        return vanishes(expression)


def rational(weights) -> list:
    return [Rational(w.numerator, w.denominator) for w in weights]


def vanishes(expression) -> bool:
    """Whether an expression is zero; numbers of 40 digits are zero below 1e-30."""
    value = expand(expression)
    return value == 0 or (value.is_number and abs(value) < 1e-30)


F = {"force_x": Fraction(1, 700), "force_y": Fraction(-1, 900), "force_z": Fraction(1, 1100)}
