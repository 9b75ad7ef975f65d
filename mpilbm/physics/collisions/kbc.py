"""The shear stress relaxes with the viscosity, all other moments such that H is minimal."""

from collections.abc import Sequence
from fractions import Fraction
from math import prod

from mpilbm.core.formulas.trees import largest, quotient
from mpilbm.core.registry import register
from mpilbm.model.expressions import Expression, Let, Moments, Populations, Rates, Vector
from mpilbm.physics.algebra import dot, expanded, pairs
from mpilbm.physics.collisions import CellState, Collision
from mpilbm.physics.collisions.central_moment_transform import label
from mpilbm.physics.collisions.entropic import TINY
from mpilbm.physics.equilibria.entropic import excess, product
from mpilbm.physics.lattices import Lattice


@register("collisions", "kbc")
class KBC(Collision):
    """f* = f - beta (2 s + gamma h), f - feq = s + h, gamma = 1/beta - (2 - 1/beta) <s|h> / <h|h>.

    s is the part of f - feq with its shear stress; all other moments sum_i c_ix^k c_iy^l c_iz^m s_i
    are zero. h is the remainder. <a|b> = sum_i a_i b_i / feq_i. beta = 1 / (2 tau), and nu = cs2
    (tau - 1/2) for any gamma. gamma minimises H after the collision to leading order: H may
    increase, but under-resolved flows are stable, and no logarithm is needed. With a force F,
    f - feq + F/2 relaxes in place of f - feq. D2Q9, D3Q27. [Karlin, Bösch & Chikatamarla 2014,
    Phys. Rev. E 90, 031302(R)]
    """

    equilibria = ("entropic",)
    linear = False
    speed = 0.6
    lattices = ("D2Q9", "D3Q27")

    def rates(self, nu: float, lattice: Lattice) -> dict[str, float]:
        """beta = 1 / (2 nu / cs2 + 1)."""
        return {"beta": 1 / (2 * nu / float(lattice.cs2) + 1)}

    def stress_rate(self, rates: Rates) -> Expression:
        """2 beta = 1 / tau."""
        return 2 * rates["beta"]

    def collided(self, cell: CellState, rates: Rates, let: Let) -> list[Expression]:
        """Return f + F - beta (2 s + gamma h), with s + h = f - feq + F/2."""
        lattice, f, density, rho = cell.lattice, cell.f, cell.density, cell.rho
        F, e = cell.source or [0] * lattice.Q, excess(cell.u, let)
        s, g = shear(cell, F, e, let), product(lattice, cell.u, e)
        parts = zip(f, F, lattice.w, g, spread(lattice, s), strict=True)
        h = [
            let(f"h_{i}", a + Fraction(1, 2) * F_i - w * (density + rho * g_i) - s_i)
            for i, (a, F_i, w, g_i, s_i) in enumerate(parts)
        ]
        ratio = let("ratio", _ratio(lattice, s, h, g, let))
        once = let("once", 1 - (2 * rates["beta"] - 1) * ratio)  # beta gamma
        twice = {n: let(label("twice", n), 2 * rates["beta"] * value) for n, value in s.items()}
        changed = zip(f, F, spread(lattice, twice), h, strict=True)
        return [a + F_i - b - once * c for a, F_i, b, c in changed]


def _ratio(lattice: Lattice, s: Moments, h: Populations, g: Populations, let: Let) -> Expression:
    """Return <s|h> / <h|h>, without a division by feq_i = w_i rho (1 + g_i).

    feq_i is a product over the axes, in which (1 + g_i) (1 + g_opp(i)) is the same for all i:
    1 / feq_i is (1 + g_opp(i)) / w_i times a factor that cancels in the ratio.
    """
    over = [let(f"over_{i}", h[i] + h[i] * g[j]) for i, j in enumerate(lattice.opp)]
    sums, squares = dict.fromkeys(s, 0), dict.fromkeys(lattice.w, 0)
    for c, w, h_i, over_i in zip(lattice.c, lattice.w, h, over, strict=True):
        squares[w] += h_i * over_i
        if axes(c) in s:
            sums[axes(c)] += sign(c) * over_i
    hh = [let(f"hh_{k}", value) / w for k, (w, value) in enumerate(squares.items())]
    weights = {axes(c): w for c, w in zip(lattice.c, lattice.w, strict=True)}
    sh = [let(label("sh", n), s[n] * value) / weights[n] for n, value in sums.items()]
    return quotient(sum(sh), largest(sum(hh), TINY))


def shear(
    cell: CellState, F: Populations, e: Vector, let: Let
) -> dict[tuple[int, ...], Expression]:
    """Return s, the part of f - feq + F/2 with its shear stress, as {axes(c): s_i * sign(c)}.

    The moments c_a c_b (a != b) and c_a^2 - c^2 / D of s are those of f - feq + F/2; all other
    moments are zero. The moments of feq are rho u_a u_b, and the deviator of
    sum_i c_ia^2 feq_i = rho (1 + 2 e_a) / 3.
    """
    lattice, f, rho, u, p = cell.lattice, cell.f, cell.rho, cell.u, {}
    for a, b in pairs(lattice.D):
        flux = u[a] * u[b] if a != b else Fraction(2, 3) * e[a]
        cc = [c[a] * c[b] for c in lattice.c]
        pushed = expanded(dot(cc, F)) * Fraction(1, 2)
        p[a, b] = let(label("p", (a, b)), dot(cc, f) + pushed - rho * flux)
    diagonal = [p.pop((a, a)) for a in range(lattice.D)]
    mean = let("p_mean", sum(diagonal) * Fraction(1, lattice.D))
    s: dict[tuple[int, ...], Expression] = {
        (a,): (value - mean) / 2 for a, value in enumerate(diagonal)
    }
    s |= {n: value / 4 for n, value in p.items()}
    return {n: let(label("s", n), value) for n, value in s.items()}


def spread(lattice: Lattice, s: Moments) -> list[Expression]:
    """The Q populations s_i from the result of `shear`."""
    return [sign(c) * s.get(axes(c), 0) for c in lattice.c]


def axes(c: Sequence[int]) -> tuple[int, ...]:
    """The axes along which a velocity c has a component."""
    return tuple(a for a, c_a in enumerate(c) if c_a)


def sign(c: Sequence[int]) -> int:
    """The sign of c_a c_b for a velocity along two axes, otherwise 1."""
    return prod(c[a] for a in axes(c)) if len(axes(c)) == 2 else 1
