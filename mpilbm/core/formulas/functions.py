"""Functions for equations; they return a number for numbers and an expression for symbols."""

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

import numpy as np


def unnamed(name: str, expression: Any) -> Any:
    """Return the expression; the `let` to use if no kernel text is generated."""
    return expression


def total(terms: Iterable[Any]) -> Any:
    """The sum; SymPy adds all expressions at once, which takes less time than one by one."""
    terms = list(terms)
    symbolic = any(hasattr(term, "is_Add") for term in terms)
    return _sympy().Add(*terms) if symbolic else sum(terms)


def sqrt(x: Any) -> Any:
    """The square root."""
    if isinstance(x, np.ndarray):
        return np.sqrt(x)
    return math.sqrt(x) if isinstance(x, float) else _sympy().sqrt(x)


def power(base: Any, exponent: int) -> Any:
    """Return a power of an expression; the base is not expanded.

    SymPy converts (a/b)**18 to a**18 / b**18, also in the branches of a Piecewise, and 384**18 is
    infinite in float32. A power of a power becomes one power, because the base of a power is
    printed several times.
    """
    whole = base.is_Atom or base.is_Add or (base.is_Pow and base.exp.is_Integer)
    return (base if whole else _held()(base)) ** exponent


def quotient(a: Any, b: Any) -> Any:
    """Return a / b for positive b, accurate to a few units in the last place, without a branch."""
    symbols = getattr(b, "free_symbols", ())
    return _sympy().Function("quotient", real=True)(a, b) if symbols else a / b


def log2(x: Any) -> Any:
    """Return the binary logarithm; kernels compute log2(1 + x) accurately for small x."""
    if isinstance(x, np.ndarray):
        return np.log2(x)
    if isinstance(x, float):
        return math.log2(x) if x > 0 else math.nan
    from sympy.codegen.cfunctions import log2

    return log2(x)


def binary_log(x: Any) -> Any:
    """Return the binary logarithm of a positive number of any size."""
    return np.log2(x) if _computed(x) else _sympy().Function("binary_log", real=True)(x)


def power_of_two(x: Any) -> Any:
    """Return 2**x; kernels limit x to the exponents of their numbers."""
    return np.exp2(x) if _computed(x) else _sympy().Function("power_of_two", real=True)(x)


def power_of_two_less_one(x: Any) -> Any:
    """Return 2**x - 1, accurate for small x."""
    if _computed(x):
        return np.expm1(x * math.log(2))
    return _sympy().Function("power_of_two_less_one", real=True)(x)


def largest(*values: Any) -> Any:
    """The largest value."""
    return max(values) if _numbers(*values) else _symbolic("Max", *values)


def smallest(*values: Any) -> Any:
    """The smallest value."""
    return min(values) if _numbers(*values) else _symbolic("Min", *values)


def where(less: Any, more: Any, then: Any, otherwise: Any) -> Any:
    """`then` where less < more, else `otherwise`; both are computed."""
    if _numbers(less, more):
        return then if less < more else otherwise
    return _sympy().Piecewise((then, less < more), (otherwise, True))


@lru_cache(1000, typed=True)
def _symbolic(name: str, *values: Any) -> Any:
    """SymPy's Max or Min. It compares all pairs: with 27 values this takes a second."""
    return getattr(_sympy(), name)(*values)


def _computed(x: Any) -> bool:
    return isinstance(x, np.ndarray) or _numbers(x)


def _numbers(*values: Any) -> bool:
    return all(isinstance(value, int | float | Fraction) for value in values)


@cache
def _held() -> Any:
    """The function f(x) = x, whose argument SymPy does not combine with other terms."""
    function: Any = _sympy().Function

    class held(function):  # noqa: N801
        """The value of a number is the number itself."""

        @classmethod
        def eval(cls, x: Any) -> Any:
            return x if x.is_Number else None

        def fdiff(self, argindex: int = 1) -> int:
            return 1

        def _eval_is_real(self) -> bool | None:
            return self.args[0].is_real

        @staticmethod
        def _imp_(x: Any) -> Any:
            return x

    return held


def _sympy() -> Any:
    import sympy

    return sympy
