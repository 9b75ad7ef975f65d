"""Entropic relaxation: the over-relaxed state has the same H as the state before the collision."""

from fractions import Fraction
from math import log

from mpilbm.core.formulas.trees import largest, log2, smallest, where
from mpilbm.core.registry import register
from mpilbm.model.expressions import Expression, Let, Populations, Rates
from mpilbm.physics.algebra import dot
from mpilbm.physics.collisions import CellState, Collision
from mpilbm.physics.equilibria.entropic import Entropic as Minimiser
from mpilbm.physics.lattices import Lattice

SMALL = Fraction(1, 40)  # largest |f - feq| / f for which alpha is computed by its series
STEPS = 2  # Newton steps for larger deviations
NEAR = Fraction(999, 1000)  # largest alpha, relative to the one at which a population becomes zero
HALF = Fraction(1, 2)
TINY = Fraction(1, 10**30)


@register("collisions", "entropic")
class Entropic(Collision):
    """f* = f - alpha beta (f - feq), H(f - alpha (f - feq)) = H(f), H = sum_i f_i ln(f_i / w_i).

    beta = 1 / (2 tau), nu = cs2 (tau - 1/2). The second equation determines alpha, which is 2 near
    equilibrium. H never increases and no population becomes negative, so flows whose smallest
    scales are not resolved remain stable. feq minimises H (equilibrium `entropic`). alpha is
    computed by two Newton steps or, where all |f - feq| < f / 40, by its series in (f - feq) / f.
    Where a population is negative, f* = feq. D2Q9, D3Q27; on D3Q15 and D3Q19 feq is the minimiser
    to fourth order in u. Force: exact_difference.
    [Karlin, Ferrante & Öttinger 1999, Europhys. Lett. 47, 182; Januszewski & Kostur 2014, Comput.
    Phys. Commun. 185, 2350, 2.1.3, eq. 6 and 7]
    """

    equilibria = ("entropic",)
    linear = False
    speed = 0.21
    forces = ("exact_difference",)
    lattices = Minimiser.lattices

    def rates(self, nu: float, lattice: Lattice) -> dict[str, float]:
        """beta = 1 / (2 nu / cs2 + 1)."""
        return {"beta": 1 / (2 * nu / float(lattice.cs2) + 1)}

    def stress_rate(self, rates: Rates) -> Expression:
        """2 beta = 1 / tau."""
        return 2 * rates["beta"]

    def collided(self, cell: CellState, rates: Rates, let: Let) -> list[Expression]:
        """Return f - alpha beta (f - feq); `source` is None, see `forces`."""
        f, w, rest = cell.f, cell.lattice.w, let("rest", cell.rho - cell.density)
        feq = self.feq(cell.lattice, cell.density, cell.rho, cell.u)
        d = [a - b for a, b in zip(f, feq, strict=True)]
        pairs = zip(f, w, strict=True)
        full = [let(f"full_{i}", a + w_i * rest) for i, (a, w_i) in enumerate(pairs)]
        omega = let("omega", relaxation(full, d, rates["beta"], let))
        return [a - omega * b for a, b in zip(f, d, strict=True)]


def relaxation(f: Populations, d: Populations, beta: Expression, let: Let) -> Expression:
    """Return alpha beta from full populations f and d = f - feq; 1 if no alpha exists.

    With x = d / f and P(y) = (1 - y) ln(1 - y) + y,

        H(f - alpha d) - H(f) = sum f P(alpha x) + alpha sum d ln(1 - x)

    because ln(feq / w) is a combination of collision invariants, whose sums over d are zero.
    """
    x = [let(f"x_{i}", a / b) for i, (a, b) in enumerate(zip(d, f, strict=True))]
    near = let("alpha_near", _by_series(d, x, let))
    limit = let("limit", NEAR / largest(*x, Fraction(1, 10)))
    alpha = _by_newton(f, d, x, near, limit, let)
    size = largest(*(abs(x_i) for x_i in x))
    alpha = let("alpha", where(size, SMALL, near, alpha))
    return where(1, alpha, beta * alpha, 1)


def _by_series(d: Populations, x: Populations, let: Let) -> Expression:
    """Return alpha from its series, by two Newton steps that start at 2.

        sum_k (alpha^k / (k (k + 1)) - 1 / k) sum d x^k = 0,   k = 1, 2, 3

    The sums are divided by the first one.
    """
    dx = [let(f"dx_{i}", a * b) for i, (a, b) in enumerate(zip(d, x, strict=True))]
    first = let("first", largest(sum(dx), TINY))
    a, b = (let(f"mean_{k}", dot(dx, [x_i**k for x_i in x]) / first) for k in (1, 2))
    alpha = 2
    for step in range(2):
        value = alpha * (HALF + alpha * (a / 6 + alpha * b / 12)) - (1 + a / 2 + b / 3)
        slope = HALF + alpha * (a / 3 + alpha * b / 4)
        alpha = let(f"alpha_series_{step}", alpha - value / slope)
    return alpha


def _by_newton(
    f: Populations, d: Populations, x: Populations, alpha: Expression, limit: Expression, let: Let
) -> Expression:
    """Return alpha between 1 and `limit` from Newton steps for G(alpha) = 0.

        G(alpha) = (H(f - alpha d) - H(f)) / alpha
                 = A / alpha - sum d ln(1 - alpha x) + sum d ln(1 - x)
        A = sum f ln(1 - alpha x) + alpha sum d,   G' = -A / alpha^2

    G increases with alpha. sum d is zero except for rounding errors.
    """

    def clipped(name: str, value: Expression) -> Expression:
        return let(name, smallest(largest(value, 1), limit))

    start = let("logs", dot(d, [log2(1 - x_i) for x_i in x]))
    missed = let("missed", sum(d) / log(2.0))
    alpha = clipped("alpha_0", alpha)
    for k in range(1, STEPS + 1):
        logs = [let(f"log_{k}_{i}", log2(1 - alpha * x_i)) for i, x_i in enumerate(x)]
        A = let(f"A_{k}", smallest(dot(f, logs) + alpha * missed, -TINY))
        B = let(f"B_{k}", dot(d, logs))
        alpha = clipped(f"alpha_{k}", alpha * (2 + alpha * (start - B) / A))
    return alpha
