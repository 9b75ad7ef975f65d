"""The equilibrium that minimises the H function."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import prod

from mpilbm.core.formulas.trees import sqrt, unnamed
from mpilbm.core.registry import register
from mpilbm.model.expressions import Expression, Let, Vector
from mpilbm.physics.algebra import dot, one_way
from mpilbm.physics.equilibria import Equilibrium
from mpilbm.physics.lattices import Lattice


@register("equilibria", "entropic")
class Entropic(Equilibrium):
    """feq minimises H = sum_i f_i ln(f_i / w_i) among all f with the same rho and rho u.

    On D2Q9 and D3Q27, with s_a = sqrt(1 + 3 u_a^2),

        feq_i = w_i rho prod_a (2 - s_a) ((2 u_a + s_a) / (1 - u_a))^c_ia

    On D3Q15 and D3Q19 this product does not conserve rho and rho u; there feq is the series of the
    minimiser in u to fourth order, which conserves both exactly. The stress is rho u u to third
    order in u. [Ansumali, Karlin & Öttinger 2003, Europhys. Lett. 63, 798; Chikatamarla, Ansumali &
    Karlin 2006, Phys. Rev. Lett. 97, 010201; Januszewski & Kostur 2014, (5)]
    """

    lattices = ("D2Q9", "D3Q15", "D3Q19", "D3Q27")
    stress_order = 3

    def feq(
        self, lattice: Lattice, density: Expression, rho: Expression, u: Vector
    ) -> list[Expression]:
        """Return Q expressions feq_i; if `density` is small, all terms are small."""
        return [w * (density + rho * g) for w, g in zip(lattice.w, growth(lattice, u), strict=True)]

    def jump(self, lattice: Lattice, rho: Expression, u: Vector, push: Vector) -> list[Expression]:
        """feq_i(rho, u + push) - feq_i(rho, u), computed with increments, see Changing."""
        pushed = [Changing(*pair) for pair in zip(u, push, strict=True)]
        changes = (g.change for g in growth(lattice, pushed))
        return [w * rho * g for w, g in zip(lattice.w, changes, strict=True)]


def growth(lattice: Lattice, u: Vector) -> list[Expression]:
    """Return feq_i / (w_i rho) - 1 for all i."""
    return product(lattice, u, excess(u)) if lattice.Q == 3**lattice.D else _series(lattice, u)


def product(lattice: Lattice, u: Vector, e: Vector) -> list[Expression]:
    """Return prod_a (1 + A_a) - 1 for each direction.

    1 + A_a is the factor of axis a relative to its value at rest: A_a = -e_a for c_a = 0 and
    2 e_a ± 3 u_a for c_a = ±1, see `excess`.
    """
    factors = [
        {0: -1 * e_a, 1: 2 * e_a + 3 * u_a, -1: 2 * e_a + -3 * u_a}
        for u_a, e_a in zip(u, e, strict=True)
    ]
    found = []
    for c in lattice.c:
        whole, *rest = (of[c_a] for of, c_a in zip(factors, c, strict=True))
        for A in rest:
            whole = whole + A * (1 + whole)
        found.append(whole)
    return found


def excess(u: Vector, let: Let = unnamed) -> list[Expression]:
    """Return e_a = s_a - 1 = 3 u_a^2 / (1 + s_a) for each axis, with one division for all axes.

    sum_i c_ia^2 feq_i = rho (1 + 2 e_a) / 3.
    """
    if isinstance(u[0], Changing):
        return [3 * (u_a * u_a) * _inverse_of_1_and_root(1 + 3 * (u_a * u_a)) for u_a in u]
    squares = [let(f"square_{a}", 3 * u_a**2) for a, u_a in enumerate(u)]
    sums = [let(f"one_and_root_{a}", 1 + sqrt(1 + square)) for a, square in enumerate(squares)]
    inverse = let("inverse_roots", 1 / prod(sums))
    return [
        let(f"excess_{a}", square * prod(sums[:a] + sums[a + 1 :]) * inverse)
        for a, square in enumerate(squares)
    ]


def _inverse_of_1_and_root(square: "Changing") -> "Changing":
    """Return 1 / (1 + sqrt(square)) of a Changing value."""
    before, after = (sqrt(part) for part in (square.value, square.value + square.change))
    fall = square.change / ((before + after) * (1 + before) * (1 + after))
    return Changing(1 / (1 + before), -fall)


def _series(lattice: Lattice, u: Vector) -> list[Expression]:
    """Return feq_i / (w_i rho) - 1 as a series in u to fourth order."""
    half, uu = Fraction(1, 2), dot(u, u)
    rest = uu * (Fraction(9, 8) * uu + -3 * half)
    found = []
    for c in lattice.c:
        sign, forward = one_way(c)
        v = [c_a * u_a for c_a, u_a in zip(forward, u, strict=True) if c_a]
        even, odd = rest, 0
        for x in v:
            xx = x * x
            even = even + Fraction(9, 2) * xx * (1 + Fraction(3, 4) * xx + -3 * half * uu)
            odd = odd + 3 * x * (1 + 3 * half * (xx + -1 * uu))
        for x, y in combinations(v, 2):
            across = 0 if len(v) > 2 else -3 * half * (uu + -1 * (x * x + y * y))
            even = even + 9 * (x * y) * (1 + Fraction(9, 4) * (x * y) + across)
            odd = odd + 27 * half * (x * y) * (x + y)
        if len(v) > 2:
            even = even + 27 * prod(v) * sum(v)
            odd = odd + 27 * prod(v)
        found.append(even + sign * odd)
    return found


@dataclass(frozen=True)
class Changing:
    """A value and its increment; sums and products also compute the increment of the result."""

    value: Expression
    change: Expression = 0

    def __add__(self, other: Expression) -> "Changing":
        other = _changing(other)
        return Changing(self.value + other.value, self.change + other.change)

    def __mul__(self, other: Expression) -> "Changing":
        other = _changing(other)
        change = self.change * other.value + (self.value + self.change) * other.change
        return Changing(self.value * other.value, change)

    __radd__, __rmul__ = __add__, __mul__


def _changing(value: Expression) -> Changing:
    """The value; with the increment 0 if it has none."""
    return value if isinstance(value, Changing) else Changing(value)
