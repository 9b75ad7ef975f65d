"""Equilibrium distributions, for stored deviations and for full populations.

To add an equilibrium, write one file with a class derived from `Equilibrium` and
`@register("equilibria", name)` that defines `feq`.
"""

from fractions import Fraction
from typing import ClassVar

from mpilbm.core.registry import Parameters
from mpilbm.model.case import Case
from mpilbm.model.expressions import Expression, Stress, Vector
from mpilbm.physics.algebra import dot, expanded, one_way
from mpilbm.physics.lattices import Lattice, undefined


class Equilibrium(Parameters):
    """The equilibrium distribution feq_i(rho, u) of a lattice.

    The argument `density` is the sum of the stored populations. It is rho - 1 if these are
    deviations f_i - feq_i(rho = 1, u = 0), and rho if they are full populations; the result is the
    deviation or the full feq_i accordingly. In this form small deviations lose no digits in
    differences of numbers near 1.
    """

    lattices: ClassVar[tuple[str, ...] | None] = None  # allowed lattices; None: all
    any_unit: ClassVar[bool] = True  # feq is linear in (density, rho): no fixed density rho_0
    second_order: ClassVar[bool] = False  # Hermite moments above the second order are zero
    stress_order: ClassVar[int | None] = None  # stress = rho u u to this order in u; None: exact

    def feq(
        self, lattice: Lattice, density: Expression, rho: Expression, u: Vector
    ) -> list[Expression]:
        """Return Q expressions feq_i; `u` holds D expressions."""
        raise NotImplementedError

    def jump(self, lattice: Lattice, rho: Expression, u: Vector, push: Vector) -> list[Expression]:
        """Return Q expressions feq_i(rho, u + push) - feq_i(rho, u).

        The expressions are multiplied out; the plain difference would lose digits of a small push.
        """
        after = [v + p for v, p in zip(u, push, strict=True)]
        feq = (self.feq(lattice, 0, rho, v) for v in (after, u))
        return [expanded(a - b) for a, b in zip(*feq, strict=True)]

    def velocity(self, momentum: Vector, rho: Expression) -> list[Expression]:
        """Return the velocity, D expressions, from the momentum per volume."""
        return [j / rho for j in momentum]

    def problems(self, case: Case) -> list[str]:
        """Errors: a lattice on which the equilibrium is not defined."""
        return undefined(self.name, case.lattice, self.lattices)


def with_moments(
    lattice: Lattice, density: Expression, momentum: Vector, stress: Stress
) -> list[Expression]:
    """Return Q populations with given moments of orders 0 to 2; all other moments are zero.

    `stress` = sum_i c_i c_i f_i - cs2 density 1, as {(a, b): expression} with a <= b. On lattices
    isotropic to order 4 the result is the expansion in Hermite polynomials. On other lattices the
    trace, the deviator and the shear have different weights, with M = sum_i w_i c_i c_i c_i c_i:

        f_i = w_i (density + c_i.j / cs2 + (c_i.c_i - D cs2) tr s / n
                   + sum_a (c_ia^2 - c_i.c_i / D) s_aa / (M_xxxx - M_xxyy)
                   + sum_a<b c_ia c_ib s_ab / M_xxyy),    n = sum_i w_i (c_i.c_i - D cs2)^2
    """
    cs2, D, shear = lattice.cs2, lattice.D, lattice.moment(0, 0, 1, 1)
    deviator = lattice.moment(0, 0, 0, 0) - shear
    n = sum(w * (dot(c, c) - D * cs2) ** 2 for w, c in zip(lattice.w, lattice.c, strict=True))
    trace = sum(stress[a, a] for a in range(D))
    f = []
    for w, c in zip(lattice.w, lattice.c, strict=True):
        sign, forward = one_way(c)
        cc = dot(c, c)
        weights = {
            (a, b): (c[a] ** 2 - Fraction(cc, D)) / deviator if a == b else c[a] * c[b] / shear
            for a, b in stress
        }
        even = density + (cc - D * cs2) / n * trace + dot(weights.values(), stress.values())
        f.append(w * even + sign * w * dot(forward, momentum) / cs2)
    return f
