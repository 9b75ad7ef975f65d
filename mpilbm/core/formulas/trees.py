"""Trees of formulas, and their values as NumPy arrays or SymPy expressions.

A tree is a number, a name, or (operation, branch, …). The same recursive function evaluates it
with a table of NumPy functions or with a table of SymPy functions.
"""

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import cache, lru_cache, reduce
from math import isfinite, pi
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
    """The largest value, of arrays in each place."""
    if any(isinstance(value, np.ndarray) for value in values):
        return reduce(np.maximum, values)
    return max(values) if _numbers(*values) else _symbolic("Max", *values)


def smallest(*values: Any) -> Any:
    """The smallest value, of arrays in each place."""
    if any(isinstance(value, np.ndarray) for value in values):
        return reduce(np.minimum, values)
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


Tree = float | int | str | tuple[Any, ...]  # a number, a name, or (operation, branch, …)

_NUMPY: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
    "neg": operator.neg,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "and": np.logical_and,
    "where": np.where,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "min": lambda *values: reduce(np.minimum, values),
    "max": lambda *values: reduce(np.maximum, values),
    "tanh": np.tanh,
}
_COMPARISONS = {"<", "<=", ">", ">=", "==", "!=", "and"}


class FormulaError(ValueError):
    """Raised for an invalid formula; the message lists what is allowed."""


def numeric(tree: Tree, values: Mapping[str, Any], kind: type = np.float64) -> np.ndarray:
    """Return the value of a tree for given values of its names, float64, computed in type `kind`.

    The result has the shape to which the values (arrays, numbers) broadcast. A division by zero
    gives inf or nan, without a warning.
    """
    with np.errstate(all="ignore"):
        known: dict[str, np.ndarray] = {
            key: np.asarray(value, kind) for key, value in values.items()
        }
        result = _walk(tree, _NUMPY, {"pi": kind(pi)} | known, kind)
    return np.asarray(result, np.float64)


def symbolic(tree: Tree, symbols: Mapping[str, Any]) -> Any:
    """Return a tree as a SymPy expression of these symbols; decimal numbers are exact."""
    import sympy

    names = {**symbols, "pi": sympy.pi}
    return _walk(tree, _sympy_table(), names, lambda number: sympy.Rational(repr(number)))


def _walk(
    tree: Tree,
    table: Mapping[str, Callable[..., Any]],
    names: Mapping[str, Any],
    number: Callable[..., Any],
) -> Any:
    """Return the value of a tree.

    `table` holds the functions of operations, `names` the values of names; `number` converts
    numbers.
    """
    if isinstance(tree, str):
        return names[tree]
    if not isinstance(tree, tuple):
        return number(tree)
    if tree[0] == "**":
        return table["**"](_walk(tree[1], table, names, number), tree[2])
    return table[tree[0]](*(_walk(branch, table, names, number) for branch in tree[1:]))


@cache
def _sympy_table() -> dict[str, Callable[..., Any]]:
    """The operations for SymPy; imported on demand, because cached kernels need no SymPy."""
    import sympy

    same = ("+", "-", "*", "/", "neg", "<", "<=", ">", ">=")
    named = ("sin", "cos", "tan", "exp", "log", "sqrt", "tanh")
    return (
        {name: _NUMPY[name] for name in same}
        | {name: getattr(sympy, name) for name in named}
        | {"==": sympy.Eq, "!=": sympy.Ne, "and": sympy.And}
        | {"abs": sympy.Abs, "min": sympy.Min, "max": sympy.Max}
        | {"**": power}
        | {"where": lambda truth, a, b: sympy.Piecewise((a, truth), (b, True))}
    )


def is_comparison(tree: Tree) -> bool:
    """Whether the value of a tree is true or false."""
    return isinstance(tree, tuple) and tree[0] in _COMPARISONS


def names_of(tree: Tree) -> Iterator[str]:
    """All names in a tree, including `pi`."""
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, tuple):
        for branch in tree[1:]:
            yield from names_of(branch)


def constant(tree: Tree) -> float | None:
    """Return the value of a tree without names other than pi; None if it has other names.

    Raises FormulaError if a part without names divides by zero or is not finite.
    """
    if isinstance(tree, str):
        return pi if tree == "pi" else None
    if not isinstance(tree, tuple):
        return tree
    branches = [constant(branch) for branch in tree[1:]]
    if tree[0] == "/" and branches[1] == 0:
        raise FormulaError("divides by zero; change the divisor")
    if None in branches:
        return None
    value = float(numeric(tree, {}))
    if not isfinite(value):
        raise FormulaError(
            f"a part without names is {value}: a division by zero or too large; change that part"
        )
    return value
