"""Parses the formulas of a case file: walks over Python's syntax tree, and never uses eval.

To add a function for formulas, add its name to `FUNCTIONS` and its definition to the tables of
trees.py.
"""

import ast
import difflib
import warnings
from collections.abc import Sequence
from functools import lru_cache, reduce
from math import inf
from typing import Any

import numpy as np

from mpilbm.core.formulas.trees import (
    FormulaError,
    Tree,
    constant,
    is_comparison,
    names_of,
    numeric,
    symbolic,
)

__all__ = ["FUNCTIONS", "NAMES", "Formula", "FormulaError", "is_formula"]

NAMES = ("x", "y", "z", "nx", "ny", "nz", "t", "pi")
FUNCTIONS = ("where", "sin", "cos", "tan", "exp", "log", "sqrt", "abs", "min", "max", "tanh")
LENGTH, DEPTH, EXPONENT = 500, 50, 16

_ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
_COMPARISONS = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_ARGUMENTS = {  # function -> (fewest, most, in words); others take one
    "where": (3, 3, "3 arguments: comparison, a, b"),
    "min": (2, LENGTH, "2 or more"),
    "max": (2, LENGTH, "2 or more"),
}


class Formula:
    """A formula of the given names and pi with `+ - * / **`, comparisons and FUNCTIONS.

    Raises FormulaError for any other syntax, for a text longer than LENGTH characters or nested
    deeper than DEPTH levels, for exponents that are not integers from -EXPONENT to EXPONENT, and
    for a part without names whose value is infinite or not a number.
    """

    def __init__(self, text: str, names: tuple[str, ...] = NAMES):
        self.text = text
        self.tree, self.names = _checked(text, names)

    def __repr__(self) -> str:
        return f"Formula({self.text!r})"

    def evaluate(self, **values: Any) -> np.ndarray:
        """Return the value, float64, in the shape to which `values` (arrays, numbers) broadcast.

        A division by zero gives inf or nan, without a warning.
        """
        return numeric(self.tree, values)

    def symbolic(self) -> Any:
        """Return the formula as a SymPy expression of real symbols; decimal numbers are exact."""
        import sympy

        return symbolic(self.tree, {name: sympy.Symbol(name, real=True) for name in self.names})


def is_formula(text: str) -> bool:
    """Whether a text is a formula of NAMES."""
    try:
        Formula(text)
    except FormulaError:
        return False
    return True


@lru_cache(maxsize=256)
def _checked(text: str, names: tuple[str, ...]) -> tuple[Tree, frozenset[str]]:
    """Return the tree of a text and its names; cached, because each block and step uses them."""
    tree = _read(text, names)
    if is_comparison(tree):
        raise FormulaError(f"'{text}' is a comparison; write where({text}, a, b)")
    constant(tree)
    return tree, frozenset(names_of(tree)) - {"pi"}


def _read(text: str, names: tuple[str, ...]) -> Tree:
    if len(text) > LENGTH:
        raise FormulaError(f"has {len(text)} characters; allowed: at most {LENGTH}")
    if "\0" in text:  # the message of ast.parse differs between versions of Python
        raise FormulaError(f"{_short(text)} is not a formula: it has a null character")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _Parser(names).tree(ast.parse(text.strip(), mode="eval").body)
    except FormulaError:
        raise
    except SyntaxError as error:
        text = text.strip()
        wrong = f"{_short(text)} is not a formula: {error.msg}{_place(text, error)}"
        raise FormulaError(f"{wrong}; allowed: {_allowed(names)}") from None
    except (ValueError, RecursionError, MemoryError):
        raise FormulaError(
            f"{_short(text)} is not a formula: invalid characters, or nested too deep"
        ) from None


class _Parser:
    """Converts nodes of Python's syntax tree; refuses node types without a method in this class."""

    def __init__(self, names: tuple[str, ...]):
        self.names, self.depth = names, 0

    def tree(self, node: ast.expr) -> Tree:
        """The tree of a node: a number or a comparison."""
        convert = getattr(self, f"_{type(node).__name__}", self._other)
        self.depth += 1
        if self.depth > DEPTH:
            raise FormulaError(f"is nested deeper than {DEPTH}")
        try:
            return convert(node)
        finally:
            self.depth -= 1

    def number(self, node: ast.expr) -> Tree:
        """The tree of a node that must be a number."""
        tree = self.tree(node)
        if is_comparison(tree):
            raise FormulaError(
                f"'{_source(node)}' is a comparison, but a number is required; "
                "write where(comparison, a, b)"
            )
        return tree

    def _Constant(self, node: ast.Constant) -> Tree:  # noqa: N802 (a class of ast)
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise FormulaError(f"{value!r} is not a number")
        if not abs(value) < 1e300:
            raise FormulaError("has a number above 1e300")
        return value

    def _Name(self, node: ast.Name) -> Tree:  # noqa: N802
        if node.id not in self.names:
            raise FormulaError(_unknown("name", node.id, (*self.names, *FUNCTIONS)))
        return node.id

    def _UnaryOp(self, node: ast.UnaryOp) -> Tree:  # noqa: N802
        if isinstance(node.op, ast.UAdd):
            return self.number(node.operand)
        if isinstance(node.op, ast.USub):
            return "neg", self.number(node.operand)
        return self._other(node)

    def _BinOp(self, node: ast.BinOp) -> Tree:  # noqa: N802
        if type(node.op) not in _ARITHMETIC:
            return self._other(node)
        left = self.number(node.left)
        if isinstance(node.op, ast.Pow):
            return "**", left, _exponent(node.right)
        return _ARITHMETIC[type(node.op)], left, self.number(node.right)

    def _Compare(self, node: ast.Compare) -> Tree:  # noqa: N802
        if not all(type(op) in _COMPARISONS for op in node.ops):
            return self._other(node)
        sides = [self.number(side) for side in (node.left, *node.comparators)]
        symbols = [_COMPARISONS[type(op)] for op in node.ops]
        pairs = zip(symbols, sides[:-1], sides[1:], strict=True)  # a < b < c is a < b and b < c
        return reduce(lambda first, second: ("and", first, second), pairs)

    def _Call(self, node: ast.Call) -> Tree:  # noqa: N802
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in FUNCTIONS:
            raise FormulaError(_unknown("function", _source(node.func), FUNCTIONS))
        count = len(node.args)
        fewest, most, words = _ARGUMENTS.get(name, (1, 1, "1 argument"))
        plain = not node.keywords and not any(isinstance(arg, ast.Starred) for arg in node.args)
        if not plain or not fewest <= count <= most:
            raise FormulaError(f"{name}() takes {words}, found {count}")
        if name != "where":
            return name, *(self.number(arg) for arg in node.args)
        condition = self.tree(node.args[0])
        if not is_comparison(condition):
            raise FormulaError("where() takes a comparison first: where(x < 3, a, b)")
        return "where", condition, *(self.number(arg) for arg in node.args[1:])

    def _other(self, node: ast.expr) -> Tree:
        fix = "; write a power as x**2" if isinstance(getattr(node, "op", 0), ast.BitXor) else ""
        raise FormulaError(
            f"'{_source(node)}' is not allowed in a formula; allowed: {_allowed(self.names)}{fix}"
        )


def _exponent(node: ast.expr) -> int:
    """Return an integer constant from -EXPONENT to EXPONENT; larger powers would take long."""
    sign = 1
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -sign, node.operand
    value = node.value if isinstance(node, ast.Constant) else None
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else inf
    if number <= EXPONENT and float(number).is_integer():
        return sign * int(number)
    raise FormulaError(
        f"exponent '{_source(node)}': allowed: integers from -{EXPONENT} to "
        f"{EXPONENT}; else use sqrt(x) or exp(a*log(x))"
    )


def _source(node: ast.expr) -> str:
    """The beginning of the text of a node."""
    return ast.unparse(node)[:60]


def _short(text: str) -> str:
    """A text in quotes, shortened if it is long."""
    return repr(text if len(text) <= 60 else text[:59] + "…")


def _place(text: str, error: SyntaxError) -> str:
    """Text for the position of a syntax error; Python reports the end of the text as 0."""
    line = "".join(text.splitlines()[(error.lineno or 1) - 1 :][:1])
    at = f" of line {error.lineno}" if "\n" in text else ""
    if not error.offset or error.offset > len(line):
        return f" (at the end{at})"
    return f" (at {line[error.offset - 1 :][:12]!r}, character {error.offset}{at})"


def _allowed(names: Sequence[str]) -> str:
    """Text that lists the allowed elements of a formula."""
    return f"numbers, {', '.join(names)}, + - * / **, comparisons and {', '.join(FUNCTIONS)}"


def _unknown(what: str, found: str, allowed: Sequence[str]) -> str:
    """The message for an unknown name: the allowed names, and the nearest one."""
    near = difflib.get_close_matches(found, allowed, 1, 0.5)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return f"unknown {what} '{found}'; allowed: {', '.join(allowed)}{hint}"
