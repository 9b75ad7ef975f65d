"""Relaxation of the cumulants of the populations."""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from math import factorial, prod
from typing import Any

from pydantic import Field

from mpilbm.core.registry import register
from mpilbm.model.expressions import Expression, Moments, Populations, Rates
from mpilbm.physics.algebra import split
from mpilbm.physics.collisions.central_moment_transform import Frame, InFrame, label

GROUPS = (  # (orders n of the cumulants, k of the rate omega_k of their differences, k of the mean)
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


def rate(cumulants: str) -> Any:
    """A field for the relaxation rate of these cumulants."""
    return Field(1.0, gt=0, lt=2, description=f"rate of {cumulants}")


@register("collisions", "cumulant")
class Cumulant(InFrame):
    """C*_n = C_n - omega_n (C_n - Ceq_n), C_n = rho d^N/ds^n ln(sum_i f_i exp(s.c_i)) at s = 0.

    Ceq_n are the cumulants of a Maxwellian: cs2 rho for C_200, C_020 and C_002, and zero for all
    orders above two. The second cumulants relax with omega (omega_1 of Geier et al.), nu = cs2
    (1/omega - 1/2), their trace with omega_2, and the higher cumulants with omega_3 to omega_10; a
    rate of 1 costs little time. The correction by velocity gradients of Geier et al. is included:
    the viscosity has no error of order u^2, and at nu = 1e-5 no wave grows at speeds up to 0.2.
    D3Q27; equilibrium `hermite`. [Geier et al. 2015, Comput. Math. Appl. 70, 507]
    """

    omega_2: float = rate("C_200 + C_020 + C_002; sets the bulk viscosity")
    omega_3: float = rate("C_120 + C_102, …")
    omega_4: float = rate("C_120 - C_102, …")
    omega_5: float = rate("C_111")
    omega_6: float = rate("the differences of C_220, C_202, C_022")
    omega_7: float = rate("C_220 + C_202 + C_022")
    omega_8: float = rate("C_211, C_121, C_112")
    omega_9: float = rate("C_221, C_212, C_122")
    omega_10: float = rate("C_222")

    numbers = tuple(f"omega_{k}" for k in range(2, 11))
    bulk_rate = "omega_2"
    lattices = ("D3Q27",)

    def relaxed_populations(self, frame: Frame, f: Populations, rates: Rates) -> list[Expression]:
        """Relax the cumulants of the central Hermite moments k; return Q populations.

        The cumulants of k equal the cumulants of f minus those of a Maxwellian. All terms are
        small, so no digits are lost.
        """
        k, inverse = frame.moments(f), frame.let("inverse_rho", 1 / frame.cell.rho)
        left = {
            (0, 0, 0): frame.cell.density,
            **_second(frame, k, rates["omega"], rates["omega_2"]),
        }
        for orders, differences, mean in GROUPS:
            kept = [1 - rates[f"omega_{number}"] for number in (differences, mean)]
            C = [frame.named(label("C", n), k[n] - from_lower(k, n, inverse)) for n in orders]
            for n, value in zip(orders, split(C, *kept), strict=True):
                left[n] = frame.named(label("left", n), value + from_lower(left, n, inverse))
        return frame.populations(left)


def _second(
    frame: Frame, k: Moments, omega: Expression, bulk: Expression
) -> dict[tuple[int, ...], Expression]:
    """Return the post-collision second moments by their orders, {n: expression}.

        C* = C - omega (C - Ceq) - 3 rho (1 - omega/2) u_a^2 D_a u_a

    D_a u_a = -3 (omega (k_aa - mean) + bulk mean) / (2 rho) is the velocity gradient along axis a.
    The mean over the axes relaxes with `bulk`, the deviations from the mean with `omega`. The last
    term corrects the error that results from c_a^3 = c_a. [Geier et al. 2015, equations with D_x u]
    """
    left = {n: (1 - omega) * value for n, value in k.items() if sum(n) == 2}
    diagonal = sorted((n for n in left if 2 in n), reverse=True)  # along x, y, z
    second = [k[n] for n in diagonal]
    relaxed = split(second, 1 - omega, 1 - bulk)
    errors = [
        frame.named(f"error_{axis}", 9 * u**2 * part / 2)
        for axis, u, part in zip("xyz", frame.cell.u, split(second, omega, bulk), strict=True)
    ]
    corrections = split(errors, 1 - omega / 2, 1 - bulk / 2)
    left |= {n: a + b for n, a, b in zip(diagonal, relaxed, corrections, strict=True)}
    return {n: frame.named(label("left", n), value) for n, value in left.items()}


def from_lower(k: Moments, n: tuple[int, ...], inverse: Expression) -> Expression:
    """The part of the central moment k_n that consists of products of lower moments."""
    total = 0
    for (count, blocks), factor in _partitions(n).items():
        total += factor * inverse ** (count - 1) * prod(k.get(block, 0) for block in blocks)
    return total


@cache
def _partitions(n: tuple[int, ...]) -> Mapping[tuple[int, tuple[tuple[int, ...], ...]], int]:
    """The products of two or more moments in a cumulant, {(number of blocks, blocks): factor}.

        C_n = rho sum_P (-1)^(p-1) (p-1)! prod_(B in P) k_B / rho

    The sum is over all partitions P of the axes in n (axis a occurs n_a times) into p blocks B.
    Moments of order one are zero. The factors have the sign of k_n - C_n.
    """
    elements = [axis for axis, order in enumerate(n) for _ in range(order)]
    found: Counter[tuple[int, tuple[tuple[int, ...], ...]]] = Counter()
    for blocks in _all_partitions(elements):
        if len(blocks) > 1 and min(map(len, blocks)) > 1:
            orders = sorted(tuple(block.count(axis) for axis in range(3)) for block in blocks)
            found[len(blocks), tuple(orders)] += (-1) ** len(blocks) * factorial(len(blocks) - 1)
    return found


def _all_partitions(elements: list[int]) -> Iterator[list[list[int]]]:
    """Yield all partitions of elements into blocks."""
    if not elements:
        yield []
        return
    first, *others = elements
    for blocks in _all_partitions(others):
        yield [[first], *blocks]
        for k, block in enumerate(blocks):
            yield [*blocks[:k], [first, *block], *blocks[k + 1 :]]
