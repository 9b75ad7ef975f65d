"""The equilibrium with all Hermite moments of a Maxwellian that a lattice can represent."""

from collections.abc import Iterator, Mapping
from fractions import Fraction

from mpilbm.core.registry import register
from mpilbm.model.expressions import Expression, Vector
from mpilbm.physics.algebra import dot, one_way
from mpilbm.physics.equilibria import Equilibrium
from mpilbm.physics.equilibria.compressible import Compressible
from mpilbm.physics.lattices import Lattice


@register("equilibria", "hermite")
class Hermite(Equilibrium):
    """feq_i = w_i rho sum_n u^n : H^(n)(c_i) / (n! cs2^n), H^(n) the Hermite polynomials.

    On D2Q9 (n up to 4) and D3Q27 (n up to 6) the sum contains all products of polynomials of orders
    0, 1 and 2 along the axes:

        feq_i = w_i rho prod_a (1 + 3 c_ia u_a + (9 c_ia^2 - 3) u_a^2 / 2)

    Its central moments up to these orders are those of a Maxwellian. On D3Q19 n is at most 3, in
    the combinations that the lattice represents; D3Q15 has too few velocities. The viscosity has no
    errors of order u^2 except those from the missing moments u_a^3. [Malaspinas 2015,
    arXiv:1505.06900; Coreixas et al. 2017, Phys. Rev. E 96, 033306]
    """

    lattices = ("D2Q9", "D3Q19", "D3Q27")

    def feq(
        self, lattice: Lattice, density: Expression, rho: Expression, u: Vector
    ) -> list[Expression]:
        """Return Q expressions feq_i; the product P is computed as P - 1 to keep small digits."""
        if lattice.Q < 3**lattice.D:
            second = Compressible().feq(lattice, density, rho, u)
            cubes = {(b, a): rho * u[b] ** 2 * u[a] for b, a in squares_and_others(lattice)}
            return [x + y for x, y in zip(second, third_order(lattice, cubes), strict=True)]
        return [w * (density + rho * growth[0]) for w, growth in _growths(lattice, u, [0] * len(u))]

    def jump(self, lattice: Lattice, rho: Expression, u: Vector, push: Vector) -> list[Expression]:
        """feq_i(rho, u + push) - feq_i(rho, u); not expanded, D3Q27 has thousands of terms."""
        if lattice.Q < 3**lattice.D:
            return super().jump(lattice, rho, u, push)
        return [w * rho * growth[1] for w, growth in _growths(lattice, u, push)]


def _growths(
    lattice: Lattice, u: Vector, push: Vector
) -> Iterator[tuple[Fraction, tuple[Expression, Expression]]]:
    """Yield (w_i, (P_i - 1, increment of P_i from u to u + push)) for the products P_i."""
    for w, c in zip(lattice.w, lattice.c, strict=True):
        excess = rise = 0
        for c_a, u_a, p in zip(c, u, push, strict=True):
            square = Fraction(9 * c_a**2 - 3, 2)
            s = 3 * c_a * u_a + square * u_a**2
            gain = p * (3 * c_a + square * (2 * u_a + p))
            rise = gain * (1 + excess) + (1 + s + gain) * rise
            excess = s + (1 + s) * excess
        yield w, (excess, rise)


def squares_and_others(lattice: Lattice) -> list[tuple[int, int]]:
    """The axes (b, a) of all polynomials H_bba = (c_b^2 - cs2) c_a with b != a."""
    axes = range(lattice.D)
    return [(b, a) for a in axes for b in axes if b != a]


def third_order(
    lattice: Lattice, moments: Mapping[tuple[int, int], Expression]
) -> list[Expression]:
    """Return Q populations on D3Q19 with given third Hermite moments and zero lower moments.

        f_i = w_i / cs6 sum_a ((H_bba + H_cca) (m_bba + m_cca) / 2
                               + (H_bba - H_cca) (m_bba - m_cca) / 6)

    `moments`: {(b, a): m_bba = sum_i H_bba f_i}; b and c are the two axes other than a. On D3Q19
    H_bba and H_cca are not orthogonal, but their sum and their difference are; c_x c_y c_z is zero
    for all c_i. [Jacob, Malaspinas & Sagaut 2018, J. Turbul. 19, 1051]
    """
    f = []
    for w, c in zip(lattice.w, lattice.c, strict=True):
        sign, forward = one_way(c)
        H = {(b, a): (c[b] ** 2 - lattice.cs2) * forward[a] for b, a in moments}
        factors, values = [], []
        for a in range(lattice.D):
            first, second = ((b, a) for b in range(lattice.D) if b != a)
            for s, norm in ((1, 2), (-1, 6)):
                factors.append(w * (H[first] + s * H[second]) / (norm * lattice.cs2**3))
                values.append(moments[first] + s * moments[second])
        f.append(sign * dot(factors, values))
    return f
