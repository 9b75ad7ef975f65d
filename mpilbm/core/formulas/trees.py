"""Trees of formulas, and their values as NumPy arrays or SymPy expressions.

A tree is a number, a name, or (operation, branch, …). The same recursive function evaluates it
with a table of NumPy functions or with a table of SymPy functions.
"""

import operator
from collections.abc import Callable, Iterator, Mapping
from functools import cache, reduce
from math import isfinite, pi
from typing import Any

import numpy as np

from mpilbm.core.formulas.functions import power

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
