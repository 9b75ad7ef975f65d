"""The common parts of kernels, and the order of terms in their text, are those of SymPy."""

from random import Random

import pytest
from sympy import (
    Abs,
    Add,
    Float,
    Function,
    Max,
    Mul,
    Piecewise,
    Rational,
    cse,
    numbered_symbols,
    pi,
    sqrt,
)

from mpilbm.codegen.common_parts import common_parts
from mpilbm.codegen.printer import ordered_terms, symbol

SYMBOLS = [symbol(name) for name in ("a", "b", "c", "f_1", "f_2", "f_10", "rho", "t0", "u_x")]
NUMBERS = [-1, 2, -3, Rational(1, 2), Rational(-1, 3), Rational(4, 9)]


def expression(random, depth, numbers=NUMBERS):
    """A random expression of the kinds that kernels have; parts recur, as parts of a pool do."""
    pool = list(SYMBOLS)

    def one(depth):
        if depth == 0:
            return random.choice(pool)
        kind = random.random()
        if kind < 0.45:
            found = Add(
                *(random.choice((1, 1, -1)) * one(depth - 1) for _ in range(random.randint(2, 5)))
            )
        elif kind < 0.8:
            found = Mul(
                random.choice((1, *numbers)), *(one(depth - 1) for _ in range(random.randint(2, 3)))
            )
        elif kind < 0.9:
            found = one(depth - 1) ** random.choice((2, 3, -1, -2, Rational(1, 2), -Rational(1, 2)))
        elif kind < 0.94:
            found = Piecewise((one(depth - 1), random.choice(SYMBOLS) > 0), (0, True))
        elif kind < 0.97:
            found = Max(random.choice(SYMBOLS), Rational(1, 10), evaluate=False)
        else:
            found = random.choice((Abs, Function("held", real=True)))(one(depth - 1))
        pool.append(found)
        return found

    return [one(depth) for _ in range(random.randint(1, 6))]


@pytest.mark.parametrize("seed", range(24, 40))
def test_they_are_those_of_sympy(seed):
    wanted = expression(Random(seed), 3)
    assert repr(common_parts(wanted)) == repr(cse(wanted, numbered_symbols("t", real=True)))


def test_a_number_before_a_sum():
    a, b, c = SYMBOLS[:3]
    scaled = Mul(2, a + b, evaluate=False)
    wanted = [scaled * c, scaled, -scaled, a + b - c, 1 / (a + b) ** 2]
    assert repr(common_parts(wanted)) == repr(cse(wanted, numbered_symbols("t", real=True)))


@pytest.mark.parametrize("seed", range(10))
def test_terms_are_in_the_order_of_sympy(seed):
    random = Random(seed)
    for found in expression(random, 2, [*NUMBERS, pi, sqrt(2), Float(0.25)]):
        sums = [*found.atoms(Add), found, found + 1, 1 - found, 3 - 2 * found]
        assert [ordered_terms(one) for one in sums] == [one.as_ordered_terms() for one in sums]
