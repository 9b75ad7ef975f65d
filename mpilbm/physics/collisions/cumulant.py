"""Relaxation of the cumulants, which are statistically independent."""

from collections import Counter
from functools import cache
from math import factorial, prod

from pydantic import Field

from mpilbm.physics.collisions.central_moment_transform import Frame, InFrame, label, split
from mpilbm.physics.lattices import Lattice
from mpilbm.registry import register

GROUPS = (  # (orders of cumulants, number k of omega_k of their differences, of their mean)
    ([(1, 2, 0), (1, 0, 2)], 4, 3),
    ([(2, 1, 0), (0, 1, 2)], 4, 3),
    ([(2, 0, 1), (0, 2, 1)], 4, 3),
    ([(1, 1, 1)], 5, 5),
    ([(2, 2, 0), (2, 0, 2), (0, 2, 2)], 6, 7),
    ([(2, 1, 1)], 8, 8),
    ([(1, 2, 1)], 8, 8),
    ([(1, 1, 2)], 8, 8),
    ([(1, 2, 2)], 9, 9),
    ([(2, 1, 2)], 9, 9),
    ([(2, 2, 1)], 9, 9),
    ([(2, 2, 2)], 10, 10),
)


def rate(cumulants: str):
    """A field for the relaxation rate of some cumulants."""
    return Field(1.0, gt=0, lt=2, description=cumulants)


@register("collisions", "cumulant")
class Cumulant(InFrame):
    """C*_n = C_n - omega_n (C_n - Ceq_n), C_n = rho d^N/ds^n ln(sum_i f_i exp(s.c_i)) at s = 0.

    Ceq are those of a Maxwellian: cs2 rho for C_200, C_020, C_002, zero from order three on. The
    second cumulants relax with omega (omega_1 in the source), nu = cs2 (1/omega - 1/2), the others
    with omega_2 to omega_10; rates of 1 cost little. With the terms in D_x u of the source the
    viscosity has no errors of order u^2, and no wave grows at speeds up to 0.2 and nu = 1e-5.
    D3Q27, equilibrium `hermite`. [Geier et al. 2015, Comput. Math. Appl. 70, 507]
    """

    omega_2: float = rate("C_200 + C_020 + C_002: bulk viscosity")
    omega_3: float = rate("C_120 + C_102, …")
    omega_4: float = rate("C_120 - C_102, …")
    omega_5: float = rate("C_111")
    omega_6: float = rate("differences of C_220, C_202, C_022")
    omega_7: float = rate("C_220 + C_202 + C_022")
    omega_8: float = rate("C_211, C_121, C_112")
    omega_9: float = rate("C_221, C_212, C_122")
    omega_10: float = rate("C_222")

    numbers = tuple(f"omega_{k}" for k in range(2, 11))
    lattices = ("D3Q27",)

    def relaxed_populations(self, lattice: Lattice, f, density, rho, u, rates, let) -> list:
        """Relax the cumulants of the central Hermite moments k.

        The cumulants of k are those of f minus those of a Maxwellian. They and all their terms are
        small, so no digits are lost.
        """
        frame = Frame(lattice, density, rho, u, let)
        k, inverse = frame.moments(f), let("inverse_rho", 1 / rho)
        left = {(0, 0, 0): density, **_second(frame, k, rates["omega"], rates["omega_2"])}
        for orders, differences, mean in GROUPS:
            kept = [1 - rates[f"omega_{number}"] for number in (differences, mean)]
            C = [frame.named(label("C", n), k[n] - from_lower(k, n, inverse)) for n in orders]
            for n, value in zip(orders, split(C, *kept), strict=True):
                left[n] = frame.named(label("left", n), value + from_lower(left, n, inverse))
        return frame.populations(left)


def _second(frame: Frame, k: dict, omega, bulk) -> dict:
    """Post-collision second moments, C* = C - omega (C - Ceq) - 3 rho (1 - omega/2) u_a^2 D_a u_a.

    D_a u_a = -3 (omega (k_aa - mean) + bulk mean) / (2 rho) is the velocity gradient along axis a.
    Its mean over the axes and the deviations from it relax separately. The last term corrects the
    error from c_a^3 = c_a. [Geier et al. 2015, equations with D_x u]
    """
    left = {n: (1 - omega) * value for n, value in k.items() if sum(n) == 2}
    diagonal = sorted((n for n in left if 2 in n), reverse=True)  # along x, y, z
    second = [k[n] for n in diagonal]
    relaxed = split(second, 1 - omega, 1 - bulk)
    errors = [
        frame.named(f"error_{axis}", 9 * u**2 * part / 2)
        for axis, u, part in zip("xyz", frame.u, split(second, omega, bulk), strict=True)
    ]
    corrections = split(errors, 1 - omega / 2, 1 - bulk / 2)
    left |= {n: a + b for n, a, b in zip(diagonal, relaxed, corrections, strict=True)}
    return {n: frame.named(label("left", n), value) for n, value in left.items()}


def from_lower(k: dict, n: tuple, inverse):
    """The part of the central moment of orders n that consists of products of lower moments."""
    total = 0
    for (count, blocks), factor in _partitions(n).items():
        total += factor * inverse ** (count - 1) * prod(k.get(block, 0) for block in blocks)
    return total


@cache
def _partitions(n: tuple) -> dict:
    """Products of two or more moments in a cumulant: {(number of blocks, blocks): factor}.

        C_n = rho sum_P (-1)^(p-1) (p-1)! prod_(B in P) k_B / rho

    The sum is over all partitions P of the axes in n into p blocks B; moments of order one are
    zero.
    """
    elements = [axis for axis, order in enumerate(n) for _ in range(order)]
    found: Counter[tuple] = Counter()
    for blocks in _all_partitions(elements):
        if len(blocks) > 1 and min(map(len, blocks)) > 1:
            orders = sorted(tuple(block.count(axis) for axis in range(3)) for block in blocks)
            found[len(blocks), tuple(orders)] += (-1) ** len(blocks) * factorial(len(blocks) - 1)
    return found


def _all_partitions(elements: list):
    """All ways to distribute elements over blocks."""
    if not elements:
        yield []
        return
    first, *others = elements
    for blocks in _all_partitions(others):
        yield [[first], *blocks]
        for k, block in enumerate(blocks):
            yield [*blocks[:k], [first, *block], *blocks[k + 1 :]]
