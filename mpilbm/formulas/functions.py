"""What equations need beyond + - * /: of numbers their value, of symbols an expression."""

import math
from fractions import Fraction
from functools import cache

import numpy as np


def unnamed(name: str, expression):
    """A `let` where there is no kernel: the expression itself."""
    return expression


def sqrt(x):
    """The square root."""
    if isinstance(x, np.ndarray):
        return np.sqrt(x)
    return math.sqrt(x) if isinstance(x, float) else _sympy().sqrt(x)


def power(base, exponent: int):
    """A power of an expression, whose base is kept whole.

    SymPy makes a**18 / b**18 of (a/b)**18, also in the branches of a Piecewise, and in float32
    384**18 is infinite. A power of a power is one power: as a base it would be printed over again.
    """
    whole = base.is_Atom or base.is_Add or (base.is_Pow and base.exp.is_Integer)
    return (base if whole else _held()(base)) ** exponent


def quotient(a, b):
    """a / b within a few units in the last place, b positive; on GPUs without a branch."""
    symbols = getattr(b, "free_symbols", ())
    return _sympy().Function("quotient", real=True)(a, b) if symbols else a / b


def log2(x):
    """The binary logarithm; of 1 + x kernels take it with the digits of a small x."""
    if isinstance(x, float):
        return math.log2(x) if x > 0 else math.nan
    from sympy.codegen.cfunctions import log2

    return log2(x)


def largest(*values):
    """The largest of some values."""
    return max(values) if _numbers(*values) else _sympy().Max(*values)


def smallest(*values):
    """The smallest of some values."""
    return min(values) if _numbers(*values) else _sympy().Min(*values)


def where(less, more, then, otherwise):
    """`then` where less < more, else `otherwise`: a select, both are computed."""
    if _numbers(less, more):
        return then if less < more else otherwise
    return _sympy().Piecewise((then, less < more), (otherwise, True))


def _numbers(*values) -> bool:
    return all(isinstance(value, int | float | Fraction) for value in values)


@cache
def _held():
    """The function f(x) = x, which SymPy does not look into."""

    class held(_sympy().Function):  # noqa: N801
        """Numbers go through."""

        @classmethod
        def eval(cls, x):
            return x if x.is_Number else None

        def fdiff(self, argindex=1):
            return 1

        def _eval_is_real(self):
            return self.args[0].is_real

        @staticmethod
        def _imp_(x):
            return x

    return held


def _sympy():
    import sympy

    return sympy
