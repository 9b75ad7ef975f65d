"""Collisions in the frame of the flow against moments and cumulants by definition, exactly."""

from fractions import Fraction
from itertools import combinations, product
from math import comb, prod

import numpy as np
import pytest

from mpilbm.core.registry import make

RNG = np.random.default_rng(7)
OMEGA = Fraction(13, 10)


def number() -> Fraction:
    return Fraction(int(RNG.integers(-1000, 1000)), 10007)


class Cell:
    """Full populations before and after a collision without force, and what they add up to."""

    def __init__(self, lattice, table):
        self.lattice, collision = make("lattices", lattice), make("collisions", table)
        one, numbers = self.lattice, (key for key in table if key.startswith("omega"))
        rates = {"omega": OMEGA} | {key: Fraction(table[key]) for key in numbers}
        still = collision.feq(one, 1, 1, [0] * one.D)
        stored = [w * number() for w in one.w]
        self.before = [a + b for a, b in zip(stored, still, strict=True)]
        self.rho = sum(self.before)
        self.u = [self.moment(self.before, *self.unit(a)) / self.rho for a in range(one.D)]
        state = (sum(stored), self.rho, self.u, None, rates)
        left = collision.collide(one, stored, *state)
        self.after = [a + b for a, b in zip(left, still, strict=True)]

    def unit(self, *axes) -> tuple:
        """The orders with one for each axis given."""
        return tuple(axes.count(a) for a in range(self.lattice.D))

    def moment(self, f, *n, about=None, sigma=0):
        """sum_i f_i prod_a H_n_a(c_ia - u_a), H_2(c) = c^2 - sigma."""
        total = 0
        for f_i, c in zip(f, self.lattice.c, strict=True):
            shifted = [a - b for a, b in zip(c, about or [0] * len(c), strict=True)]
            H = [(1, a, a * a - sigma) for a in shifted]
            total += f_i * prod(values[order] for values, order in zip(H, n, strict=True))
        return total

    def central(self, f, sigma) -> dict:
        return {n: self.moment(f, *n, about=self.u, sigma=sigma) for n in self.orders()}

    def cumulants(self, f) -> dict:
        """rho times the cumulants of f / rho, by their recursion from the moments."""
        m = {n: self.moment(f, *n) / self.rho for n in self.orders()}
        found = {}
        for n in sorted(m, key=sum):
            if not sum(n):
                continue
            first = next(a for a, order in enumerate(n) if order)
            rest = [order - (a == first) for a, order in enumerate(n)]
            found[n] = m[n]
            for k in product(*(range(order + 1) for order in rest)):
                if list(k) != rest:
                    ways = prod(map(comb, rest, k))
                    lower = tuple(order + (a == first) for a, order in enumerate(k))
                    found[n] -= ways * found[lower] * m[tuple(map(int.__sub__, rest, k))]
        return {n: self.rho * value for n, value in found.items()}

    def orders(self):
        return product(range(3), repeat=self.lattice.D)


ORDERS = {3: "omega_third", 4: "omega_fourth", 5: "omega_fifth", 6: "omega_sixth"}


@pytest.mark.parametrize("basis", ["hermite", "powers"])
@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q27"])
def test_central_moments_relax_each_at_its_rate(lattice, basis):
    D, sigma = make("lattices", lattice).D, Fraction(basis == "hermite", 3)
    rates = {"omega_bulk": 1.25} | {ORDERS[n]: 0.5 + n / 8 for n in range(3, 2 * D + 1)}
    cell = Cell(lattice, {"name": "central_moment", "basis": basis} | rates)
    k, left = cell.central(cell.before, sigma), cell.central(cell.after, sigma)
    for n in k:
        feq = cell.rho * prod((1, 0, Fraction(1, 3) - sigma)[order] for order in n)
        if sum(n) > 2:
            assert left[n] - feq == (1 - Fraction(rates[ORDERS[sum(n)]])) * (k[n] - feq)
        elif 2 not in n:
            assert left[n] == (k[n] if sum(n) < 2 else (1 - OMEGA) * k[n])
    diagonal = [cell.unit(a, a) for a in range(D)]
    for n in diagonal[1:]:
        assert left[n] - left[diagonal[0]] == (1 - OMEGA) * (k[n] - k[diagonal[0]])
    rest = D * cell.rho * (Fraction(1, 3) - sigma)
    excess = [sum(values[n] for n in diagonal) - rest for values in (k, left)]
    assert excess[1] == (1 - Fraction(rates["omega_bulk"])) * excess[0]


def numbered(k: int) -> float:
    return 0.5 + k / 8


def test_cumulants_relax_as_in_the_source():
    rates = {f"omega_{k}": numbered(k) for k in range(2, 11)}
    cell = Cell("D3Q27", {"name": "cumulant"} | rates)
    C, left = cell.cumulants(cell.before), cell.cumulants(cell.after)

    def relax(rate, *signed):
        """sum of signed cumulants times 1 - omega_rate."""
        before, after = (sum(sign * values[n] for sign, n in signed) for values in (C, left))
        assert after == (1 - (Fraction(numbered(rate)) if rate > 1 else OMEGA)) * before

    for n in ((1, 1, 0), (1, 0, 1), (0, 1, 1)):
        relax(1, (1, n))
    for a, b in (((1, 2, 0), (1, 0, 2)), ((2, 1, 0), (0, 1, 2)), ((2, 0, 1), (0, 2, 1))):
        relax(3, (1, a), (1, b))
        relax(4, (1, a), (-1, b))
    relax(5, (1, (1, 1, 1)))
    relax(6, (1, (2, 2, 0)), (-2, (2, 0, 2)), (1, (0, 2, 2)))
    relax(6, (1, (2, 2, 0)), (1, (2, 0, 2)), (-2, (0, 2, 2)))
    relax(7, (1, (2, 2, 0)), (1, (2, 0, 2)), (1, (0, 2, 2)))
    for n, rate in (((2, 1, 1), 8), ((1, 2, 1), 8), ((1, 1, 2), 8)):
        relax(rate, (1, n))
    for n, rate in (((1, 2, 2), 9), ((2, 1, 2), 9), ((2, 2, 1), 9), ((2, 2, 2), 10)):
        relax(rate, (1, n))


def test_second_cumulants_are_corrected_as_in_the_source():
    """The equations with D_x u, D_y v, D_z w, written out."""
    bulk = Fraction(5, 4)
    cell = Cell("D3Q27", {"name": "cumulant", "omega_2": 1.25})
    (xx, yy, zz), (left_xx, left_yy, left_zz) = (
        [values[cell.unit(a, a)] for a in range(3)]
        for values in map(cell.cumulants, (cell.before, cell.after))
    )
    rho, (u, v, w) = cell.rho, cell.u
    D_xu = -OMEGA * (2 * xx - yy - zz) / (2 * rho) - bulk * (xx + yy + zz - rho) / (2 * rho)
    D_yv = D_xu + 3 * OMEGA / (2 * rho) * (xx - yy)
    D_zw = D_xu + 3 * OMEGA / (2 * rho) * (xx - zz)
    half = 3 * rho * (1 - OMEGA / 2)
    assert left_xx - left_yy == (1 - OMEGA) * (xx - yy) - half * (D_xu * u**2 - D_yv * v**2)
    assert left_xx - left_zz == (1 - OMEGA) * (xx - zz) - half * (D_xu * u**2 - D_zw * w**2)
    assert left_xx + left_yy + left_zz == (
        rho * bulk
        + (1 - bulk) * (xx + yy + zz)
        - 3 * rho * (1 - bulk / 2) * (D_xu * u**2 + D_yv * v**2 + D_zw * w**2)
    )


@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q19", "D3Q27"])
def test_hermite_moments_follow_from_the_second_ones(lattice):
    """a_n = rho u^n + (1 - omega) sum over pairs of indices A_ab u^(n-2)."""
    cell = Cell(lattice, {"name": "recursive_regularized"})
    full, cs2 = cell.lattice.Q == 3**cell.lattice.D, Fraction(1, 3)
    A = {
        (a, b): cell.moment(cell.before, *cell.unit(a, b), sigma=cs2)
        - cell.rho * cell.u[a] * cell.u[b]
        for a, b in product(range(cell.lattice.D), repeat=2)
    }
    for n in cell.orders():
        indices = [a for a, order in enumerate(n) for _ in range(order)]
        if not full and (len(indices) > 3 or n == (1, 1, 1)):
            continue
        expected = cell.rho * prod(cell.u[a] for a in indices)
        for i, j in combinations(range(len(indices)), 2):
            others = (cell.u[a] for k, a in enumerate(indices) if k not in (i, j))
            expected += (1 - OMEGA) * A[indices[i], indices[j]] * prod(others)
        assert cell.moment(cell.after, *n, sigma=cs2) == expected
